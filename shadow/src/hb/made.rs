//! When accesses were made, in a count of the caller's.
//!
//! An engine keeps no values: they would take more room than all the rest. Who can tell what a
//! location held at a time only needs to know when each access of a race was made.

/// When an access was made: what [`Engine::stamp`](super::Engine::stamp) said last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Made(u32);

/// Set where an access stands for several.
const SEVERAL: u32 = 1 << 31;

impl Made {
    /// The last count that can be told from others.
    pub const LAST: u32 = SEVERAL - 1;

    pub(crate) fn at(stamp: u32) -> Self {
        Self(stamp.min(Self::LAST))
    }

    /// The count; of several accesses, that of the first.
    pub fn stamp(self) -> u32 {
        self.0 & Self::LAST
    }

    /// The access stands for others that were made later, in the same thread's own time.
    pub fn is_of_several(self) -> bool {
        self.0 & SEVERAL != 0
    }

    /// One access stands for both.
    pub(crate) fn and(self, other: Self) -> Self {
        match self == other {
            true => self,
            false => Self(self.stamp().min(other.stamp()) | SEVERAL),
        }
    }
}
