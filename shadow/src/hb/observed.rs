//! Which writes a thread has observed, without having been told what precedes them.

use alloc::vec::Vec;

use super::clock::Time;
use super::place::Thread;

/// A place in the observation order of one location: a strong write starts a chain, and each
/// read-modify-write that observes its last one is the next. Chain 0 is none.
///
/// PTX ISA, "Observation Order" and "Causality Order": whatever comes after an operation that has
/// observed a write comes after that write, though not after what precedes the write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Observed {
    pub(crate) chain: u32,
    pub(crate) index: u32,
}

/// A thread has observed the writes of a chain up to a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) thread: Thread,
    /// The thread's own time.
    pub(crate) time: Time,
    pub(crate) order: Observed,
}

impl Seen {
    /// Drops what nobody can need any more: chains that are over, threads that have exited, and what
    /// others of the CTA say. `met` gives the time of the last barrier of a CTA.
    pub(crate) fn compact(
        seen: &mut Vec<Self>,
        alive: impl Fn(u32) -> bool,
        met: impl Fn(u64) -> Option<Time>,
    ) {
        // What all of a CTA know is kept once, in the name of any thread.
        let common = |of: &Self| met(of.thread.cta).is_some_and(|met| of.time <= met);
        let key = |of: &Self| {
            let one = match common(of) {
                true => (0, 0, 0),
                false => (of.thread.warp + 1, of.thread.lane, of.time),
            };
            (of.order.chain, of.thread.cta, one)
        };
        seen.retain(|of| met(of.thread.cta).is_some() && alive(of.order.chain));
        seen.sort_unstable_by_key(|of| (key(of), core::cmp::Reverse(of.order.index)));
        seen.dedup_by_key(|of| key(of));
    }
}
