//! Two accesses by two threads as a system of bounds that has a solution if the accesses can meet.
//!
//! The first thread's values of the symbols, the second's, and their differences are variables. Where both addresses
//! have a symbol with the same coefficient, only its difference matters; a sum of symbols that conditions bound
//! (`x < width`, where `x` is made of a block's and a thread's index) is a variable as well, so that a row of a
//! matrix is a step that exceeds all smaller ones together.

use super::integer::{INFINITE, TERMS, gcd, scaled};
use super::shape::{Bounded, Shape, multiple, without};
use super::system::{System, Variable};
use crate::interval::Interval;
use crate::problem::{Distance, Linear, Problem, SymbolId, SymbolKind, Term};

/// Which two threads execute the accesses, and what they have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Between<'a> {
    /// Threads of different blocks; otherwise different threads of one block.
    pub(super) blocks: bool,
    /// By loop around both accesses: the first access's counter minus the second's.
    pub(super) counters: &'a [Distance],
}

/// Whether all of a pair's conditions are in its system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Differences only.
    Differences,
    /// Each thread's own conditions too.
    Full,
}

/// Whose value of a symbol a variable is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The first thread's; not used where both threads' values follow from each other.
    First,
    /// The second thread's.
    Second,
    /// The first's minus the second's.
    Difference,
}

/// How the two threads' values of a symbol are related.
#[derive(Clone, Copy)]
enum Fate {
    /// The first's minus the second's is known.
    Fixed(i64),
    /// Not at all.
    Free,
}

/// No variable yet.
const NONE: Variable = Variable::MAX;

/// Most symbols of a problem, so that variables can be numbered.
pub(super) const SYMBOLS: usize = 8_000;

/// Builds the systems of pairs.
pub(super) struct Builder<'a> {
    problem: &'a Problem,
    /// The system that was built last.
    pub(super) system: System,
    /// By symbol: the variables of its sides.
    variables: Vec<[Variable; 3]>,
    used: Vec<SymbolId>,
    /// Variables to decide in this order.
    pub(super) order: Vec<Variable>,
    /// The differences of the coordinates of which one is not 0.
    pub(super) identity: Vec<Variable>,
    /// The two threads may differ in a coordinate that no symbol stands for.
    pub(super) unnamed: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(problem: &'a Problem) -> Self {
        Self {
            problem,
            system: System::default(),
            variables: vec![[NONE; 3]; problem.symbols.len()],
            used: Vec::new(),
            order: Vec::new(),
            identity: Vec::new(),
            unnamed: false,
        }
    }

    /// Builds the system of two accesses, the first address minus the second, without constants, being in `window`.
    pub(super) fn build(
        &mut self,
        first: &Shape,
        second: &Shape,
        between: &Between,
        window: Interval<i128>,
        detail: Detail,
    ) {
        for symbol in self.used.drain(..) {
            self.variables[symbol as usize] = [NONE; 3];
        }
        self.system.clear();
        self.order.clear();
        self.identity.clear();
        let mut pair = Pair {
            share: !between.blocks && same_iteration(first, second, between.counters),
            first,
            second,
            between,
            builder: self,
        };
        pair.address(window, detail);
        pair.coordinates();
        pair.equations();
        if detail == Detail::Full {
            pair.conditions();
        }
        pair.link(detail);
    }
}

/// Whether a meeting is within one iteration of all loops around two accesses.
fn same_iteration(first: &Shape, second: &Shape, counters: &[Distance]) -> bool {
    first.loops == second.loops
        && first.loops.iter().all(|&around| {
            counters.contains(&Distance {
                around,
                iterations: 0,
            })
        })
}

/// A pair of which the system is being built.
struct Pair<'p, 'a, 'b> {
    builder: &'p mut Builder<'a>,
    first: &'p Shape<'b>,
    second: &'p Shape<'b>,
    between: &'p Between<'p>,
    /// Both threads have the same values of what is uniform in a block.
    share: bool,
}

/// Terms and a constant, being collected.
#[derive(Default)]
struct Sum {
    terms: Vec<Term<Variable>>,
    constant: i128,
}

impl Sum {
    fn add(&mut self, variable: Variable, coefficient: i64) {
        match self.terms.iter_mut().find(|term| term.variable == variable) {
            Some(term) => term.coefficient += coefficient,
            None => self.terms.push(Term::new(variable, coefficient)),
        }
    }

    fn finish(&mut self) {
        self.terms.retain(|term| term.coefficient != 0);
        self.terms.sort_unstable_by_key(|term| term.variable);
    }
}

impl Pair<'_, '_, '_> {
    /// How the threads' values of a symbol are related.
    fn fate(&self, symbol: SymbolId) -> Fate {
        let blocks = self.between.blocks;
        match self.builder.problem.symbols[symbol as usize].kind {
            SymbolKind::GridUniform => Fate::Fixed(0),
            SymbolKind::Block(_) if !blocks => Fate::Fixed(0),
            SymbolKind::BlockUniform if self.share => Fate::Fixed(0),
            SymbolKind::Counter(around)
                if !blocks
                    && self.first.loops.contains(&around)
                    && self.second.loops.contains(&around) =>
            {
                let known = self
                    .between
                    .counters
                    .iter()
                    .find(|known| known.around == around);
                known.map_or(Fate::Free, |known| Fate::Fixed(known.iterations))
            }
            _ => Fate::Free,
        }
    }

    /// The bounds of one thread's value of a symbol.
    fn domain(&self, shape: &Shape, symbol: SymbolId) -> Interval<i128> {
        let Interval { low, high } = shape.domain[symbol as usize];
        Interval {
            low: low.into(),
            high: high.into(),
        }
    }

    /// The variable that stands for a symbol on a side.
    fn variable(&mut self, side: Side, symbol: SymbolId) -> Variable {
        let known = self.builder.variables[symbol as usize][side as usize];
        if known != NONE {
            return known;
        }
        let (first, second) = (
            self.domain(self.first, symbol),
            self.domain(self.second, symbol),
        );
        let Interval { low, high } = match (side, self.fate(symbol)) {
            (Side::First, _) => first,
            (Side::Second, Fate::Fixed(difference)) => {
                let difference = i128::from(difference);
                Interval::new(
                    second.low.max(first.low - difference),
                    second.high.min(first.high - difference),
                )
            }
            (Side::Second, Fate::Free) => second,
            (Side::Difference, _) => {
                Interval::new(first.low - second.high, first.high - second.low)
            }
        };
        let variable = self.builder.system.variable(low, high);
        let variables = &mut self.builder.variables[symbol as usize];
        if *variables == [NONE; 3] {
            self.builder.used.push(symbol);
        }
        variables[side as usize] = variable;
        variable
    }

    /// Adds a multiple of the first thread's value.
    fn add_first(&mut self, sum: &mut Sum, symbol: SymbolId, coefficient: i64) {
        match self.fate(symbol) {
            Fate::Fixed(difference) => {
                sum.constant += i128::from(coefficient) * i128::from(difference);
                let variable = self.variable(Side::Second, symbol);
                sum.add(variable, coefficient);
            }
            Fate::Free => {
                let variable = self.variable(Side::First, symbol);
                sum.add(variable, coefficient);
            }
        }
    }

    /// Adds a multiple of the second thread's value.
    fn add_second(&mut self, sum: &mut Sum, symbol: SymbolId, coefficient: i64) {
        let variable = self.variable(Side::Second, symbol);
        sum.add(variable, coefficient);
    }

    /// Adds a multiple of the difference of the two values.
    fn add_difference(&mut self, sum: &mut Sum, symbol: SymbolId, coefficient: i64) {
        match self.fate(symbol) {
            Fate::Fixed(difference) => {
                sum.constant += i128::from(coefficient) * i128::from(difference)
            }
            Fate::Free => {
                let variable = self.variable(Side::Difference, symbol);
                sum.add(variable, coefficient);
            }
        }
    }

    /// Bounds a sum.
    fn bound(&mut self, mut sum: Sum, low: i128, high: i128) {
        sum.finish();
        let low = if low == -INFINITE {
            low
        } else {
            low - sum.constant
        };
        let high = if high == INFINITE {
            high
        } else {
            high - sum.constant
        };
        self.builder.system.bound(&sum.terms, low, high);
    }

    /// The addresses are in the window, and what conditions say of sums in them.
    fn address(&mut self, window: Interval<i128>, detail: Detail) {
        let mut sum = Sum::default();
        let (mut first, mut second) = (self.first.terms, self.second.terms);
        loop {
            let symbol = match (first, second) {
                ([], []) => break,
                ([a, ..], []) => a.variable,
                ([], [b, ..]) => b.variable,
                ([a, ..], [b, ..]) => a.variable.min(b.variable),
            };
            let coefficient = |terms: &mut &[Term]| match *terms {
                [term, rest @ ..] if term.variable == symbol => {
                    *terms = rest;
                    term.coefficient
                }
                _ => 0,
            };
            let (a, b) = (coefficient(&mut first), coefficient(&mut second));
            if a == b {
                self.add_difference(&mut sum, symbol, a);
                continue;
            }
            if a != 0 {
                self.add_first(&mut sum, symbol, a);
            }
            if b != 0 {
                self.add_second(&mut sum, symbol, -b);
            }
        }
        sum.finish();
        let steps = self.sums(sum.terms.clone());
        let mut order = steps.clone();
        order.sort_by_key(|term| std::cmp::Reverse(term.coefficient.unsigned_abs()));
        let constant = sum.constant;
        if detail == Detail::Full {
            let window = Interval::new(window.low - constant, window.high - constant);
            self.digits(&order, window);
            if steps != sum.terms {
                self.builder
                    .system
                    .bound(&sum.terms, window.low, window.high);
            }
        }
        self.builder
            .order
            .extend(order.iter().map(|term| term.variable));
        self.bound(
            Sum {
                terms: steps,
                constant,
            },
            window.low,
            window.high,
        );
    }

    /// Makes variables of the terms whose coefficients are multiples of a number above all smaller coefficients: the
    /// digits of the distance of the addresses.
    fn digits(&mut self, order: &[Term<Variable>], window: Interval<i128>) {
        let mut common = 0;
        for (at, pair) in order.windows(2).enumerate() {
            let next = pair[1].coefficient.abs().into();
            common = gcd(common, pair[0].coefficient.into());
            if at == 0 || common <= next {
                continue;
            }
            let (high, low) = order.split_at(at + 1);
            let divisor = i64::try_from(common).unwrap_or(i64::MAX);
            let mut terms: Vec<Term<Variable>> = high
                .iter()
                .map(|term| Term::new(term.variable, term.coefficient / divisor))
                .collect();
            let natural = self.natural(&terms);
            let digit = self.builder.system.variable(natural.low, natural.high);
            terms.push(Term::new(digit, -1));
            self.builder.system.bound(&terms, 0, 0);
            let mut terms = low.to_vec();
            terms.push(Term::new(digit, divisor));
            self.builder.system.bound(&terms, window.low, window.high);
            self.builder.order.push(digit);
        }
    }

    /// The bounds that a sum has by those of its variables.
    fn natural(&self, terms: &[Term<Variable>]) -> Interval<i128> {
        terms.iter().fold(Interval::new(0, 0), |natural, term| {
            let own = self.builder.system.domain[usize::from(term.variable)];
            let own = scaled(term.coefficient.into(), own.low, own.high);
            Interval::new(natural.low + own.low, natural.high + own.high)
        })
    }

    /// Makes variables of the sums that conditions bound, and expresses an address by them where they occur in it.
    fn sums(&mut self, mut address: Vec<Term<Variable>>) -> Vec<Term<Variable>> {
        let mut known: Vec<(Vec<Term<Variable>>, Variable)> = Vec::new();
        let replace = |terms: &mut Vec<Term<Variable>>,
                       (part, whole): &(Vec<Term<Variable>>, Variable)| {
            if let Some(factor) = multiple(terms, part) {
                *terms = without(terms, part);
                let at = terms.partition_point(|term| term.variable < *whole);
                terms.insert(at, Term::new(*whole, factor));
            }
        };
        let (first, second) = (self.first, self.second);
        let others = second
            .bounded
            .iter()
            .filter(|sum| first.bounded.iter().all(|other| other.terms != sum.terms));
        for bounded in first.bounded.iter().chain(others) {
            let exists = |term: &Term| {
                let symbol = term.variable;
                let kind = self.builder.problem.symbols[symbol as usize].kind;
                matches!(kind, SymbolKind::Thread(_) | SymbolKind::Block(_))
                    || first.relevant[symbol as usize] && second.relevant[symbol as usize]
            };
            if !bounded.terms.iter().all(exists) {
                continue;
            }
            let (low, high) = (
                bounds(first, &bounded.terms),
                bounds(second, &bounded.terms),
            );
            let (low, high) = (low.low - high.high, low.high - high.low);
            let mut sum = Sum::default();
            for term in &bounded.terms {
                self.add_difference(&mut sum, term.variable, term.coefficient);
            }
            sum.finish();
            let (low, high) = (low - sum.constant, high - sum.constant);
            let natural = self.natural(&sum.terms);
            if low <= natural.low && high >= natural.high {
                continue;
            }
            let plain = sum.terms.clone();
            known
                .iter()
                .for_each(|known| replace(&mut sum.terms, known));
            if plain.len() < 2 || plain.len() > TERMS / 2 {
                self.builder.system.bound(&sum.terms, low, high);
                continue;
            }
            let whole = self
                .builder
                .system
                .variable(low.max(natural.low), high.min(natural.high));
            let new = (sum.terms.clone(), whole);
            sum.terms.push(Term::new(whole, -1));
            self.builder.system.bound(&sum.terms, 0, 0);
            replace(&mut address, &new);
            known.push(new);
        }
        address
    }

    /// The coordinates of which one differs, and the counters whose distance is known, which both must have.
    fn coordinates(&mut self) {
        let mut named = [false; 3];
        for (symbol, of) in (0..).zip(&self.builder.problem.symbols) {
            let axis = match of.kind {
                SymbolKind::Block(axis) if self.between.blocks => axis,
                SymbolKind::Thread(axis) if !self.between.blocks => axis,
                SymbolKind::Counter(_) => {
                    if let Fate::Fixed(_) = self.fate(symbol) {
                        self.variable(Side::Second, symbol);
                    }
                    continue;
                }
                _ => continue,
            };
            if std::mem::replace(&mut named[axis as usize], true) {
                continue;
            }
            if of.range.low < of.range.high {
                let variable = self.variable(Side::Difference, symbol);
                self.builder.identity.push(variable);
                if !self.builder.order.contains(&variable) {
                    self.builder.order.push(variable);
                }
            }
        }
        self.builder.unnamed = named != [true; 3];
    }

    /// The differences of both threads' equations.
    fn equations(&mut self) {
        let (first, second) = (self.first, self.second);
        for number in first
            .equations
            .iter()
            .filter(|number| second.equations.binary_search(number).is_ok())
        {
            let equation = &self.builder.problem.equations[*number as usize];
            let mut sum = Sum::default();
            for term in &equation.terms {
                self.add_difference(&mut sum, term.variable, term.coefficient);
            }
            self.bound(sum, 0, 0);
        }
    }

    /// Each thread's own conditions.
    fn conditions(&mut self) {
        let problem = self.builder.problem;
        let (first, second) = (self.first, self.second);
        let add = [Self::add_first, Self::add_second];
        for (shape, add) in [first, second].into_iter().zip(add) {
            let rows = shape.rows.iter().map(|row| (*row, INFINITE));
            let equations = shape
                .equations
                .iter()
                .map(|number| (&problem.equations[*number as usize], 0));
            for (form, high) in rows.chain(equations) {
                self.condition(form, high, add);
            }
        }
    }

    fn condition(
        &mut self,
        form: &Linear,
        high: i128,
        add: fn(&mut Self, &mut Sum, SymbolId, i64),
    ) {
        let mut sum = Sum {
            terms: Vec::with_capacity(form.terms.len()),
            constant: form.constant,
        };
        for term in &form.terms {
            add(self, &mut sum, term.variable, term.coefficient);
        }
        self.bound(sum, 0, high);
    }

    /// Differences are differences of the two values.
    fn link(&mut self, detail: Detail) {
        for index in 0..self.builder.used.len() {
            let symbol = self.builder.used[index];
            let [first, second, difference] = self.builder.variables[symbol as usize];
            let both = first != NONE && second != NONE;
            let either = first != NONE || second != NONE;
            if difference == NONE || !(both || detail == Detail::Full && either) {
                continue;
            }
            let first = self.variable(Side::First, symbol);
            let second = self.variable(Side::Second, symbol);
            self.builder.system.bound(
                &[
                    Term::new(first, 1),
                    Term::new(second, -1),
                    Term::new(difference, -1),
                ],
                0,
                0,
            );
        }
    }
}

/// The bounds of a sum of symbols in a shape.
fn bounds(shape: &Shape, terms: &[Term]) -> Interval<i128> {
    let own = shape.bounded.iter().find(|bounded| bounded.terms == terms);
    own.map_or_else(
        || super::integer::extent(terms, &shape.domain),
        |Bounded { low, high, .. }| Interval::new(*low, *high),
    )
}
