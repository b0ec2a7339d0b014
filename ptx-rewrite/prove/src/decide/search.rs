//! Whether the system of a pair has a solution in which the two threads differ: bounds are tightened, then the
//! difference with the largest step is split by its sign or its values, and so on.

use super::eliminate;
use super::pair::{Builder, Detail};
use super::system::Variable;
use crate::interval::Interval;

/// Most parts into which one system is split, with differences only.
const QUICK_PARTS: u32 = 40;

/// The same, with all conditions.
const FULL_PARTS: u32 = 250;

/// Up to how many values a variable is split into its values.
const VALUES: i128 = 3;

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The accesses cannot meet.
    Nothing,
    /// No proof was found that they cannot.
    Perhaps,
    /// The search was given up.
    Stopped,
}

/// Searches the system that was built last.
pub(super) fn search(builder: &mut Builder, detail: Detail, steps: &mut u64, budget: u64) -> Found {
    if builder.system.domain.len() >= usize::from(Variable::MAX) {
        return Found::Stopped;
    }
    let mut search = Search {
        builder,
        detail,
        steps,
        budget,
        parts: 0,
        saved: Vec::new(),
    };
    search.part()
}

struct Search<'s, 'a> {
    builder: &'s mut Builder<'a>,
    detail: Detail,
    steps: &'s mut u64,
    budget: u64,
    parts: u32,
    /// Bounds to come back to.
    saved: Vec<Interval<i128>>,
}

impl Search<'_, '_> {
    fn part(&mut self) -> Found {
        if !self.builder.system.propagate(self.steps) {
            return Found::Nothing;
        }
        let domain = &self.builder.system.domain;
        let of = |variable: &Variable| domain[usize::from(*variable)];
        if !self.builder.unnamed
            && self
                .builder
                .identity
                .iter()
                .all(|variable| of(variable) == Interval::only(0))
        {
            return Found::Nothing;
        }
        self.parts += 1;
        let most = if self.detail == Detail::Full {
            FULL_PARTS
        } else {
            QUICK_PARTS
        };
        if self.parts > most || *self.steps > self.budget {
            return Found::Stopped;
        }
        let differ = self.builder.unnamed
            || self
                .builder
                .identity
                .iter()
                .map(of)
                .any(|differences| !differences.contains(0));
        if self.detail == Detail::Full
            && differ
            && eliminate::empty(&self.builder.system, self.steps)
        {
            return Found::Nothing;
        }
        let domain = &self.builder.system.domain;
        let splits = |variable: &&Variable| {
            let Interval { low, high } = domain[usize::from(**variable)];
            low < high && (high - low < VALUES || low <= 0 && high >= 0)
        };
        let Some(&variable) = self.builder.order.iter().find(splits) else {
            return Found::Perhaps;
        };
        let Interval { low, high } = domain[usize::from(variable)];
        if high - low < VALUES {
            for value in low..=high {
                match self.branch(variable, Interval::only(value)) {
                    Found::Nothing => {}
                    found => return found,
                }
            }
            return Found::Nothing;
        }
        for part in [
            Interval::only(0),
            Interval::new(low, -1),
            Interval::new(1, high),
        ] {
            if !part.is_empty() {
                match self.branch(variable, part) {
                    Found::Nothing => {}
                    found => return found,
                }
            }
        }
        Found::Nothing
    }

    /// Searches with tighter bounds of a variable.
    fn branch(&mut self, variable: Variable, bounds: Interval<i128>) -> Found {
        let start = self.saved.len();
        self.saved.extend_from_slice(&self.builder.system.domain);
        self.builder.system.domain[usize::from(variable)] = bounds;
        let found = self.part();
        self.builder
            .system
            .domain
            .copy_from_slice(&self.saved[start..]);
        self.saved.truncate(start);
        found
    }
}
