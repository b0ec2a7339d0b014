//! Sums and products of finite single-precision numbers, rounded in any mode by the host's double precision.
//!
//! The product of two singles is exact in double precision. Their sum with a third is rounded to odd there, which keeps
//! whether something was cut off in the lowest bit (Boldo and Melquiond, "Emulation of FMA and Correctly Rounded Sums:
//! Proved Algorithms Using Rounding to Odd", IEEE Transactions on Computers, 2008), so that one more rounding to
//! single precision is that of the exact value. [`super::soft`] does the same with integers, for every format.

use super::soft::Round;

/// `a * b + c`, rounded once; none unless all three are finite, and for a mode that is not known here.
#[inline(always)]
pub(crate) fn fma(a: f32, b: f32, c: f32, round: Round) -> Option<f32> {
    if !(a.is_finite() && b.is_finite() && c.is_finite()) {
        return None;
    }
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = odd_sum(product, c);
    if sum == 0.0 {
        // The sign of an exact zero is the mode's where the signs of the summands differ.
        let zero = match product.is_sign_negative() == c.is_sign_negative() {
            true => product,
            false if round == Round::Down => -0.0,
            false => 0.0,
        };
        return Some(zero as f32);
    }
    narrow(sum, round)
}

/// `a * b`, rounded once; none as in [`fma`].
pub(crate) fn mul(a: f32, b: f32, round: Round) -> Option<f32> {
    let product = f64::from(a) * f64::from(b);
    narrow(product, round).filter(|_| a.is_finite() && b.is_finite())
}

/// `a + b` in double precision; of the two doubles around an exact sum that is none, the one whose last bit is set.
#[inline(always)]
pub(crate) fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // Knuth's TwoSum: what the sum lacks, exactly.
    let from_b = sum - a;
    let rest = (a - (sum - from_b)) + (b - from_b);
    let bits = sum.to_bits();
    // NaN rests, of infinite sums, compare false.
    let up = (rest > 0.0) == (sum > 0.0);
    let toward = if up {
        bits | 1
    } else {
        bits.wrapping_sub(1) | 1
    };
    let inexact = rest.abs() > 0.0 && bits & 1 == 0;
    f64::from_bits(if inexact { toward } else { bits })
}

fn narrow(x: f64, round: Round) -> Option<f32> {
    let near = x as f32;
    let below = f64::from(near) < x;
    let above = f64::from(near) > x;
    Some(match round {
        Round::Nearest => near,
        Round::Down if above => near.next_down(),
        Round::Up if below => near.next_up(),
        Round::Zero if above && x > 0.0 => near.next_down(),
        Round::Zero if below && x < 0.0 => near.next_up(),
        Round::Down | Round::Up | Round::Zero => near,
        Round::Away => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::values::soft::{self, F32};

    const MODES: [Round; 4] = [Round::Nearest, Round::Zero, Round::Down, Round::Up];

    /// Where rounding is hard: zeros, subnormals, powers of two and their neighbours, the largest.
    fn corners() -> Vec<u32> {
        let exponents = [
            0u32, 1, 2, 23, 24, 25, 103, 126, 127, 128, 150, 151, 253, 254,
        ];
        let fractions = [
            0u32, 1, 2, 0x3f_ffff, 0x40_0000, 0x40_0001, 0x7f_fffe, 0x7f_ffff,
        ];
        let positive = exponents.iter().flat_map(|exponent| {
            fractions
                .iter()
                .map(move |fraction| exponent << 23 | fraction)
        });
        positive.flat_map(|bits| [bits, bits | 1 << 31]).collect()
    }

    fn check(a: u32, b: u32, c: u32) -> Result<(), TestCaseError> {
        let [x, y, z] = [a, b, c].map(|bits| F32.unpack(bits.into()));
        for round in MODES {
            let exact = F32.pack(soft::fma(x, y, z, round), round) as u32;
            let [a, b, c] = [a, b, c].map(f32::from_bits);
            let fast = fma(a, b, c, round).map(f32::to_bits);
            prop_assert_eq!(fast, Some(exact), "{} * {} + {}, {:?}", a, b, c, round);
            let exact = F32.pack(soft::mul(x, y), round) as u32;
            let fast = mul(a, b, round).map(f32::to_bits);
            prop_assert_eq!(fast, Some(exact), "{} * {}, {:?}", a, b, round);
        }
        Ok(())
    }

    #[test]
    fn corners_agree_with_exact_arithmetic() {
        let all = corners();
        for (n, &a) in all.iter().enumerate() {
            for &b in &all[n..] {
                // The summands nearest to the product, and those far from it.
                let product = (f32::from_bits(a) * f32::from_bits(b)).to_bits();
                let near = [
                    product,
                    product ^ 1 << 31,
                    product ^ 1,
                    product ^ 1 ^ 1 << 31,
                ];
                let far = [all[(7 * n + 3) % all.len()], 0, 1 << 31, 1, 0x8000_0001];
                for c in near.into_iter().chain(far) {
                    if f32::from_bits(c).is_finite() {
                        check(a, b, c).unwrap();
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn any_agree_with_exact_arithmetic(a: u32, b: u32, c: u32, near in 0u32..8) {
            let finite = |bits: u32| f32::from_bits(bits).is_finite();
            prop_assume!(finite(a) && finite(b) && finite(c));
            check(a, b, c)?;
            let product = (f32::from_bits(a) * f32::from_bits(b)).to_bits();
            if finite(product ^ near) {
                check(a, b, product ^ near ^ 1 << 31)?;
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_left_to_exact_arithmetic() {
        for round in MODES {
            assert_eq!(fma(f32::INFINITY, 1.0, 0.0, round), None);
            assert_eq!(fma(1.0, 1.0, f32::NAN, round), None);
            assert_eq!(mul(f32::NAN, 1.0, round), None);
        }
        assert_eq!(mul(1.0, 1.0, Round::Away), None);
    }
}
