//! Accesses to the shared memory of a block of the cluster that nothing keeps from exiting.
//!
//! CUDA C++ Programming Guide, "Distributed Shared Memory": a block has to exist for as long as others access its
//! shared memory. So a weak access has to come before the exit of a thread of that block: by causality, or because
//! its own thread goes on to arrive at a barrier of the cluster that the other thread has waited at. A strong access
//! may be what the other block waits for; it is wrong for sure only when the block has exited in this run.

use std::collections::{BTreeMap, BTreeSet};

use events::Executing;
use shadow::hb::{Engine, Place, Shape, Thread, Time, Warp};

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

/// Who accesses shared memory of other blocks, and who exits.
#[derive(Debug)]
pub(super) struct Departures {
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
}

impl Departures {
    /// Nothing without clusters.
    pub(super) fn of(shape: &Shape) -> Option<Self> {
        (shape.cluster != [1; 3]).then(|| Self {
            threads: shape.threads,
            open: BTreeMap::new(),
            arrived: BTreeMap::new(),
            over: BTreeMap::new(),
            exited: BTreeMap::new(),
            gone: BTreeSet::new(),
        })
    }

    /// A thread accesses shared memory of the block `owner`. True when that has exited.
    pub(super) fn access(
        &mut self,
        engine: &mut Engine,
        me: Thread,
        site: u32,
        owner: u64,
        weak: bool,
    ) -> bool {
        if me.cta == owner {
            return false;
        }
        if self.gone.contains(&owner) {
            return true;
        }
        if weak {
            let last = Last {
                time: engine.knows(me, me),
                arrived: self.arrived.get(&me).copied().unwrap_or(0),
            };
            let of = self.open.entry(owner).or_default();
            of.insert((me, site), last);
        }
        false
    }

    /// Lanes arrive at a phase of the cluster's barrier, counted from 0.
    pub(super) fn arrive(&mut self, warp: Warp, lanes: u32, phase: u64) {
        let threads = each(lanes).map(|lane| (warp.lane(lane), phase + 1));
        self.arrived.extend(threads);
    }

    /// Lanes have waited for a phase of it.
    pub(super) fn wait(&mut self, warp: Warp, lanes: u32, phase: u64) {
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
                open.retain(|&(who, _), last| {
                    over <= last.arrived && engine.knows(me, who) < last.time
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

/// An instruction that accesses memory of a block that has exited, perhaps.
fn left_behind(site: u32) -> Misused {
    Misused {
        misuse: Misuse::Departed,
        before: site,
        now: site,
    }
}

impl HappensBefore {
    /// Lanes access memory, weakly or not: perhaps that of a block that has exited.
    pub(super) fn departed(&mut self, who: Executing, weak: bool, place: impl Fn(u32) -> Place) {
        let (Some(departures), Some(meaning)) =
            (&mut self.departures, self.instructions.at(who.offset))
        else {
            return;
        };
        for lane in each(who.lanes) {
            let Place::Shared { cta, .. } = place(lane) else {
                continue;
            };
            let (me, site) = (warp(who).lane(lane), meaning.site);
            if departures.access(&mut self.engine, me, site, cta, weak) {
                let key = left_behind(site);
                self.misuses.entry(key).or_insert((me, 0)).1 += 1;
            }
        }
    }

    /// Lanes exit, perhaps the last of their block.
    pub(super) fn departs(&mut self, who: Executing) {
        let Some(departures) = &mut self.departures else {
            return;
        };
        for (thread, site) in departures.exit(&mut self.engine, warp(who), who.lanes) {
            let key = left_behind(site);
            self.misuses.entry(key).or_insert((thread, 0)).1 += 1;
        }
    }
}
