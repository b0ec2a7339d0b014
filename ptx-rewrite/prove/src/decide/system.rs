//! Integer variables with bounds, and sums of them with bounds: tightened until nothing changes.

use super::integer::{INFINITE, ceiling, floor, gcd, scaled};
use crate::interval::Interval;
use crate::problem::Term;

/// Index of a variable.
pub(super) type Variable = u16;

/// How often all rows are looked at.
const ROUNDS: usize = 8;

/// A conjunction of bounds.
#[derive(Default)]
pub(super) struct System {
    /// By variable: least and greatest value.
    pub(super) domain: Vec<Interval<i128>>,
    /// Terms of all rows.
    terms: Vec<Term<Variable>>,
    /// The rows.
    rows: Vec<Row>,
    /// A row without variables is violated, or a variable has no value.
    pub(super) contradiction: bool,
}

/// A sum of multiples of variables with bounds.
#[derive(Clone, Copy)]
struct Row {
    start: u32,
    end: u32,
    low: i128,
    high: i128,
}

impl System {
    /// Starts again without variables and rows.
    pub(super) fn clear(&mut self) {
        self.domain.clear();
        self.terms.clear();
        self.rows.clear();
        self.contradiction = false;
    }

    /// A new variable.
    pub(super) fn variable(&mut self, low: i128, high: i128) -> Variable {
        self.contradiction |= low > high;
        self.domain.push(Interval::new(low, high));
        Variable::try_from(self.domain.len() - 1).unwrap_or(Variable::MAX)
    }

    /// Bounds a sum. Dividing by the common divisor of its coefficients rounds the bounds inwards.
    pub(super) fn bound(&mut self, terms: &[Term<Variable>], low: i128, high: i128) {
        let common = terms
            .iter()
            .fold(0, |common, term| gcd(common, term.coefficient.into()));
        if common == 0 {
            self.contradiction |= low > 0 || high < 0;
            return;
        }
        let (low, high) = (ceiling(low, common), floor(high, common));
        if low > high {
            self.contradiction = true;
            return;
        }
        let start = self.terms.len();
        if common == 1 {
            self.terms.extend_from_slice(terms);
        } else {
            let divisor = i64::try_from(common).unwrap_or(1);
            self.terms.extend(
                terms
                    .iter()
                    .map(|term| Term::new(term.variable, term.coefficient / divisor)),
            );
        }
        self.rows.push(Row {
            start: u32::try_from(start).unwrap_or(u32::MAX),
            end: u32::try_from(self.terms.len()).unwrap_or(u32::MAX),
            low,
            high,
        });
    }

    /// The rows: terms and bounds.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&[Term<Variable>], i128, i128)> {
        (self.rows.iter()).map(|row| {
            (
                &self.terms[row.start as usize..row.end as usize],
                row.low,
                row.high,
            )
        })
    }

    /// Tightens the bounds of the variables; false if nothing satisfies the rows.
    ///
    /// Counts the terms it has looked at.
    pub(super) fn propagate(&mut self, steps: &mut u64) -> bool {
        if self.contradiction {
            return false;
        }
        let Self {
            domain,
            terms,
            rows,
            ..
        } = self;
        for _ in 0..ROUNDS {
            let mut changed = false;
            for row in rows.iter() {
                let terms = &terms[row.start as usize..row.end as usize];
                *steps += terms.len() as u64;
                match tighten(domain, terms, row.low, row.high) {
                    None => return false,
                    Some(tighter) => changed |= tighter,
                }
            }
            if !changed {
                break;
            }
        }
        true
    }
}

/// Tightens the bounds of the variables of one row; `None` if nothing satisfies it, else whether any changed.
fn tighten(
    domain: &mut [Interval<i128>],
    terms: &[Term<Variable>],
    low: i128,
    high: i128,
) -> Option<bool> {
    let (mut least, mut greatest) = (0, 0);
    for term in terms {
        let own = domain[term.variable as usize];
        let own = scaled(term.coefficient.into(), own.low, own.high);
        (least, greatest) = (least + own.low, greatest + own.high);
    }
    if least > high || greatest < low {
        return None;
    }
    if least >= low && greatest <= high {
        return Some(false);
    }
    let mut changed = false;
    for &Term {
        variable,
        coefficient,
    } in terms
    {
        let bounds = &mut domain[variable as usize];
        if bounds.low == bounds.high {
            continue;
        }
        let factor = i128::from(coefficient);
        let own = scaled(factor, bounds.low, bounds.high);
        // What is left for this term when the others are as large or as small as they can be.
        let left = (
            if low == -INFINITE {
                -INFINITE
            } else {
                low - (greatest - own.high)
            },
            if high == INFINITE {
                INFINITE
            } else {
                high - (least - own.low)
            },
        );
        let (from, to) = if factor > 0 {
            (ceiling(left.0, factor), floor(left.1, factor))
        } else {
            (ceiling(-left.1, -factor), floor(-left.0, -factor))
        };
        if from > bounds.low {
            bounds.low = from;
            changed = true;
        }
        if to < bounds.high {
            bounds.high = to;
            changed = true;
        }
        if bounds.low > bounds.high {
            return None;
        }
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Terms, lower bound and upper bound.
    type Bounds<'a> = (&'a [Term<Variable>], i128, i128);

    fn system(domain: &[Interval<i128>], rows: &[Bounds]) -> System {
        let mut system = System::default();
        for &Interval { low, high } in domain {
            system.variable(low, high);
        }
        for &(terms, low, high) in rows {
            system.bound(terms, low, high);
        }
        system
    }

    #[test]
    fn a_step_above_all_smaller_ones_is_forced() {
        let mut tile = system(
            &[Interval::new(-9, 9), Interval::new(-31, 31)],
            &[(&[Term::new(0, 132), Term::new(1, 4)], -3, 3)],
        );
        assert!(tile.propagate(&mut 0));
        assert_eq!(tile.domain, [Interval::only(0); 2]);
    }

    #[test]
    fn a_common_divisor_excludes_offsets() {
        let mut diagonal = system(&[Interval::new(-31, 31)], &[(&[Term::new(0, 64)], 65, 71)]);
        assert!(!diagonal.propagate(&mut 0));
    }

    #[test]
    fn rows_without_bounds_on_one_side_are_used_on_the_other() {
        let mut guard = system(
            &[Interval::new(0, 100), Interval::new(0, 7)],
            &[(&[Term::new(0, -1), Term::new(1, 1)], 0, INFINITE)],
        );
        assert!(guard.propagate(&mut 0));
        assert_eq!(guard.domain, [Interval::new(0, 7); 2]);
    }
}
