//! Accesses as single words remember them, and what decides whether two race.

use events::Scope;

use super::clock::{Time, Times};
use super::copy::Copies;
use super::made::Made;
use super::observed::Observed;
use super::thread::{Epoch, Id, Party, Shape, Thread, Warp};

/// How strong an access is; see PTX ISA, "Strong and Weak Operations".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strength {
    /// Ordinary.
    Weak,
    /// Relaxed or more, at a scope.
    Strong(Scope),
    /// A load of data that is read-only while the kernel runs: `ld.global.nc`, textures.
    ReadOnly,
}

/// The part of an access that decides whether others race with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) writes: bool,
    pub(crate) strength: Strength,
    /// First byte in its 16-byte line, and bytes, of the scalar.
    pub(crate) start: u8,
    pub(crate) bytes: u8,
}

/// Accesses of lanes of one warp, at the same time of each, by one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) warp: Id,
    pub(crate) lanes: u32,
    pub(crate) time: Time,
    pub(crate) class: Class,
    /// Bytes of the word, one bit each.
    pub(crate) mask: u8,
    pub(crate) site: u32,
    /// Number of the asynchronous copies that it belongs to while they are under way, else 0.
    pub(crate) copy: u32,
    pub(crate) made: Made,
    /// For strong writes, the highest lane's position among the writes that can be observed together;
    /// the other lanes have the positions before.
    pub(crate) order: Observed,
}

/// Why two accesses race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// At least one is weak, and nothing orders them.
    Unordered,
    /// Both are strong, but one's scope leaves the other's thread out.
    Scope,
    /// Both are strong, but they overlap in part only.
    Overlap,
    /// A write to data that is read as read-only in the same launch.
    ReadOnly,
    /// An asynchronous copy that was not waited for.
    Asynchronous,
    /// A bulk copy reads what was written without a fence between the proxies.
    Proxy,
    /// No race: both are strong and include each other in their scopes. But nothing orders them,
    /// and the program means to; see [`LockOrder`](super::LockOrder).
    Strong,
}

/// Who accesses memory, and what they know.
#[derive(Clone, Copy)]
pub(crate) struct Accessor<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) copies: &'a Copies,
    pub(crate) warp: Warp,
    /// The time of the last barrier that a whole CTA has passed; none when its threads have exited.
    pub(crate) met: &'a dyn Fn(u64) -> Option<Time>,
    /// See [`Engine::with_crowd`](super::Engine::with_crowd).
    pub(crate) crowd: u32,
    /// Of all the lanes that do the access.
    pub(crate) times: &'a Times,
    /// In whose name the access is remembered, and at which time of theirs, if not in their own;
    /// the lanes are the same.
    pub(crate) maker: Option<Epoch>,
}

impl Entry {
    /// The lanes of the entry that are not ordered before threads of `accessor`, and may be of them.
    pub(crate) fn unordered(&self, accessor: &Accessor<'_>) -> u32 {
        let of = self.warp.warp();
        accessor
            .times
            .unordered(accessor.warp, of, self.lanes, self.time)
    }

    /// True when one of the two reads data as read-only.
    pub(crate) fn meets_read_only(&self, other: &Self) -> bool {
        [self, other]
            .map(|of| of.class.strength)
            .contains(&Strength::ReadOnly)
    }

    /// True when `later` does the same again, with no order in between that others could know.
    pub(crate) fn repeats(&self, later: &Self) -> bool {
        (self.warp, self.site, self.time) == (later.warp, later.site, later.time)
    }

    /// Those of some lanes that have written after a position in the observation order.
    pub(crate) fn beyond(&self, lanes: u32, position: u32) -> u32 {
        let later = |lane: u32| (self.lanes >> lane).count_ones() - 1;
        let beyond = super::each(lanes).filter(|&lane| self.order.index - later(lane) > position);
        beyond.fold(0, |all, lane| all | 1 << lane)
    }
}

impl Class {
    /// True for those of which none race with one another at the same location.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self.strength, Strength::Strong(Scope::Gpu | Scope::Sys))
    }

    /// True when whatever races with an access of the class `other` by `them` races with one of
    /// this class by `me` that is ordered after it.
    pub(crate) fn covers(&self, me: Warp, other: &Self, them: Warp) -> bool {
        if other.strength == Strength::ReadOnly || (other.writes && !self.writes) {
            return false;
        }
        match self.strength {
            Strength::Weak => true,
            // Whose scope includes the one may leave out the other, unless they share a CTA.
            Strength::Strong(_) => self == other && me.cta == them.cta,
            Strength::ReadOnly => false,
        }
    }

    /// Why two accesses of overlapping bytes race if nothing orders them.
    pub(crate) fn against(
        &self,
        me: Thread,
        other: &Self,
        them: Thread,
        shape: &Shape,
    ) -> Option<Rule> {
        match (self.strength, other.strength) {
            (Strength::Strong(mine), Strength::Strong(theirs)) => {
                if (self.start, self.bytes) != (other.start, other.bytes) {
                    Some(Rule::Overlap)
                } else {
                    let party = |thread, scope| Party { thread, scope };
                    let moral = shape.mutual(party(me, mine), party(them, theirs));
                    (!moral).then_some(Rule::Scope)
                }
            }
            _ => Some(Rule::Unordered),
        }
    }
}
