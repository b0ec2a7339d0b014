//! Barriers and warp operations that are misused.

use serde::{Deserialize, Serialize};

/// A use of a barrier or a warp operation that the PTX ISA leaves undefined, or that no program
/// means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misuse {
    /// Lanes of one warp wait at one barrier by different instructions, all `.aligned`.
    Divergent,
    /// Threads arrive at one barrier with different thread counts.
    Counts,
    /// A thread count that is not a multiple of the warp's size.
    PartOfWarp,
    /// A thread arrives at a barrier again before that completes, or at its cluster's before it has
    /// waited.
    Again,
    /// A barrier of the whole CTA completes although threads have exited without having come to it.
    Exited,
    /// The same, and they went on with what comes behind it.
    Skipped,
    /// A thread comes to a barrier without knowing that the barrier has completed before: in another order it takes
    /// part in that earlier generation.
    Recycled,
    /// A lane takes part in an operation whose mask of members leaves it out.
    NotMember,
    /// A lane arrives at an mbarrier more often than its phase still expects.
    Excess,
    /// A lane operates on memory that is no mbarrier: never initialised, or invalidated.
    NotMbarrier,
    /// A thread accesses shared memory of a CTA of its cluster that may not have started.
    Unstarted,
    /// A thread accesses shared memory of a CTA of its cluster that may have exited.
    Departed,
}
