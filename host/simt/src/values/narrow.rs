//! Formats of 8 bits.
//!
//! Source: OCP Microscaling Formats 1.0 and PTX ISA 9.0, "Alternate Floating-Point Data Formats".
//! `e5m2` is like an IEEE format; `e4m3` has no infinity and one NaN per sign.

/// A narrow binary format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Narrow {
    exponent: u32,
    fraction: u32,
    special: Special,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// Infinities and NaN, as IEEE 754 has them.
    Ieee,
    /// All ones is NaN.
    Nan,
}

pub(crate) const E4M3: Narrow = Narrow {
    exponent: 4,
    fraction: 3,
    special: Special::Nan,
};
pub(crate) const E5M2: Narrow = Narrow {
    exponent: 5,
    fraction: 2,
    special: Special::Ieee,
};
impl Narrow {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn sign(self) -> u32 {
        1 << (self.exponent + self.fraction)
    }

    /// Bits of the largest finite value.
    fn largest(self) -> u32 {
        match self.special {
            Special::Ieee => (((1 << self.exponent) - 1) << self.fraction) - 1,
            Special::Nan => self.sign() - 2,
        }
    }

    /// The value of bits, exactly.
    pub(crate) fn value(self, bits: u32) -> f64 {
        let magnitude = bits & (self.sign() - 1);
        let negative = bits & self.sign() != 0;
        let value = if magnitude > self.largest() {
            let infinite =
                self.special == Special::Ieee && magnitude.trailing_zeros() >= self.fraction;
            if infinite { f64::INFINITY } else { f64::NAN }
        } else {
            let fraction = magnitude & ((1 << self.fraction) - 1);
            let biased = (magnitude >> self.fraction) as i32;
            let hidden = if biased == 0 { 0 } else { 1 << self.fraction };
            let exponent = biased.max(1) - self.bias() - self.fraction as i32;
            f64::from(fraction | hidden) * power(exponent)
        };
        if negative { -value } else { value }
    }

    /// The bits of a value, to nearest, ties to even, and not beyond the largest finite one
    /// (`.rn.satfinite`).
    pub(crate) fn nearest(self, x: f64) -> u32 {
        if x.is_nan() {
            return self.sign() - 1;
        }
        let sign = if x.is_sign_negative() { self.sign() } else { 0 };
        let x = x.abs();
        let least = 1 - self.bias();
        let exponent = (((x.to_bits() >> 52) as i32) - 1023).clamp(least, 1023);
        let step = exponent - self.fraction as i32;
        // Exact: a multiplication by a power of two, far from the ends of the range.
        let units = (x * power(-step)).round_ties_even();
        if units >= f64::from(4u32 << self.fraction) {
            return sign | self.largest();
        }
        let units = units as u32;
        // A carry out of the fraction moves into the exponent by itself.
        let hidden = 1 << self.fraction;
        let bits = if units < hidden {
            units
        } else {
            (((exponent + self.bias()) as u32) << self.fraction) + (units - hidden)
        };
        sign | bits.min(self.largest())
    }
}

fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Narrow; 2] = [E4M3, E5M2];

    #[test]
    fn known_values() {
        assert_eq!(E4M3.value(0x7e), 448.0);
        assert_eq!(E4M3.value(0x01), 1.0 / 512.0);
        assert_eq!(E5M2.value(0x7b), 57344.0);
        assert_eq!(E5M2.value(0x7c), f64::INFINITY);
        assert!(E4M3.value(0xff).is_nan());
        assert_eq!(E4M3.nearest(1e9), 0x7e);
        assert_eq!(E5M2.nearest(f64::NEG_INFINITY), 0xfb);
        assert_eq!(E4M3.nearest(f64::NAN), 0x7f);
    }

    #[test]
    fn values_and_bits_go_there_and_back() {
        for format in ALL {
            for bits in 0..2 * format.sign() {
                let value = format.value(bits);
                if value.is_finite() {
                    assert_eq!(format.nearest(value), bits, "{format:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn nearest_is_nearest(x in -600.0f64..600.0, small in -40i32..1) {
            let x = x * power(small);
            for format in ALL {
                let have = format.nearest(x);
                let distance = |bits| (format.value(bits) - x).abs();
                for bits in 0..2 * format.sign() {
                    if format.value(bits).is_finite() {
                        prop_assert!(distance(have) <= distance(bits), "{format:?} {x} {have:#x}");
                        let tie = distance(have) == distance(bits)
                            && format.value(have) != format.value(bits);
                        prop_assert!(!tie || have & 1 == 0);
                    }
                }
            }
        }
    }
}
