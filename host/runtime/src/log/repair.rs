//! What the control flow of a kernel says of two accesses that raced.

use serde::{Deserialize, Serialize};

use super::Frame;

/// What would order two accesses by threads of one block, by the control flow of their function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// The atomic call that does what both accesses are part of: updates of one address expression by one
    /// operation that commutes.
    pub update: Option<String>,
    /// Where barriers of the whole block would order them in every execution, one place for each direction
    /// that has one.
    pub points: Vec<Point>,
    /// The function has barriers of the whole block already.
    pub barriers: bool,
    /// Control reaches one from the other without passing a barrier of the block.
    pub connected: bool,
    /// Source of the branch that lets only some threads of the block make one of the accesses, innermost
    /// inlined function first.
    pub conditional: Option<Vec<Frame>>,
    /// Source of an arrival at the cluster's barrier that is `.relaxed`, and so releases nothing.
    pub relaxed_arrival: Option<Vec<Frame>>,
}

/// A place for a barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Behind the access; otherwise ahead of it.
    pub after: bool,
    /// The access is the race's later one.
    pub later: bool,
    /// The outermost branch or loop around the access that the barrier must stand outside of.
    pub outside: Option<Outside>,
}

/// Code that a barrier must stand outside of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// A loop; otherwise a branch.
    pub is_loop: bool,
    /// Source of what jumps, innermost inlined function first.
    pub frames: Vec<Frame>,
}
