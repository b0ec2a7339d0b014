//! Which writes a thread has observed, without having acquired what precedes them.

use alloc::vec::Vec;

use super::clock::Time;
use super::thread::Thread;

/// A position in the observation order of one location: a strong write starts a chain, and each
/// read-modify-write that observes its last one is the next. Chain 0 is none.
///
/// PTX ISA, "Observation Order" and "Causality Order": whatever comes after an operation that has
/// observed a write comes after that write, though not after what precedes the write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Observed {
    pub(crate) chain: u32,
    pub(crate) index: u32,
}

/// A thread has observed the writes of a chain up to a position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) thread: Thread,
    /// The thread's own time.
    pub(crate) time: Time,
    pub(crate) order: Observed,
}

/// Records that [`Seen::compact`] spares although hardly anybody needs them.
const SPARED: usize = 64;

/// In place of a thread and its time: a whole CTA.
const COMMON: (u32, u32, Time) = (0, 0, 0);

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
        let (mut keyed, mut spared) = (Vec::with_capacity(seen.len()), Vec::new());
        for of in seen.drain(..).filter(|of| alive(of.order.chain)) {
            let Thread { cta, warp, lane } = of.thread;
            let Some(met) = met(cta) else {
                spared.push(of);
                continue;
            };
            // What all of a CTA know is kept once, in the name of any thread. Somebody elsewhere
            // may know of another thread only.
            let one = match of.time <= met {
                true => COMMON,
                false => (warp + 1, lane, of.time),
            };
            let key = (of.order.chain, cta, one);
            keyed.push(((key, core::cmp::Reverse(of.order.index)), of));
        }
        keyed.sort_unstable_by_key(|(key, _)| *key);
        let mut last = None;
        for ((key, _), of) in keyed {
            match (last == Some(key), key.2) {
                (false, _) => seen.push(of),
                (true, COMMON) => spared.push(of),
                (true, _) => {}
            }
            last = Some(key);
        }
        if spared.len() > SPARED {
            let most = |of: &Self| core::cmp::Reverse(of.order);
            spared.select_nth_unstable_by_key(SPARED, most);
            spared.truncate(SPARED);
        }
        seen.append(&mut spared);
    }
}
