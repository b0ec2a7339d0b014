//! Floating point in every format and rounding mode, exactly.
//!
//! A finite number is an integer times a power of two; sums, products, quotients and roots are
//! computed exactly, or with a lowest bit that says that something was cut off, and rounded once.
//! Source: IEEE 754-2019, section 4.3; the sticky bit is von Neumann's jamming.
//! The host's own arithmetic does round-to-nearest of `f32` and `f64` faster; this is for the rest.

/// Rounding modes, numbered as in the modifiers of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
    /// To nearest, ties away from zero.
    Away,
}

/// A binary interchange format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) exponent: u32,
    pub(crate) fraction: u32,
}

pub(crate) const F16: Format = Format {
    exponent: 5,
    fraction: 10,
};
pub(crate) const BF16: Format = Format {
    exponent: 8,
    fraction: 7,
};
pub(crate) const TF32: Format = Format {
    exponent: 8,
    fraction: 10,
};
pub(crate) const F32: Format = Format {
    exponent: 8,
    fraction: 23,
};
pub(crate) const F64: Format = Format {
    exponent: 11,
    fraction: 52,
};

/// `(-1)^sign * magnitude * 2^exponent`. Where bits were cut off, the lowest bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub(crate) negative: bool,
    pub(crate) magnitude: u128,
    pub(crate) exponent: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Nan,
    Infinite { negative: bool },
    Finite(Exact),
}

use Number::{Finite, Infinite, Nan};

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub(crate) fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    pub(crate) fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// The NaN that operations produce.
    pub(crate) fn nan(self) -> u64 {
        match self {
            F64 => 0xfff8_0000_0000_0000,
            // Half precision and single have a canonical NaN of all ones.
            _ => self.sign() - 1,
        }
    }

    pub(crate) fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    /// A subnormal becomes a zero of its sign.
    pub(crate) fn flush(self, bits: u64) -> u64 {
        if bits & self.infinity() == 0 {
            bits & self.sign()
        } else {
            bits
        }
    }

    pub(crate) fn unpack(self, bits: u64) -> Number {
        let negative = bits & self.sign() != 0;
        let fraction = bits & ((1 << self.fraction) - 1);
        let biased = ((bits & self.infinity()) >> self.fraction) as i32;
        if biased == (1 << self.exponent) - 1 {
            return if fraction == 0 {
                Infinite { negative }
            } else {
                Nan
            };
        }
        let hidden = if biased == 0 { 0 } else { 1 << self.fraction };
        Finite(Exact {
            negative,
            magnitude: u128::from(fraction | hidden),
            exponent: biased.max(1) - self.bias() - self.fraction as i32,
        })
    }

    /// The bits of `number`, rounded.
    pub(crate) fn pack(self, number: Number, round: Round) -> u64 {
        match number {
            Nan => self.nan(),
            Infinite { negative } => self.infinity() | if negative { self.sign() } else { 0 },
            Finite(exact) => self.round(exact, round),
        }
    }

    /// The bits of `number`, rounded and flushed as `.ftz` does: a zero if the number, rounded to the precision of this format
    /// without a limit of the exponent, is below the normal numbers. An H100 does so for `mul` and `div`.
    pub(crate) fn pack_flushed(self, number: Number, round: Round) -> u64 {
        let bits = self.pack(number, round);
        // Exponents of products and quotients of normal numbers, and of their sums, need two bits more.
        let unbounded = Self {
            exponent: self.exponent + 3,
            ..self
        };
        let least = ((unbounded.bias() - self.bias() + 1) as u64) << self.fraction;
        match unbounded.pack(number, round) & (unbounded.sign() - 1) < least {
            true => bits & self.sign(),
            false => bits,
        }
    }

    /// A quiet NaN of this format with the sign of another format's NaN and as many high bits of its payload as fit.
    pub(crate) fn nan_of(self, bits: u64, from: Self) -> u64 {
        let sign = if bits & from.sign() != 0 {
            self.sign()
        } else {
            0
        };
        let payload = bits & ((1 << from.fraction) - 1);
        let payload = match self.fraction >= from.fraction {
            true => payload << (self.fraction - from.fraction),
            false => payload >> (from.fraction - self.fraction),
        };
        sign | self.infinity() | 1 << (self.fraction - 1) | payload
    }

    fn round(self, x: Exact, round: Round) -> u64 {
        let sign = if x.negative { self.sign() } else { 0 };
        if x.magnitude == 0 {
            return sign;
        }
        let top = 127 - x.magnitude.leading_zeros() as i32;
        let least = 1 - self.bias();
        let exponent = (x.exponent + top).max(least);
        let shift = exponent - self.fraction as i32 - x.exponent;
        let mut kept;
        if shift <= 0 {
            kept = x.magnitude << -shift;
        } else {
            let (whole, rest) = split(x.magnitude, shift as u32);
            kept = whole;
            let up = match round {
                Round::Nearest => rest == Rest::More || rest == Rest::Half && whole & 1 == 1,
                Round::Away => rest == Rest::More || rest == Rest::Half,
                Round::Zero => false,
                Round::Down => x.negative && rest != Rest::None,
                Round::Up => !x.negative && rest != Rest::None,
            };
            kept += u128::from(up);
        }
        let kept = kept as u64;
        let hidden = 1u64 << self.fraction;
        // A carry out of the fraction moves into the exponent by itself.
        let bits = if kept < hidden {
            kept
        } else {
            (((exponent + self.bias()) as u64) << self.fraction) + (kept - hidden)
        };
        if exponent + self.bias() < (1 << self.exponent) - 1 && bits < self.infinity() {
            return sign | bits;
        }
        let finite = match round {
            Round::Nearest | Round::Away => false,
            Round::Zero => true,
            Round::Down => !x.negative,
            Round::Up => x.negative,
        };
        sign | (self.infinity() - u64::from(finite))
    }
}

/// What a shift cuts off, compared with half of the last bit kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    None,
    Less,
    Half,
    More,
}

fn split(magnitude: u128, shift: u32) -> (u128, Rest) {
    if shift > 127 {
        // Numbers have at most 127 bits, so what is cut off is below half.
        return (
            0,
            if magnitude == 0 {
                Rest::None
            } else {
                Rest::Less
            },
        );
    }
    let rest = magnitude & ((1 << shift) - 1);
    let half = 1u128 << (shift - 1);
    let rest = match rest.cmp(&half) {
        _ if rest == 0 => Rest::None,
        std::cmp::Ordering::Less => Rest::Less,
        std::cmp::Ordering::Equal => Rest::Half,
        std::cmp::Ordering::Greater => Rest::More,
    };
    (magnitude >> shift, rest)
}

/// Shifts right, keeping in the lowest bit whether anything was cut off.
fn jam(magnitude: u128, shift: u32) -> u128 {
    if shift > 127 {
        return u128::from(magnitude != 0);
    }
    let cut = magnitude & ((1 << shift) - 1);
    magnitude >> shift | u128::from(cut != 0)
}

impl Exact {
    /// An integer.
    pub(crate) fn integer(value: i128) -> Self {
        Self {
            negative: value < 0,
            magnitude: value.unsigned_abs(),
            exponent: 0,
        }
    }

    /// The same value with its highest bit at bit 124.
    fn normal(self) -> Self {
        let shift = self.magnitude.leading_zeros() as i32 - 3;
        Self {
            magnitude: self.magnitude << shift,
            exponent: self.exponent - shift,
            ..self
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            magnitude: self.magnitude * other.magnitude,
            exponent: self.exponent + other.exponent,
        }
    }

    fn plus(self, other: Self, round: Round) -> Self {
        if self.magnitude == 0 || other.magnitude == 0 {
            let both = self.magnitude == other.magnitude;
            let negative = match both {
                true if self.negative == other.negative => self.negative,
                true => round == Round::Down,
                false if self.magnitude == 0 => other.negative,
                false => self.negative,
            };
            let value = if self.magnitude == 0 { other } else { self };
            return Self { negative, ..value };
        }
        let (x, y) = (self.normal(), other.normal());
        let (x, y) = if x.exponent >= y.exponent {
            (x, y)
        } else {
            (y, x)
        };
        // Only one that is at least twice as large loses bits of the other, so whatever cancels
        // is exact.
        let small = jam(y.magnitude, (x.exponent - y.exponent) as u32);
        if x.negative == y.negative {
            return Self {
                magnitude: x.magnitude + small,
                ..x
            };
        }
        let flip = small > x.magnitude;
        let magnitude = x.magnitude.abs_diff(small);
        let negative = match magnitude {
            0 => round == Round::Down,
            _ => x.negative != flip,
        };
        Self {
            negative,
            magnitude,
            ..x
        }
    }
}

/// `a + b`
pub(crate) fn add(a: Number, b: Number, round: Round) -> Number {
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinite { negative: x }, Infinite { negative: y }) if x != y => Nan,
        (Infinite { negative }, _) | (_, Infinite { negative }) => Infinite { negative },
        (Finite(a), Finite(b)) => Finite(a.plus(b, round)),
    }
}

/// `a * b`
pub(crate) fn mul(a: Number, b: Number) -> Number {
    let negative = |number| match number {
        Nan => false,
        Infinite { negative } => negative,
        Finite(exact) => exact.negative,
    };
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinite { .. }, Finite(x)) | (Finite(x), Infinite { .. }) if x.magnitude == 0 => Nan,
        (Finite(a), Finite(b)) => Finite(a.times(b)),
        _ => Infinite {
            negative: negative(a) != negative(b),
        },
    }
}

/// `a * b + c`, rounded once.
pub(crate) fn fma(a: Number, b: Number, c: Number, round: Round) -> Number {
    add(mul(a, b), c, round)
}

/// `a / b`
pub(crate) fn div(a: Number, b: Number) -> Number {
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) => Nan,
        (Infinite { negative }, Finite(b)) => Infinite {
            negative: negative != b.negative,
        },
        (Finite(a), Infinite { negative }) => Finite(Exact {
            negative: a.negative != negative,
            magnitude: 0,
            exponent: 0,
        }),
        (Finite(a), Finite(b)) => {
            let negative = a.negative != b.negative;
            match (a.magnitude, b.magnitude) {
                (0, 0) => Nan,
                (_, 0) => Infinite { negative },
                (0, _) => Finite(Exact { negative, ..a }),
                _ => {
                    let a = a.normal();
                    let (quotient, rest) = (a.magnitude / b.magnitude, a.magnitude % b.magnitude);
                    Finite(Exact {
                        negative,
                        magnitude: quotient | u128::from(rest != 0),
                        exponent: a.exponent - b.exponent,
                    })
                }
            }
        }
    }
}

/// The square root.
pub(crate) fn sqrt(a: Number) -> Number {
    match a {
        Nan | Infinite { negative: true } => Nan,
        Infinite { negative: false } => a,
        Finite(x) if x.magnitude == 0 => a,
        Finite(x) if x.negative => Nan,
        Finite(x) => {
            let mut x = x.normal();
            if x.exponent % 2 != 0 {
                x.magnitude <<= 1;
                x.exponent -= 1;
            }
            let root = x.magnitude.isqrt();
            Finite(Exact {
                negative: false,
                magnitude: root | u128::from(root * root != x.magnitude),
                exponent: x.exponent / 2,
            })
        }
    }
}

/// The integer that `x` rounds to; saturates far outside of 64 bits.
pub(crate) fn to_integer(x: Exact, round: Round) -> i128 {
    let limit = 1i128 << 100;
    let magnitude = if x.exponent >= 0 {
        if x.magnitude != 0 && x.exponent >= 70 {
            limit as u128
        } else {
            x.magnitude << x.exponent
        }
    } else {
        let (whole, rest) = split(x.magnitude, x.exponent.unsigned_abs());
        let up = match round {
            Round::Nearest => rest == Rest::More || rest == Rest::Half && whole & 1 == 1,
            Round::Away => rest == Rest::More || rest == Rest::Half,
            Round::Zero => false,
            Round::Down => x.negative && rest != Rest::None,
            Round::Up => !x.negative && rest != Rest::None,
        };
        whole + u128::from(up)
    };
    let value = magnitude.min(limit as u128) as i128;
    if x.negative { -value } else { value }
}

/// Converts between formats.
pub(crate) fn convert(bits: u64, from: Format, to: Format, round: Round) -> u64 {
    to.pack(from.unpack(bits), round)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn f64_of(number: Number, round: Round) -> f64 {
        f64::from_bits(F64.pack(number, round))
    }

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    }

    proptest! {
        #[test]
        fn nearest_agrees_with_the_host(a: u64, b: u64, c: u64, near in 0u64..64) {
            // Random bits seldom cancel; nearby ones do.
            for b in [b, a ^ near, a ^ near ^ 1 << 63] {
                let [x, y, z] = [a, b, c].map(f64::from_bits);
                let [p, q, r] = [a, b, c].map(|bits| F64.unpack(bits));
                let n = Round::Nearest;
                prop_assert!(same(f64_of(add(p, q, n), n), x + y));
                prop_assert!(same(f64_of(mul(p, q), n), x * y));
                prop_assert!(same(f64_of(div(p, q), n), x / y));
                prop_assert!(same(f64_of(fma(p, q, r, n), n), x.mul_add(y, z)));
                prop_assert!(same(f64_of(fma(p, q, F64.unpack((-(x * y)).to_bits()), n), n),
                                  x.mul_add(y, -(x * y))));
                prop_assert!(same(f64_of(sqrt(p), n), x.sqrt()));
            }
        }

        #[test]
        fn directed_modes_bracket_the_exact_value(a: f32, b: f32) {
            // The exact product fits a double.
            let exact = f64::from(a) * f64::from(b);
            let product = mul(F32.unpack(a.to_bits().into()), F32.unpack(b.to_bits().into()));
            let [down, up, zero] = [Round::Down, Round::Up, Round::Zero]
                .map(|round| f32::from_bits(F32.pack(product, round) as u32));
            if exact.is_finite() && f64::from(down) != exact {
                prop_assert!(f64::from(down) < exact && exact < f64::from(up));
                prop_assert_eq!(down.next_up(), up);
                prop_assert_eq!(zero, if exact > 0.0 { down } else { up });
            } else if exact.is_finite() {
                prop_assert_eq!(down, up);
            }
        }

        #[test]
        fn conversions_agree_with_the_host(a: u64, i: i64) {
            let x = f64::from_bits(a);
            let narrow = convert(a, F64, F32, Round::Nearest) as u32;
            prop_assert!(narrow == (x as f32).to_bits() || x.is_nan());
            prop_assert_eq!(F64.pack(Finite(Exact::integer(i.into())), Round::Nearest),
                            (i as f64).to_bits());
            if let Finite(exact) = F64.unpack(a) {
                let near = to_integer(exact, Round::Nearest);
                prop_assert_eq!(near.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
                                x.round_ties_even() as i64);
            }
        }
    }

    #[test]
    fn half_precision_by_hand() {
        // 65504 is the largest half; 65520 is the first that rounds to infinity.
        let half = |x: f32, round| convert(x.to_bits().into(), F32, F16, round);
        assert_eq!(half(65504.0, Round::Nearest), 0x7bff);
        assert_eq!(half(65519.0, Round::Nearest), 0x7bff);
        assert_eq!(half(65520.0, Round::Nearest), 0x7c00);
        assert_eq!(half(65520.0, Round::Zero), 0x7bff);
        assert_eq!(half(-1.0e-8, Round::Down), 0x8001);
        assert_eq!(
            convert(0x3c01, F16, F32, Round::Nearest) as u32,
            1.000_976_6f32.to_bits()
        );
    }
}
