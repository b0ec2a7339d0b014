//! What would have ordered two accesses, and what repairs a race.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use super::{Allocation, Frame, Space, Thread};

/// What would order two accesses by threads of one block, by the control flow of their function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// What both accesses are part of: updates of one address expression by one operation that commutes.
    pub update: Option<Update>,
    /// Where barriers, or for threads of different blocks the ends of launches, would order them in every execution, one
    /// place for each direction that has one.
    pub points: Vec<Point>,
    /// The barriers are those of a warp; otherwise those of the whole block.
    pub of_warps: bool,
    /// Source of the branch that lets only some threads of the block make one of the accesses, innermost
    /// inlined function first.
    pub conditional: Option<Vec<Frame>>,
    /// Source of an arrival at the cluster's barrier that is `.relaxed`, and so releases nothing.
    pub relaxed_arrival: Option<Vec<Frame>>,
    /// The atomic whose result decides whether a thread makes the one access, which comes behind the other.
    pub counted: Option<Counted>,
    /// A barrier of the block that stands on one way between the accesses, while a branch goes past it.
    #[serde(default)]
    pub passed: Option<Passed>,
    /// The flag between them has been read, and no fence of the device, or within a block none at all, stands between
    /// that and the later access.
    #[serde(default)]
    pub unacquired: bool,
    /// The write of that flag stands before the earlier access in the code.
    #[serde(default)]
    pub early: bool,
    /// The thread of the earlier access has written that flag, and the write stands behind the access in the code.
    #[serde(default)]
    pub late: bool,
    /// One access is a store. The other is a load or an atomic that a loop repeats until it sees another value. One of the
    /// two is weak.
    #[serde(default)]
    pub polled: bool,
    /// An mbarrier that hands the one access over, and that the thread of the other does not wait for.
    #[serde(default)]
    pub unwaited: Option<Unwaited>,
    /// An arrival at a numbered barrier of the block that comes too early to hand an access over.
    #[serde(default)]
    pub early_arrival: Option<EarlyArrival>,
    /// If an access is an asynchronous copy of a group: lines of the program's own PTX in front of which a wait for it
    /// is missing. As few lines as possible are chosen for all races of the function. If the function waits behind the
    /// copy, but not for it, because its group is not committed, the line of that wait.
    #[serde(default)]
    pub waits: Vec<u32>,
    /// For an asynchronous copy that is in no committed group: its arrival at an mbarrier (`cp.async.mbarrier.arrive`).
    #[serde(default)]
    pub completes: Option<CodeLocation>,
    /// There is a path without a barrier of the block from the later access to the earlier one, and none from the earlier
    /// access to the later one.
    #[serde(default)]
    pub only_back: bool,
    /// No path leads back from one access to the other: the code between is executed once.
    #[serde(default)]
    pub is_straight: bool,
    /// The accesses stand in a function that kernels call, and within one call barriers of the block order them.
    #[serde(default)]
    pub between_calls: bool,
    /// The later access is an asynchronous copy, and there is a path to the earlier one that does not wait for it.
    #[serde(default)]
    pub unfinished: bool,
    /// By the text, the locks that the threads of the earlier and the later access have taken.
    #[serde(default)]
    pub locked: [Option<Locked>; 2],
}

/// A lock that a loop takes by an atomic before an access, and that is written again behind the access.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    /// The atomic that takes it.
    pub taken: CodeLocation,
    /// The write that releases it.
    pub released: CodeLocation,
    /// No fence stands between the atomic and the access.
    pub no_entry_fence: bool,
    /// No fence stands between the access and the release.
    pub no_exit_fence: bool,
}

/// A barrier on one of several ways.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The barrier.
    pub barrier: CodeLocation,
    /// The branch that goes past it.
    pub branch: CodeLocation,
}

/// An arrival at an mbarrier after one of two accesses, where no wait comes before the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwaited {
    /// The arrival.
    pub arrival: CodeLocation,
    /// The wait is missing before the earlier access of this run; otherwise before the later one.
    pub before_earlier: bool,
    /// Every path between the two accesses has the arrival.
    #[serde(default)]
    pub is_between: bool,
    /// Every path the other way, from the access that the wait is missing before to the other one, waits for an mbarrier.
    #[serde(default)]
    pub is_waited_back: bool,
}

/// An arrival before one of two accesses, at a barrier that the thread of the other has waited at. None follows the access
/// before the next wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyArrival {
    /// The arrival.
    pub arrival: CodeLocation,
    /// It is made by the thread of the later access of this run.
    pub by_later: bool,
}

/// An instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeLocation {
    /// Its source, innermost inlined function first.
    pub frames: Vec<Frame>,
    /// Its line in the program's own PTX.
    pub line: u32,
}

/// An atomic that counts, as that of a last block does, and which fences are missing beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Its source, innermost inlined function first.
    pub frames: Vec<Frame>,
    /// Its line in the program's own PTX.
    pub line: u32,
    /// There is none between the first access and it.
    pub before: bool,
    /// There is none between it and the second access.
    pub after: bool,
}

/// One or two updates: a load, an operation, and a store to the same address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// The atomic call that does the same.
    pub call: String,
    /// Source of each store, innermost inlined function first.
    pub stores: Vec<Vec<Frame>>,
    /// Its line in the program's own PTX.
    pub lines: Vec<u32>,
    /// Racing stores to other addresses that the same comparison guards, such as the store of a maximum's index.
    #[serde(default)]
    pub with: Vec<CodeLocation>,
}

/// What a barrier is put beside.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Display, IntoStaticStr, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Neighbour {
    /// A read.
    #[default]
    Read,
    /// A write.
    Write,
    /// An atomic.
    Atomic,
    /// An asynchronous copy.
    Copy,
    /// A wait for asynchronous copies.
    Wait,
    /// The initialisation of an mbarrier.
    Initialisation,
}

/// A place for a barrier, in front of or behind an access.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Behind the access; otherwise ahead of it.
    pub after: bool,
    /// What it stands beside.
    pub op: Neighbour,
    /// Source of the access, innermost inlined function first.
    pub frames: Vec<Frame>,
    /// The same of the access that the barrier parts it from.
    pub other: Vec<Frame>,
    /// Line of the access in the program's own PTX.
    pub ptx_line: u32,
    /// The outermost branch or loop around the access that the barrier must stand outside of.
    pub outside: Option<Outside>,
    /// Line of the program's own PTX that the barrier stands in front of.
    pub place: u32,
}

/// The nearest barriers of the code that every path to an access, and every path from it, comes by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    /// Ahead of the access.
    pub before: Option<Barrier>,
    /// Behind it.
    pub after: Option<Barrier>,
}

/// A barrier in the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    /// Whose threads it orders: `block`, `warp` or `cluster`.
    pub of: String,
    /// Its source, innermost inlined function first.
    pub frames: Vec<Frame>,
    /// Its line in the program's own PTX.
    pub ptx_line: u32,
}

/// Code that a barrier must stand outside of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// A loop; otherwise a branch.
    pub is_loop: bool,
    /// Source of what jumps, innermost inlined function first.
    pub frames: Vec<Frame>,
}

/// What would have ordered two accesses, had it been right.
pub type Cause = events::Cause<Thread>;

/// A word of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// Which memory.
    pub space: Space,
    /// Its address, or its offset in shared memory.
    pub address: u64,
    /// What lies there.
    pub allocation: Option<Allocation>,
    /// Sites of the write that released and of the read that observed it, as far as they are known.
    #[serde(default)]
    pub sites: [Option<u32>; 2],
    /// Where these stand, for people: known where logs are merged.
    #[serde(skip)]
    pub places: [Option<String>; 2],
    /// An atomic, acquire or release of the flag has device scope or a wider one. Known when logs are merged.
    #[serde(skip)]
    pub is_of_device: bool,
}
