//! What an access's address and conditions say about it alone: the values that symbols and forms can have, and the
//! bytes that it can reach.
//!
//! Accesses whose addresses differ by a constant, under the same conditions, have one shape.

use super::integer::{INFINITE, admissible, ceiling, extent, floor, gcd, scaled};
use crate::interval::Interval;
use crate::problem::{Linear, LoopId, Problem, SymbolId, SymbolKind, Term};

/// How often bounds of symbols are tightened by the rows.
const ROUNDS: usize = 4;

/// Addresses with the same terms under the same conditions.
pub(super) struct Shape<'a> {
    /// The address without its constant.
    pub(super) terms: &'a [Term],
    /// What holds: each form is at least 0.
    pub(super) rows: Vec<&'a Linear>,
    /// What holds: each form is 0.
    pub(super) equations: Vec<u32>,
    /// The loops around the accesses.
    pub(super) loops: &'a [LoopId],
    /// By symbol of the problem: whether the address, a row or an equation has it.
    pub(super) relevant: Vec<bool>,
    /// By symbol of the problem: least and greatest value under the conditions.
    pub(super) domain: Vec<Interval<i64>>,
    /// Sums of several symbols that conditions bound.
    pub(super) bounded: Vec<Bounded>,
    /// Least and greatest value of the address without its constant; `None` if the accesses are never executed.
    pub(super) range: Option<Interval<i128>>,
    /// The address is beyond the limits of the arithmetic.
    pub(super) large: bool,
}

/// A sum of several symbols with bounds of its own, tighter than its symbols' bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounded {
    /// Coefficients without a common divisor, the first positive.
    pub(super) terms: Vec<Term>,
    /// Least value.
    pub(super) low: i128,
    /// Greatest value.
    pub(super) high: i128,
}

/// The parts of a problem that shapes look up.
pub(super) struct Index<'a> {
    problem: &'a Problem,
    ranges: Vec<Interval<i64>>,
    /// By symbol: the equations that define it.
    defining: Vec<Vec<u32>>,
    counters: Vec<(LoopId, SymbolId)>,
}

impl<'a> Index<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        let mut defining = vec![Vec::new(); problem.symbols.len()];
        for (number, equation) in (0_u32..).zip(&problem.equations) {
            if admissible(equation, problem.symbols.len()) {
                for term in &equation.terms {
                    if is_value(problem.symbols[term.variable as usize].kind) {
                        defining[term.variable as usize].push(number);
                    }
                }
            }
        }
        let counters = (0..).zip(&problem.symbols);
        Self {
            problem,
            counters: counters
                .filter_map(|(symbol, of)| match of.kind {
                    SymbolKind::Counter(around) => Some((around, symbol)),
                    _ => None,
                })
                .collect(),
            ranges: problem.symbols.iter().map(|symbol| symbol.range).collect(),
            defining,
        }
    }

    /// What is known of an address under conditions, inside loops.
    pub(super) fn shape(
        &self,
        terms: &'a [Term],
        conditions: impl Iterator<Item = &'a Linear>,
        loops: &'a [LoopId],
        large: bool,
    ) -> Shape<'a> {
        let symbols = self.problem.symbols.len();
        let mut shape = Shape {
            terms: if large { &[] } else { terms },
            rows: conditions.filter(|row| admissible(row, symbols)).collect(),
            equations: Vec::new(),
            loops,
            relevant: vec![false; symbols],
            domain: self.ranges.clone(),
            bounded: Vec::new(),
            range: None,
            large,
        };
        self.close(&mut shape);
        let mut possible = self.tighten(&mut shape);
        possible &= bound(&mut shape);
        if possible {
            shape.range = Some(if large {
                Interval::new(-INFINITE, INFINITE)
            } else {
                reach(&shape)
            });
        }
        shape
    }

    /// Finds the symbols and equations that matter.
    ///
    /// An equation matters if a value that it defines does. The values of a loop that is not around the accesses, and
    /// of one that never runs, need not exist.
    fn close(&self, shape: &mut Shape) {
        let mut open: Vec<SymbolId> = Vec::new();
        let mark = |relevant: &mut Vec<bool>, open: &mut Vec<SymbolId>, symbol: SymbolId| {
            if !std::mem::replace(&mut relevant[symbol as usize], true) {
                open.push(symbol);
            }
        };
        for term in shape
            .terms
            .iter()
            .chain(shape.rows.iter().flat_map(|row| &row.terms))
        {
            mark(&mut shape.relevant, &mut open, term.variable);
        }
        // A loop around the accesses runs, whether or not they depend on its counter.
        for &(around, symbol) in &self.counters {
            if shape.loops.contains(&around) {
                mark(&mut shape.relevant, &mut open, symbol);
            }
        }
        while let Some(symbol) = open.pop() {
            for &number in &self.defining[symbol as usize] {
                let equation = &self.problem.equations[number as usize];
                let exists = equation.terms.iter().all(|&Term { variable, .. }| {
                    let range = self.ranges[variable as usize];
                    shape.relevant[variable as usize]
                        || range.low <= range.high
                            && match self.problem.symbols[variable as usize].kind {
                                SymbolKind::Counter(around) => shape.loops.contains(&around),
                                _ => true,
                            }
                });
                if exists && !shape.equations.contains(&number) {
                    shape.equations.push(number);
                    for term in &equation.terms {
                        mark(&mut shape.relevant, &mut open, term.variable);
                    }
                }
            }
        }
        shape.equations.sort_unstable();
    }

    /// Tightens the bounds of symbols by rows and equations; false if nothing satisfies them.
    fn tighten(&self, shape: &mut Shape) -> bool {
        let possible = |shape: &Shape| {
            let with_bounds = shape.relevant.iter().zip(&shape.domain);
            with_bounds
                .into_iter()
                .all(|(&relevant, range)| !relevant || range.low <= range.high)
        };
        for _ in 0..ROUNDS {
            if !possible(shape) {
                return false;
            }
            let mut changed = false;
            for row in &shape.rows {
                changed |= at_least(&mut shape.domain, &row.terms, row.constant, false);
            }
            for &number in &shape.equations {
                let equation = &self.problem.equations[number as usize];
                changed |= at_least(&mut shape.domain, &equation.terms, equation.constant, false);
                changed |= at_least(&mut shape.domain, &equation.terms, equation.constant, true);
            }
            if !changed {
                break;
            }
        }
        possible(shape)
    }
}

/// Whether a symbol stands for a value that something defines, and not for a coordinate or a counter.
fn is_value(kind: SymbolKind) -> bool {
    match kind {
        SymbolKind::Thread(_) | SymbolKind::Block(_) | SymbolKind::Counter(_) => false,
        SymbolKind::Unknown | SymbolKind::BlockUniform | SymbolKind::GridUniform => true,
    }
}

/// Tightens bounds by a sum that is at least 0, or if it is `negated`, at most 0.
fn at_least(domain: &mut [Interval<i64>], terms: &[Term], constant: i128, negated: bool) -> bool {
    let sign = if negated { -1 } else { 1 };
    let Interval {
        low: least,
        high: greatest,
    } = extent(terms, domain);
    let greatest = if negated {
        -(least + constant)
    } else {
        greatest + constant
    };
    let mut changed = false;
    for &Term {
        variable,
        coefficient,
    } in terms
    {
        let coefficient = sign * i128::from(coefficient);
        let Interval { low, high } = domain[variable as usize];
        if low > high {
            return changed;
        }
        let Interval { low: _, high: own } = scaled(coefficient, low.into(), high.into());
        // The others can add up to `greatest - own`, so this term is at least its opposite.
        let least = own - greatest;
        if coefficient > 0 {
            let bound = ceiling(least, coefficient);
            if bound > low.into() {
                domain[variable as usize].low = clamp(bound);
                changed = true;
            }
        } else {
            let bound = floor(-least, -coefficient);
            if bound < high.into() {
                domain[variable as usize].high = clamp(bound);
                changed = true;
            }
        }
        if changed && domain[variable as usize].low > domain[variable as usize].high {
            return true;
        }
    }
    changed
}

/// The nearest 64-bit integer: a bound beyond it excludes every value or none.
fn clamp(bound: i128) -> i64 {
    i64::try_from(bound).unwrap_or(if bound < 0 { i64::MIN } else { i64::MAX })
}

/// Finds the sums that rows bound more tightly than their symbols do; false if no value is left for one.
fn bound(shape: &mut Shape) -> bool {
    for row in &shape.rows {
        if row.terms.len() < 2 {
            continue;
        }
        let common = row
            .terms
            .iter()
            .fold(0, |common, term| gcd(common, term.coefficient.into()));
        let positive = row.terms[0].coefficient > 0;
        let divisor = if positive { common } else { -common };
        let terms: Vec<Term> = (row.terms.iter())
            .map(|term| Term::new(term.variable, clamp(i128::from(term.coefficient) / divisor)))
            .collect();
        let natural = extent(&terms, &shape.domain);
        let found = shape
            .bounded
            .iter()
            .position(|bounded| bounded.terms == terms);
        let index = found.unwrap_or_else(|| {
            let Interval { low, high } = natural;
            shape.bounded.push(Bounded { terms, low, high });
            shape.bounded.len() - 1
        });
        let bounded = &mut shape.bounded[index];
        if positive {
            bounded.low = bounded.low.max(ceiling(-row.constant, common));
        } else {
            bounded.high = bounded.high.min(floor(row.constant, common));
        }
        if bounded.low > bounded.high {
            return false;
        }
    }
    let domain = &shape.domain;
    shape.bounded.retain(|bounded| {
        Interval::new(bounded.low, bounded.high) != extent(&bounded.terms, domain)
    });
    shape.bounded.sort_by_key(|bounded| bounded.terms.len());
    true
}

/// Least and greatest value of the address, with the help of the sums that have bounds of their own.
fn reach(shape: &Shape) -> Interval<i128> {
    let plain = extent(shape.terms, &shape.domain);
    let mut rest = shape.terms.to_vec();
    let mut helped = (0, 0);
    for bounded in &shape.bounded {
        if let Some(factor) = multiple(&rest, &bounded.terms) {
            let Interval { low, high } = scaled(factor.into(), bounded.low, bounded.high);
            helped = (helped.0 + low, helped.1 + high);
            rest = without(&rest, &bounded.terms);
        }
    }
    let Interval { low, high } = extent(&rest, &shape.domain);
    Interval::new(
        plain.low.max(helped.0 + low),
        plain.high.min(helped.1 + high),
    )
}

/// The factor by which `part` occurs in `terms`, if all of it does.
pub(super) fn multiple<S: Ord + Copy>(terms: &[Term<S>], part: &[Term<S>]) -> Option<i64> {
    let mut factor = None;
    let mut rest = terms.iter();
    for &Term {
        variable,
        coefficient,
    } in part
    {
        let found = rest
            .find(|term| term.variable >= variable)
            .filter(|term| term.variable == variable)?
            .coefficient;
        if found % coefficient != 0
            || *factor.get_or_insert(found / coefficient) != found / coefficient
        {
            return None;
        }
    }
    factor
}

/// The terms whose symbols are not in `part`.
pub(super) fn without<S: Ord + Copy>(terms: &[Term<S>], part: &[Term<S>]) -> Vec<Term<S>> {
    let outside = |term: &&Term<S>| {
        part.binary_search_by_key(&term.variable, |part| part.variable)
            .is_err()
    };
    terms.iter().filter(outside).copied().collect()
}
