//! Problems in few words.

use prove::interval::Interval;
use prove::problem::{
    Access, Alternative, Axis, Distance, Effect, Linear, LoopId, Problem, Space, Symbol, SymbolId,
    SymbolKind, Term,
};
use prove::{
    Argument,
    decide::{Conflict, Decision, Threads, decide},
};

/// A problem with the coordinates as its first symbols.
pub(crate) struct Launch {
    pub(crate) problem: Problem,
}

/// `%tid`.
pub(crate) const TX: SymbolId = 0;
pub(crate) const TY: SymbolId = 1;
/// `%ctaid`.
pub(crate) const BX: SymbolId = 3;
pub(crate) const BY: SymbolId = 4;
pub(crate) const BZ: SymbolId = 5;

/// A form from terms and a constant.
pub(crate) fn form(terms: &[(SymbolId, i64)], constant: i128) -> Linear {
    let mut sorted: Vec<Term> = Vec::new();
    for &(symbol, coefficient) in terms {
        match sorted.iter_mut().find(|term| term.variable == symbol) {
            Some(term) => term.coefficient += coefficient,
            None => sorted.push(Term::new(symbol, coefficient)),
        }
    }
    sorted.retain(|term| term.coefficient != 0);
    sorted.sort_unstable();
    Linear {
        terms: sorted,
        constant,
    }
}

/// Rows: the form is at least the first bound and at most the second.
pub(crate) fn within(terms: &[(SymbolId, i64)], low: i128, high: i128) -> Vec<Linear> {
    let negated: Vec<(SymbolId, i64)> = terms.iter().map(|term| (term.0, -term.1)).collect();
    vec![form(terms, -low), form(&negated, high)]
}

impl Launch {
    pub(crate) fn new(grid: [i64; 3], block: [i64; 3]) -> Self {
        let mut launch = Self {
            problem: Problem::default(),
        };
        for (kind, extents) in [
            (SymbolKind::Thread as fn(Axis) -> SymbolKind, block),
            (SymbolKind::Block, grid),
        ] {
            for (axis, extent) in [Axis::X, Axis::Y, Axis::Z].into_iter().zip(extents) {
                launch.symbol(kind(axis), 0, extent - 1);
            }
        }
        launch
    }

    pub(crate) fn symbol(&mut self, kind: SymbolKind, low: i64, high: i64) -> SymbolId {
        self.problem.symbols.push(Symbol {
            kind,
            range: Interval::new(low, high),
        });
        SymbolId::try_from(self.problem.symbols.len() - 1).unwrap()
    }

    /// Quotient and remainder of a form that is not negative.
    pub(crate) fn divided(
        &mut self,
        terms: &[(SymbolId, i64)],
        most: i64,
        by: i64,
    ) -> (SymbolId, SymbolId) {
        let quotient = self.symbol(SymbolKind::Unknown, 0, most / by);
        let remainder = self.symbol(SymbolKind::Unknown, 0, by - 1);
        let mut equation = terms.to_vec();
        equation.extend([(quotient, -by), (remainder, -1)]);
        self.problem.equations.push(form(&equation, 0));
        (quotient, remainder)
    }

    fn access(
        &mut self,
        space: Space,
        effect: Effect,
        ways: &[Linear],
        path: &[Linear],
        loops: &[LoopId],
    ) -> usize {
        let way = |address: &Linear| Alternative {
            address: address.clone(),
            when: Vec::new(),
        };
        self.problem.accesses.push(Access {
            space,
            effect,
            bytes: 4,
            alternatives: ways.iter().map(way).collect(),
            path: path.to_vec(),
            loops: loops.to_vec(),
        });
        self.problem.accesses.len() - 1
    }

    pub(crate) fn load(&mut self, address: Linear, path: &[Linear], loops: &[LoopId]) -> usize {
        self.access(Space::Global, Effect::Load, &[address], path, loops)
    }

    pub(crate) fn store(&mut self, address: Linear, path: &[Linear], loops: &[LoopId]) -> usize {
        self.access(Space::Global, Effect::Store, &[address], path, loops)
    }

    pub(crate) fn load_shared(
        &mut self,
        address: Linear,
        path: &[Linear],
        loops: &[LoopId],
    ) -> usize {
        self.access(Space::Shared, Effect::Load, &[address], path, loops)
    }

    pub(crate) fn store_shared(
        &mut self,
        address: Linear,
        path: &[Linear],
        loops: &[LoopId],
    ) -> usize {
        self.access(Space::Shared, Effect::Store, &[address], path, loops)
    }

    pub(crate) fn atomic(&mut self, address: Linear, class: u32) -> usize {
        self.access(
            Space::Global,
            Effect::Atomic { class },
            &[address],
            &[],
            &[],
        )
    }

    /// How two accesses can meet: loops, and how many iterations lie between the accesses.
    pub(crate) fn meet(&mut self, first: usize, second: usize, meetings: &[Vec<(LoopId, i64)>]) {
        assert!(first <= second);
        let distance = |&(around, iterations): &(LoopId, i64)| Distance { around, iterations };
        let meeting = |of: &Vec<(LoopId, i64)>| of.iter().map(distance).collect();
        let meetings = meetings.iter().map(meeting).collect();
        self.problem.meetings.insert((first, second), meetings);
    }

    pub(crate) fn decide(&self) -> Decision {
        decide(&self.problem, u64::MAX)
    }

    /// By access: its argument.
    pub(crate) fn proved(&self) -> Vec<Option<Argument>> {
        self.decide().accesses.into_iter().map(Result::ok).collect()
    }

    /// By access: what it conflicts with.
    pub(crate) fn conflicts(&self) -> Vec<Option<(usize, Threads)>> {
        let conflict = |conflict: Conflict| (conflict.against, conflict.between);
        self.decide()
            .accesses
            .into_iter()
            .map(|result| result.err().map(conflict))
            .collect()
    }
}
