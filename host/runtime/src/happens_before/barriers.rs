//! Happens-before in which barriers alone order threads: what holds in it, holds whoever comes first.

use std::collections::BTreeSet;

use events::{Executing, Misuse, Observer};
use shadow::hb::{Access, Engine, Generations, Issue, Kind, Order, Place, Shape, Thread, Warp};

use super::{HappensBefore, warp};

/// An engine that is told of barriers and copies as others, and of no fences. Strong accesses order nothing in it.
pub(super) struct Barriers {
    pub(super) engine: Engine,
    /// Pairs of sites that it does not order.
    unordered: BTreeSet<[u32; 2]>,
    generations: Generations,
    /// Lanes that execute an access together go on together.
    pub(super) warp_synchronous: bool,
    /// The lanes of the last access, if they do.
    pub(super) together: Option<Executing>,
}

impl Barriers {
    fn new(shape: Shape, warp_synchronous: bool) -> Self {
        Self {
            engine: Engine::new(shape),
            unordered: BTreeSet::new(),
            generations: Generations::default(),
            warp_synchronous,
            together: None,
        }
    }

    pub(super) fn access(
        &mut self,
        (warp, lanes): (Warp, u32),
        access: &Access,
        place: impl Fn(u32) -> Place,
    ) {
        let access = match access.order.scope() {
            // Those of scopes that include each other do not race, and what they observe does not count.
            Some(scope) => Access {
                kind: Kind::Store,
                order: Order::Relaxed(scope),
                ..*access
            },
            None => *access,
        };
        let unordered = &mut self.unordered;
        self.engine.access(warp, lanes, &access, place, |race| {
            unordered.insert([race.earlier.site, race.later.site]);
        });
    }

    /// A thread has seen the end of a phase of an mbarrier. In another order it may look too early.
    pub(super) fn looks(&mut self, site: u32) {
        self.unordered.insert([site, site]);
    }

    /// Pairs of sites that barriers do not order.
    pub(super) fn finish(self) -> Vec<[u32; 2]> {
        self.unordered.into_iter().collect()
    }

    pub(super) fn complete(&mut self, cta: u64, id: u32) {
        self.generations.complete(cta, id);
    }

    pub(super) fn exit(&mut self, who: Executing, threads: u32) {
        self.engine.exit(warp(who), who.lanes);
        self.generations.exit(warp(who), who.lanes, threads);
    }

    pub(super) fn copy(&mut self, me: Thread, from: (Place, u32), to: (Place, u32), issue: Issue) {
        let unordered = &mut self.unordered;
        self.engine.copy(me, from, to, issue, |race| {
            unordered.insert([race.earlier.site, race.later.site]);
        });
    }
}

impl HappensBefore {
    /// Lanes come to a barrier of their CTA, before anybody else hears of it.
    pub(super) fn comes(&mut self, who: Executing, id: u32) {
        let Some(Barriers {
            engine,
            generations,
            ..
        }) = &mut self.barriers
        else {
            return;
        };
        let lanes = (warp(who), who.lanes);
        if let Some(early) = generations.arrive(engine, lanes, id, who.offset) {
            self.misuse(who, Misuse::Recycled, early.earlier);
        }
    }
    /// The lanes of an access go on together, if they do.
    pub(super) fn go_on(&mut self) {
        let together = self.barriers.as_mut().and_then(|of| of.together.take());
        if let Some(who) = together {
            self.barrier(who, who.lanes, |engine| {
                engine.warp_barrier(warp(who), who.lanes);
            });
        }
    }

    /// Finds also what would race if barriers alone ordered threads.
    pub(crate) fn with_barriers_alone(mut self, warp_synchronous: bool) -> Self {
        self.barriers = Some(Barriers::new(self.shape, warp_synchronous));
        self
    }
}
