//! What an entry stands for besides itself.

use serde::{Deserialize, Serialize};

use super::{Access, Level, Race, RaceKind};
use crate::names;
use crate::rules::RuleId;

/// Another pair of accesses with the cause of an entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Related {
    /// As an entry's.
    pub id: String,
    /// As an entry's.
    pub fingerprint: String,
    /// As an entry's.
    pub rule: RuleId,
    /// As an entry's.
    pub level: Level,
    /// As an entry's.
    pub same_value: bool,
    /// As an entry's.
    pub kind: RaceKind,
    /// As an entry's.
    pub count: u64,
    /// As an entry's.
    pub kernels: Vec<String>,
    /// First and second access.
    pub accesses: [Access; 2],
}

/// One pair of accesses of an entry: its own, or another one with its cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair<'a> {
    /// As an entry's.
    pub id: &'a str,
    /// As an entry's.
    pub fingerprint: &'a str,
    /// As an entry's.
    pub rule: RuleId,
    /// As an entry's.
    pub level: Level,
    /// First and second access.
    pub accesses: &'a [Access; 2],
    /// The kernel of the entry, demangled.
    pub kernel: &'a str,
    /// All kernels that had it, without parameters and template arguments.
    pub kernels: &'a [String],
}

impl Pair<'_> {
    /// What accesses what where, in the same words on every machine.
    pub fn place(&self) -> String {
        let [first, second] = self.accesses.each_ref().map(Access::place);
        let kernel = names::base(self.kernel);
        format!("{first} and {second} in {kernel}")
    }

    /// The same with how bad it is.
    pub fn text(&self) -> String {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        format!("{level}[{}] {}: {}", self.rule, self.id, self.place())
    }
}

impl Race {
    /// The pairs of accesses that the entry stands for.
    pub fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        let kernel = &self.kernel.name;
        let itself = Pair {
            id: &self.id,
            fingerprint: &self.fingerprint,
            rule: self.rule,
            level: self.level,
            accesses: &self.accesses,
            kernel,
            kernels: &self.kernels,
        };
        let related = self.related.iter().map(|of| Pair {
            id: &of.id,
            fingerprint: &of.fingerprint,
            rule: of.rule,
            level: of.level,
            accesses: &of.accesses,
            kernel,
            kernels: &of.kernels,
        });
        std::iter::once(itself).chain(related)
    }
}
