//! Exact integer arithmetic that the other files share.
//!
//! Coefficients are at most [`COEFFICIENT`], constants at most [`CONSTANT`] and values of symbols fit 64 bits. A sum
//! of [`TERMS`] products and a constant is then below 2^125, so sums need no check. What is larger is refused where a
//! form enters the decision.

use crate::interval::Interval;
use crate::problem::{Linear, Term};

/// Greatest absolute value of a coefficient.
pub(super) const COEFFICIENT: i64 = 1 << 40;

/// Greatest absolute value of a constant.
pub(super) const CONSTANT: i128 = 1 << 100;

/// Most terms of a form.
pub(super) const TERMS: usize = 1 << 10;

/// No bound: greater than every sum, and small enough to be added to one.
pub(super) const INFINITE: i128 = 1 << 125;

/// Largest integer not above `a / b`, for positive `b`.
pub(super) fn floor(a: i128, b: i128) -> i128 {
    if a == INFINITE || a == -INFINITE || b == 1 {
        return a;
    }
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => i128::from(a.div_euclid(b)),
        _ => a.div_euclid(b),
    }
}

/// Least integer not below `a / b`, for positive `b`.
pub(super) fn ceiling(a: i128, b: i128) -> i128 {
    -floor(-a, b)
}

/// Greatest common divisor; that of 0 and a number is the number.
pub(crate) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        if let (Ok(mut x), Ok(mut y)) = (u64::try_from(a), u64::try_from(b)) {
            while y != 0 {
                (x, y) = (y, x % y);
            }
            return i128::from(x);
        }
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(i128::MAX)
}

/// Whether a form keeps the limits of this file and the order of its terms.
pub(super) fn admissible(form: &Linear, symbols: usize) -> bool {
    form.terms.len() <= TERMS
        && form.constant.unsigned_abs() <= CONSTANT.unsigned_abs()
        && form.terms.is_sorted_by(|a, b| a.variable < b.variable)
        && form.terms.iter().all(|term| {
            let known = usize::try_from(term.variable).is_ok_and(|index| index < symbols);
            known
                && term.coefficient != 0
                && term.coefficient.unsigned_abs() <= COEFFICIENT.unsigned_abs()
        })
}

/// Least and greatest value of a sum of multiples of symbols.
pub(super) fn extent(terms: &[Term], domain: &[Interval<i64>]) -> Interval<i128> {
    let (mut least, mut greatest) = (0, 0);
    for term in terms {
        let Interval { low, high } = domain[term.variable as usize];
        let Interval { low, high } = scaled(term.coefficient.into(), low.into(), high.into());
        least += low;
        greatest += high;
    }
    Interval::new(least, greatest)
}

/// The range of a multiple of a value.
pub(super) fn scaled(coefficient: i128, low: i128, high: i128) -> Interval<i128> {
    if coefficient >= 0 {
        Interval::new(coefficient * low, coefficient * high)
    } else {
        Interval::new(coefficient * high, coefficient * low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_round_down_and_up() {
        for a in -50..=50_i128 {
            for b in 1..=7_i128 {
                let down = (-60..=60).rev().find(|q| q * b <= a).unwrap();
                let up = (-60..=60).find(|q| q * b >= a).unwrap();
                assert_eq!((floor(a, b), ceiling(a, b)), (down, up), "{a} / {b}");
            }
        }
        let wide = 1_i128 << 90;
        assert_eq!(
            (floor(wide + 1, 2), ceiling(wide + 1, 2)),
            (1 << 89, (1 << 89) + 1)
        );
        assert_eq!(
            (floor(INFINITE, 3), ceiling(-INFINITE, 3)),
            (INFINITE, -INFINITE)
        );
    }

    #[test]
    fn the_greatest_common_divisor_divides_both() {
        for a in -40..=40_i128 {
            for b in -40..=40_i128 {
                let divides = |d: &i128| a % d == 0 && b % d == 0;
                let expected = if a == 0 && b == 0 {
                    0
                } else {
                    (1..=40).rev().find(divides).unwrap()
                };
                assert_eq!(gcd(a, b), expected, "{a}, {b}");
            }
        }
        assert_eq!(gcd(6 << 90, 4 << 80), 2 << 80 << 1);
    }
}
