//! The judge: unbounded vector clocks over every access of one granule, written from the definition
//! of a race and from nothing else.

use shadow::rule;

/// Where a thread is in its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadId {
    pub(crate) cta: u64,
    pub(crate) warp: u32,
    pub(crate) lane: u32,
}

/// Threads at most.
pub(crate) const THREADS: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Access {
    thread: usize,
    kind: u32,
    time: u32,
}

/// What has happened so far.
#[derive(Clone, Debug)]
pub(crate) struct Oracle<'a> {
    thread_ids: &'a [ThreadId],
    /// `clocks[t][u]`: the last time of `u` that is ordered before what `t` does next.
    clocks: [[u32; THREADS]; THREADS],
    accesses: Vec<Access>,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(thread_ids: &'a [ThreadId]) -> Self {
        let mut clocks = [[0; THREADS]; THREADS];
        (0..THREADS).for_each(|t| clocks[t][t] = 1);
        Self {
            thread_ids,
            clocks,
            accesses: Vec::new(),
        }
    }

    /// A barrier of all threads for which `joins` holds.
    pub(crate) fn barrier(&mut self, joins: impl Fn(&ThreadId) -> bool) {
        let mut joined = [0; THREADS];
        let members = || (0..self.thread_ids.len()).filter(|&t| joins(&self.thread_ids[t]));
        for t in members() {
            (0..THREADS).for_each(|u| joined[u] = joined[u].max(self.clocks[t][u]));
        }
        for t in members().collect::<Vec<_>>() {
            self.clocks[t] = joined;
            self.clocks[t][t] += 1;
        }
    }

    /// An access; true if it races with an earlier one.
    pub(crate) fn access(&mut self, thread: usize, kind: u32) -> bool {
        let races = self
            .accesses
            .iter()
            .any(|earlier| self.races(earlier, thread, kind));
        self.accesses.push(Access {
            thread,
            kind,
            time: self.clocks[thread][thread],
        });
        races
    }

    /// Takes the last access back.
    pub(crate) fn undo(&mut self) {
        self.accesses.pop();
    }

    fn races(&self, earlier: &Access, thread: usize, kind: u32) -> bool {
        let writes = |kind| kind >= rule::STRONG_WRITE_GPU;
        let strong = |kind| kind != rule::WEAK_LOAD && kind != rule::WEAK_STORE;
        let narrow = |kind| matches!(kind, rule::STRONG_LOAD_CTA | rule::STRONG_WRITE_CTA);
        if earlier.thread == thread || !(writes(earlier.kind) || writes(kind)) {
            return false;
        }
        let same_cta = self.thread_ids[earlier.thread].cta == self.thread_ids[thread].cta;
        let included = same_cta || !(narrow(earlier.kind) || narrow(kind));
        let morally_strong = strong(earlier.kind) && strong(kind) && included;
        let ordered = earlier.time <= self.clocks[thread][earlier.thread];
        !morally_strong && !ordered
    }
}
