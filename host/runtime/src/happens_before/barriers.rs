//! Happens-before in which barriers and mbarriers alone order threads: what holds in it, holds whoever comes first.

use std::collections::BTreeSet;

use events::{Executing, Misuse, Observer};
use shadow::hb::{
    Access, Active, Engine, Generations, Issue, Location, MemoryOrder, OpKind, Operation, Shape,
    Span, Thread, Unphased,
};

use super::{HappensBefore, active, warp};

/// An engine that receives barriers, mbarriers and copies as others do, and no fences. Strong accesses order nothing
/// in it.
pub(super) struct Barriers {
    pub(super) engine: Engine,
    /// Pairs of sites that it does not order.
    unordered: BTreeSet<[u32; 2]>,
    /// Sites whose part in the phases of an mbarrier may be another one in another order.
    unphased: BTreeSet<(Unphased, u32)>,
    generations: Generations,
    /// Lanes that execute an access together go on together.
    pub(super) warp_synchronous: bool,
    /// The lanes of the last access, if they do.
    pub(super) together: Option<Executing>,
}

/// What barriers and mbarriers alone do not order, by site.
#[derive(Debug, Default)]
pub(crate) struct Unordered {
    /// Pairs of accesses.
    pub(crate) pairs: Vec<[u32; 2]>,
    /// Operations on mbarriers.
    pub(crate) unphased: Vec<(Unphased, u32)>,
}

impl Barriers {
    fn new(shape: Shape, warp_synchronous: bool) -> Self {
        Self {
            engine: Engine::new(shape).following_phases(),
            unordered: BTreeSet::new(),
            unphased: BTreeSet::new(),
            generations: Generations::default(),
            warp_synchronous,
            together: None,
        }
    }

    pub(super) fn access(
        &mut self,
        Active { warp, lanes }: Active,
        access: &Access,
        location: impl Fn(u32) -> Location,
    ) {
        let access = match access.order.scope() {
            // Those of scopes that include each other do not race, and what they observe does not count.
            Some(scope) => Access {
                kind: OpKind::Store,
                order: MemoryOrder::Relaxed(scope),
                ..*access
            },
            None => *access,
        };
        let unordered = &mut self.unordered;
        self.engine.access(warp, lanes, &access, location, |race| {
            unordered.insert([race.earlier.site, race.later.site]);
        });
    }

    /// A thread makes an mbarrier.
    pub(super) fn makes(&mut self, me: Thread, at: Location, site: u32, fenced: bool) {
        self.generations.mbarrier_init(at);
        let unordered = &mut self.unordered;
        self.engine.mbarrier_init(me, at, site, fenced, |race| {
            unordered.insert([race.earlier.site, race.later.site]);
        });
    }

    /// A thread uses an mbarrier's bytes.
    pub(super) fn uses(&mut self, me: Thread, at: Location, access: &Access) {
        let unordered = &mut self.unordered;
        self.engine.mbarrier_used(me, at, access, |race| {
            unordered.insert([race.earlier.site, race.later.site]);
        });
    }

    /// A thread executes an operation that counts at an mbarrier, before the engine hears of it.
    pub(super) fn operates(&mut self, me: Thread, site: u32, at: Location, operation: Operation) {
        let engine = &mut self.engine;
        let wrong = self
            .generations
            .mbarrier_operate(engine, me, site, at, operation);
        self.unphased.extend(wrong.map(|wrong| (wrong, site)));
    }

    /// A thread has found a phase of an mbarrier over, before the engine hears of it.
    pub(super) fn waits(&mut self, me: Thread, site: u32, at: Location) {
        let engine = &mut self.engine;
        let wrong = self.generations.mbarrier_wait(engine, me, site, at);
        self.unphased.extend(wrong.map(|wrong| (wrong, site)));
    }

    /// A phase of an mbarrier is over.
    pub(super) fn ends(&mut self, at: Location) {
        self.unphased.extend(self.generations.mbarrier_complete(at));
    }

    /// What barriers and mbarriers do not order.
    pub(super) fn finish(self) -> Unordered {
        Unordered {
            pairs: self.unordered.into_iter().collect(),
            unphased: self.unphased.into_iter().collect(),
        }
    }

    pub(super) fn complete(&mut self, cta: u64, id: u32) {
        self.generations.complete(cta, id);
    }

    pub(super) fn exit(&mut self, threads: Executing, per_cta: u32) {
        self.engine.exit(warp(threads), threads.lanes);
        self.generations.exit(warp(threads), threads.lanes, per_cta);
    }

    pub(super) fn copy(&mut self, me: Thread, from: Span, to: Span, issue: Issue) {
        let unordered = &mut self.unordered;
        self.engine.copy(me, from, to, issue, |race| {
            unordered.insert([race.earlier.site, race.later.site]);
        });
    }
}

impl HappensBefore {
    /// Lanes come to a barrier of their CTA, before anybody else hears of it.
    pub(super) fn comes(&mut self, threads: Executing, id: u32) {
        let Some(Barriers {
            engine,
            generations,
            ..
        }) = &mut self.barriers
        else {
            return;
        };
        if let Some(early) = generations.arrive(engine, active(threads), id, threads.offset) {
            self.misuse(threads, Misuse::Recycled, early.earlier);
        }
    }
    /// The lanes of an access go on together, if they do.
    pub(super) fn go_on(&mut self) {
        let together = self.barriers.as_mut().and_then(|of| of.together.take());
        if let Some(threads) = together {
            self.barrier(threads, threads.lanes, |engine| {
                engine.warp_barrier(warp(threads), threads.lanes);
            });
        }
    }

    /// Finds also what would race if barriers alone ordered threads.
    pub(crate) fn with_barriers_alone(mut self, warp_synchronous: bool) -> Self {
        self.barriers = Some(Barriers::new(self.shape, warp_synchronous));
        self
    }
}
