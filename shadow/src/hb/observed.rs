//! Which writes a thread has observed, without having been told what precedes them.

use hashbrown::HashMap;

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

/// How far the threads of a CTA have observed the chains of writes to each location.
///
/// It is passed on by barriers of the whole CTA, and by nothing else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observations {
    /// By warp, lane and chain.
    by_thread: HashMap<(u32, u32, u32), u32>,
    /// What all threads know.
    common: HashMap<u32, u32>,
    /// By warp and lane, the writer that a thread has observed last, and the writer's own time.
    writers: HashMap<(u32, u32), (Thread, Time)>,
}

impl Observations {
    pub(crate) fn get(&self, me: Thread, chain: u32) -> u32 {
        let own = self.by_thread.get(&(me.warp, me.lane, chain));
        let common = self.common.get(&chain);
        own.max(common).copied().unwrap_or(0)
    }

    pub(crate) fn enter(&mut self, me: Thread, Observed { chain, index }: Observed) {
        let known = self.by_thread.entry((me.warp, me.lane, chain)).or_default();
        *known = index.max(*known);
    }

    /// A thread observes a write of `writer`.
    pub(crate) fn hear(&mut self, me: Thread, writer: (Thread, Time)) {
        self.writers.insert((me.warp, me.lane), writer);
    }

    /// Whom a thread has heard last.
    pub(crate) fn heard(&self, me: Thread) -> Option<(Thread, Time)> {
        self.writers.get(&(me.warp, me.lane)).copied()
    }

    /// All threads learn what any of them knows.
    pub(crate) fn share(&mut self) {
        for ((_, _, chain), index) in self.by_thread.drain() {
            let known = self.common.entry(chain).or_default();
            *known = index.max(*known);
        }
    }
}
