//! Accesses to the shared memory of another block of the cluster, which has to exist for that.
//!
//! CUDA C++ Programming Guide, "Distributed Shared Memory": a block has to exist for as long as others access its
//! shared memory.
//!
//! So it must not exit before them. A weak access has to come before the exit of a thread of that block: by
//! causality, or because its own thread goes on to arrive at a barrier of the cluster that the other thread has waited
//! at. A strong access may be what the other block waits for; it is wrong for sure only when the block has exited in
//! this run.
//!
//! And it must have started before them. A thread learns that by waiting at a barrier of the cluster, by being ordered
//! behind anything that the block has done, or from a thread that has learned it. A strong read may have shown it too,
//! since what it returns may have been written by that block: what comes behind such a read is not reported.
//! A journal does not keep what a thread knew when it made a weak access, so this half is judged without one only.

use std::collections::{BTreeMap, BTreeSet};

use events::Executing;
use shadow::hb::{Engine, Location, Shape, Thread, Time, Warp};

use super::{HappensBefore, each, warp};
use crate::findings::Misused;
use crate::log::Misuse;

/// The last access of a thread by one instruction.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// The thread's own time.
    time: Time,
    /// How often the thread had arrived at the cluster's barrier.
    arrived: u64,
}

/// Who accesses shared memory of other blocks, who knows that these have started, and who exits.
#[derive(Debug)]
pub(super) struct Lifetimes {
    /// Threads of a block.
    threads: u32,
    /// Accesses to the memory of a block that no exit of it is ordered behind, by thread and site.
    open: BTreeMap<u64, BTreeMap<(Thread, u32), Last>>,
    /// The number of the phase of the cluster's barrier that a thread arrives at next.
    arrived: BTreeMap<Thread, u64>,
    /// The number of phases that a thread knows to be over.
    over: BTreeMap<Thread, u64>,
    /// Threads of a block that have exited.
    exited: BTreeMap<u64, u32>,
    /// Blocks that have.
    gone: BTreeSet<u64>,
    /// Since when a thread may know that other blocks run: the first time that it has waited for their cluster's
    /// barrier, or has read memory strongly.
    heard: BTreeMap<Thread, Time>,
    /// Threads and the blocks that they know to have started, or are reported for not knowing it.
    started: BTreeSet<(Thread, u64)>,
    /// False where a journal is read.
    judges_starts: bool,
}

impl Lifetimes {
    /// Nothing without clusters.
    pub(super) fn of(shape: &Shape) -> Option<Self> {
        (shape.cluster != [1; 3]).then(|| Self {
            threads: shape.threads,
            open: BTreeMap::new(),
            arrived: BTreeMap::new(),
            over: BTreeMap::new(),
            exited: BTreeMap::new(),
            gone: BTreeSet::new(),
            heard: BTreeMap::new(),
            started: BTreeSet::new(),
            judges_starts: true,
        })
    }

    /// Does not look for blocks that may not have started.
    pub(super) fn without_starts(self) -> Self {
        Self {
            judges_starts: false,
            ..self
        }
    }

    /// A thread accesses shared memory of the block `owner`: what is wrong with that.
    fn access(
        &mut self,
        engine: &mut Engine,
        me: Thread,
        site: u32,
        owner: u64,
        weak: bool,
    ) -> Option<Misuse> {
        if me.cta == owner {
            return None;
        }
        if self.gone.contains(&owner) {
            return Some(Misuse::Departed);
        }
        if weak {
            let last = Last {
                time: engine.knows(me, me),
                arrived: self.arrived.get(&me).copied().unwrap_or(0),
            };
            let of = self.open.entry(owner).or_default();
            of.insert((me, site), last);
        }
        let first = self.judges_starts && self.started.insert((me, owner));
        (first && !self.knows_started(engine, me, owner)).then_some(Misuse::Unstarted)
    }

    /// Whether a thread may know that a block has started.
    fn knows_started(&self, engine: &mut Engine, me: Thread, owner: u64) -> bool {
        let mut heard = self.heard.iter();
        self.heard.contains_key(&me)
            || engine.knows_cta(me, owner)
            || heard.any(|(&threads, &since)| engine.knows(me, threads) >= since)
    }

    /// Lanes may get to know that other blocks run: they have waited for the cluster's barrier, or read memory strongly.
    pub(super) fn hear(&mut self, engine: &mut Engine, warp: Warp, lanes: u32) {
        for me in each(lanes).map(|lane| warp.lane(lane)) {
            let now = || engine.knows(me, me);
            self.heard.entry(me).or_insert_with(now);
        }
    }

    /// Lanes arrive at a phase of the cluster's barrier, counted from 0.
    pub(super) fn arrive(&mut self, warp: Warp, lanes: u32, phase: u64) {
        let threads = each(lanes).map(|lane| (warp.lane(lane), phase + 1));
        self.arrived.extend(threads);
    }

    /// Lanes have waited for a phase of it.
    pub(super) fn wait(&mut self, engine: &mut Engine, warp: Warp, lanes: u32, phase: u64) {
        self.hear(engine, warp, lanes);
        let threads = each(lanes).map(|lane| (warp.lane(lane), phase + 1));
        self.over.extend(threads);
    }

    /// Lanes exit. With the last of a block, all that have accessed its memory without being ordered before any of
    /// its exits, and by which site.
    pub(super) fn exit(
        &mut self,
        engine: &mut Engine,
        warp: Warp,
        lanes: u32,
    ) -> Vec<(Thread, u32)> {
        let owner = warp.cta;
        if let Some(open) = self.open.get_mut(&owner) {
            for me in each(lanes).map(|lane| warp.lane(lane)) {
                let over = self.over.get(&me).copied().unwrap_or(0);
                open.retain(|&(threads, _), last| {
                    over <= last.arrived && engine.knows(me, threads) < last.time
                });
            }
        }
        let exited = self.exited.entry(owner).or_default();
        *exited += lanes.count_ones();
        if *exited < self.threads {
            return Vec::new();
        }
        self.exited.remove(&owner);
        self.gone.insert(owner);
        let open = self.open.remove(&owner).unwrap_or_default();
        open.into_keys().collect()
    }
}

/// An instruction that accesses memory of a block that may not exist.
fn misused(misuse: Misuse, site: u32) -> Misused {
    Misused {
        misuse,
        before: site,
        now: site,
    }
}

impl HappensBefore {
    /// Lanes access memory, weakly or not: perhaps that of a block that has not started or has exited.
    pub(super) fn exists(
        &mut self,
        threads: Executing,
        weak: bool,
        location: impl Fn(u32) -> Location,
    ) {
        let (Some(lifetimes), Some(meaning)) =
            (&mut self.lifetimes, self.instructions.at(threads.offset))
        else {
            return;
        };
        for lane in each(threads.lanes) {
            let Location::Shared { cta, .. } = location(lane) else {
                continue;
            };
            let (me, site) = (warp(threads).lane(lane), meaning.site);
            let misuse = lifetimes.access(&mut self.engine, me, site, cta, weak);
            if let Some(misuse) = misuse {
                let key = misused(misuse, site);
                self.misuses.entry(key).or_insert((me, 0)).1 += 1;
            }
        }
    }

    /// Lanes exit, perhaps the last of their block.
    pub(super) fn departs(&mut self, threads: Executing) {
        let Some(lifetimes) = &mut self.lifetimes else {
            return;
        };
        for (thread, site) in lifetimes.exit(&mut self.engine, warp(threads), threads.lanes) {
            let key = misused(Misuse::Departed, site);
            self.misuses.entry(key).or_insert((thread, 0)).1 += 1;
        }
    }
}
