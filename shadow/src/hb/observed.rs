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

/// Records that [`Seen::compact`] spares although hardly anybody needs them.
const SPARED: usize = 256;

impl Seen {
    /// Drops what nobody can need any more: chains that are over. Of what all threads of a CTA know
    /// by now, and of what threads of CTAs have seen that have ended, only [`SPARED`] records are
    /// kept, those that have seen most. `met` gives the time of the last barrier of a CTA, and
    /// nothing when it has ended.
    pub(crate) fn compact(
        seen: &mut Vec<Self>,
        alive: impl Fn(u32) -> bool,
        met: impl Fn(u64) -> Option<Time>,
    ) {
        seen.retain(|of| alive(of.order.chain));
        let who = |of: &Self| {
            let Thread { cta, warp, lane } = of.thread;
            (of.order.chain, cta, warp, lane, of.time)
        };
        seen.sort_unstable_by_key(|of| (who(of), core::cmp::Reverse(of.order.index)));
        seen.dedup_by_key(|of| who(of));
        // What all of a CTA know is kept once, in the name of any thread. Somebody elsewhere may
        // know of another thread only.
        let common = |of: &Self| met(of.thread.cta).is_some_and(|met| of.time <= met);
        seen.sort_by_key(|of| {
            let (chain, cta, ..) = who(of);
            (!common(of), chain, cta, core::cmp::Reverse(of.order.index))
        });
        let mut last = None;
        let mut spared = Vec::new();
        seen.retain(|of| {
            let this = common(of).then_some((of.order.chain, of.thread.cta));
            let kept = met(of.thread.cta).is_some() && (this.is_none() || this != last);
            last = this;
            if !kept {
                spared.push(*of);
            }
            kept
        });
        spared.sort_unstable_by_key(|of| core::cmp::Reverse(of.order));
        spared.truncate(SPARED);
        seen.append(&mut spared);
    }
}
