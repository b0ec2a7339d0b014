//! Barriers of CTAs and clusters: when they may end, and when they must.

use std::collections::{BTreeMap, BTreeSet};

use super::lane::ThreadId;
use super::{Objection, Result};

/// A barrier of a CTA that somebody has come to.
#[derive(Default)]
struct Barrier {
    arrived: BTreeSet<ThreadId>,
    /// Who also waits.
    waiting: BTreeSet<ThreadId>,
    count: Option<u32>,
}

/// All barriers of a launch.
pub(super) struct Barriers {
    cta: BTreeMap<(u64, u32), Barrier>,
    /// Threads that have not exited.
    live: BTreeSet<ThreadId>,
    /// By the cluster's first CTA: phases that are over, and who has arrived in this one.
    clusters: BTreeMap<u64, (u64, BTreeSet<ThreadId>)>,
    /// The phase that a thread has arrived in last.
    phases: BTreeMap<ThreadId, u64>,
    cluster: u64,
}

impl Barriers {
    pub(super) fn new(live: BTreeSet<ThreadId>, cluster: u32) -> Self {
        Self {
            cta: BTreeMap::new(),
            live,
            clusters: BTreeMap::new(),
            phases: BTreeMap::new(),
            cluster: cluster.into(),
        }
    }

    /// A thread comes to a barrier of its CTA.
    ///
    /// # Errors
    /// When it has been there since the barrier ended last, which PTX leaves undefined.
    pub(super) fn arrive(
        &mut self,
        thread: ThreadId,
        id: u32,
        waits: bool,
        count: Option<u32>,
    ) -> Result<()> {
        let barrier = self.cta.entry((thread.cta, id)).or_default();
        barrier.count = count;
        if !barrier.arrived.insert(thread) {
            return Err(Objection::unknown("a second arrival at a barrier"));
        }
        if waits {
            barrier.waiting.insert(thread);
        }
        Ok(())
    }

    /// The barriers of a CTA that must end now.
    pub(super) fn due(&self, cta: u64) -> Vec<u32> {
        let of_cta = self.cta.iter().filter(|((of, _), _)| *of == cta);
        let due = of_cta.filter(|(_, barrier)| self.is_over(cta, barrier));
        due.map(|((_, id), _)| *id).collect()
    }

    /// Ends a barrier. Gives all who came to it, and those of them who go on.
    pub(super) fn complete(
        &mut self,
        cta: u64,
        id: u32,
    ) -> (BTreeSet<ThreadId>, BTreeSet<ThreadId>) {
        let barrier = self.cta.remove(&(cta, id)).unwrap_or_default();
        (barrier.arrived, barrier.waiting)
    }

    fn is_over(&self, cta: u64, barrier: &Barrier) -> bool {
        let live = self.live.iter().filter(|thread| thread.cta == cta);
        let Some(count) = barrier.count else {
            return live.clone().all(|thread| barrier.arrived.contains(thread));
        };
        // The count is in whole warps: one whose remaining threads are all there counts as such.
        let warps: BTreeSet<u32> = barrier.arrived.iter().map(|thread| thread.warp).collect();
        let there = warps.into_iter().map(|warp| {
            let missing = live
                .clone()
                .any(|thread| thread.warp == warp && !barrier.arrived.contains(thread));
            match missing {
                true => barrier
                    .arrived
                    .iter()
                    .filter(|thread| thread.warp == warp)
                    .count(),
                false => 32,
            }
        });
        there.sum::<usize>() >= count as usize
    }

    /// A thread comes to its cluster's barrier; gives the phase.
    pub(super) fn cluster_arrive(&mut self, thread: ThreadId) -> u64 {
        let first = thread.cta / self.cluster * self.cluster;
        let (phase, arrived) = self.clusters.entry(first).or_default();
        let now = *phase;
        arrived.insert(thread);
        self.phases.insert(thread, now);
        self.settle(first);
        now
    }

    /// The phase of its cluster's barrier that a thread waits for, if that is over.
    pub(super) fn cluster_waited(&self, thread: ThreadId) -> Option<u64> {
        let phase = *self.phases.get(&thread)?;
        let first = thread.cta / self.cluster * self.cluster;
        let (now, _) = self.clusters.get(&first)?;
        (*now > phase).then_some(phase)
    }

    /// A thread ends.
    pub(super) fn exit(&mut self, thread: ThreadId) {
        self.live.remove(&thread);
        self.settle(thread.cta / self.cluster * self.cluster);
    }

    /// Whether a thread has not ended.
    pub(super) fn is_live(&self, thread: ThreadId) -> bool {
        self.live.contains(&thread)
    }

    fn settle(&mut self, first: u64) {
        let members = first..first + self.cluster;
        let mut live = self
            .live
            .iter()
            .filter(|thread| members.contains(&thread.cta));
        if let Some((phase, arrived)) = self.clusters.get_mut(&first)
            && !arrived.is_empty()
            && live.all(|thread| arrived.contains(thread))
        {
            *phase += 1;
            arrived.clear();
        }
    }
}
