//! The accesses of a launch as linear forms over integers: what is left of it when its numbers are known.
//!
//! Two threads execute two accesses. Each has its own value of every symbol, except where the [relation](Relation)
//! of the two threads makes them equal. The accesses conflict if their addresses can be less than their sizes apart
//! while all that constrains the symbols holds for both threads.

use crate::interval::Interval;

/// Index of a symbol in [`Problem::symbols`].
pub type SymbolId = u32;

/// Index of a loop in the kernel.
pub type LoopId = u32;

/// A dimension of the grid or of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// The first dimension.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

/// Where the value of a symbol comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// `%tid`.
    Thread(Axis),
    /// `%ctaid`.
    Block(Axis),
    /// Iterations of a loop before this one, from 0.
    Counter(LoopId),
    /// Any value of its range; each execution of each thread has its own.
    Unknown,
    /// Any value of its range; all threads of a block have the same in one barrier interval and one iteration of the
    /// loops around the access, and blocks may differ.
    BlockUniform,
    /// Any value of its range; all threads of the grid have the same during the whole launch.
    GridUniform,
}

/// An integer that is not known before the launch runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Where its value comes from.
    pub kind: SymbolKind,
    /// Least and greatest value, inclusive.
    pub range: Interval<i64>,
}

/// A multiple of a symbol, or of another variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term<V = SymbolId> {
    /// The symbol.
    pub variable: V,
    /// What it is multiplied by.
    pub coefficient: i64,
}

impl<V> Term<V> {
    /// A multiple of a symbol.
    pub const fn new(variable: V, coefficient: i64) -> Self {
        Self {
            variable,
            coefficient,
        }
    }
}

/// A sum of multiples of symbols and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Linear {
    /// Symbols in ascending order, each once, with a coefficient other than 0.
    pub terms: Vec<Term>,
    /// The constant.
    pub constant: i128,
}

/// A memory of its own: addresses of different spaces never meet.
pub use events::Memory as Space;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Effect {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes in one step; two of one [class](Self::Atomic::class) do not race with each other.
    Atomic {
        /// Atomics of one class have elements of one size, and scopes that include each other.
        class: u32,
    },
}

/// One way in which an access computes its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The address of its first byte.
    pub address: Linear,
    /// What holds where this is the way: each form is at least 0.
    pub when: Vec<Linear>,
}

/// An access of a kernel, in one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The memory.
    pub space: Space,
    /// What it does.
    pub effect: Effect,
    /// How many bytes one thread accesses.
    pub bytes: u32,
    /// Its addresses: one of these, each time it is executed. Without any, it can be every address.
    pub alternatives: Vec<Alternative>,
    /// What holds whenever it is executed: each form is at least 0.
    pub path: Vec<Linear>,
    /// The loops around it, outermost first.
    pub loops: Vec<LoopId>,
}

/// How far apart the iterations of a loop are in which two accesses are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Distance {
    /// The loop, which is around both.
    pub around: LoopId,
    /// The counter of one access minus the counter of the other.
    pub iterations: i64,
}

/// How two accesses of one block can be in the same barrier interval.
///
/// For each loop named, the counter of the second access minus the counter of the first; counters of other loops are
/// independent of each other.
pub type Meeting = Vec<Distance>;

/// Which threads execute the two accesses of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation<'a> {
    /// Threads of different blocks.
    Blocks,
    /// Different threads of one block, in one barrier interval.
    Threads(&'a [Distance]),
}

/// A launch as integers.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// The symbols of all forms. Where an axis of the grid or the block has none, it has any number of coordinates.
    pub symbols: Vec<Symbol>,
    /// What holds between symbols in every execution: each form is 0. Quotients and remainders are defined here.
    pub equations: Vec<Linear>,
    /// The accesses.
    pub accesses: Vec<Access>,
    /// By pair of accesses, the lower index first: how the two can be in one barrier interval of a block, the second
    /// counted from the first. An empty list if barriers always order them. Absent if nothing is known, which means
    /// that they can meet with any counters.
    pub meetings: std::collections::BTreeMap<(usize, usize), Vec<Meeting>>,
    /// Pairs of accesses, the lower index first, of which it is not asked whether they conflict.
    pub known: std::collections::BTreeSet<(usize, usize)>,
}
