//! What only the order of `fence.sc`s, or of atomics that count, has ordered in one run.
//!
//! PTX puts the `fence.sc`s of a run into one order, and each comes after those before it whose scopes
//! include each other. Which comes first is the run's doing: another run may turn them around, and
//! with them all that nothing else orders. So the [`Engine`] that looks for races gets
//! each as [`FenceKind::ScForced`]. A second set of clocks, which follows strong accesses alone, takes the order
//! of this run: a race that these clocks order does not show in this run.
//!
//! So it is with atomics that count threads, of which the engine takes no order ([`super::Atomics::Count`]).
//!
//! Those clocks are a copy of the engine's, made at the first `fence.sc` or at the first such atomic.

use events::Scope;

use super::entry::Rule;
use super::history::WORD;
use super::memory::Memory;
use super::thread::{Active, Id, Thread, Warp};
use super::{Access, Engine, FenceKind, Location, OpKind, Race, Time, each};

/// The causality order with that of `fence.sc`s and of atomics that count.
#[derive(Clone, Debug, Default)]
pub struct FenceOrder {
    engine: Option<Engine>,
    counts: bool,
}

impl FenceOrder {
    /// Something happens that is no access and no fence.
    pub fn forward(&mut self, event: impl Fn(&mut Engine)) {
        if let Some(engine) = &mut self.engine {
            event(engine);
        }
    }

    /// Lanes count, which `main` has not received.
    pub fn count(&mut self, main: &Engine) {
        self.counts = true;
        self.engine.get_or_insert_with(|| main.without_memory());
    }

    /// True when threads have counted.
    pub fn has_counted(&self) -> bool {
        self.counts
    }

    /// The time of `other` up to which this order puts `me` after it, as far as it is more than the engine's.
    pub fn knows(&mut self, me: Thread, other: Thread) -> Time {
        let engine = self.engine.as_mut();
        engine.map_or(0, |engine| engine.knows(me, other))
    }

    /// Whether this order, as far as it is more than the engine's, puts `me` after anything of a CTA.
    pub fn knows_cta(&mut self, me: Thread, other: u64) -> bool {
        let engine = self.engine.as_mut();
        engine.is_some_and(|engine| engine.knows_cta(me, other))
    }

    /// Lanes execute a fence, which `main` has not received. Gives the kind to pass to it.
    pub fn fence(
        &mut self,
        main: &Engine,
        Active { warp, lanes }: Active,
        kind: FenceKind,
        scope: Scope,
    ) -> FenceKind {
        if kind == FenceKind::Sc {
            self.engine.get_or_insert_with(|| main.without_memory());
        }
        self.forward(|engine| engine.fence(warp, lanes, kind, scope));
        kind.forced()
    }

    /// Lanes access memory.
    pub fn access(
        &mut self,
        Active { warp, lanes }: Active,
        access: &Access,
        locations: impl Fn(u32) -> Location,
    ) {
        let Some(engine) = &mut self.engine else {
            return;
        };
        if access.order.scope().is_none() {
            if access.kind == OpKind::Store && !engine.releases.is_empty() {
                let bytes = access.bytes * access.elements;
                each(lanes)
                    .for_each(|lane| engine.releases.weak_write(locations(lane).key(), bytes));
            }
            return;
        }
        engine.enter(warp);
        let mut changed = false;
        for lane in each(lanes) {
            for element in 0..access.elements {
                let key = locations(lane).key() + u64::from(element * access.bytes);
                changed |= engine.synchronise(warp.lane(lane), access, key);
            }
        }
        if changed {
            engine.classify(warp);
        }
    }

    /// False when [`Self::orders`] will not hold for a race that the engine is finding.
    pub fn may_order(&self, race: &Race) -> bool {
        let (me, lanes) = (race.later.thread, race.lanes);
        self.engine.as_ref().is_some_and(|engine| {
            // Who has observed a strong write is asked later.
            race.order.chain != 0 || engine.unordered(me, race.by, lanes, race.time) == 0
        })
    }

    /// True when nothing but the order of `fence.sc`s and counting has ordered the sides of a race that `main` has
    /// found just now, before the later one has come to be known here. Else leaves the lanes of the earlier side that
    /// nothing has ordered, or that lack a proxy fence.
    pub fn orders(&mut self, main: &mut Engine, race: &mut Race) -> bool {
        let (me, warp) = (race.later.thread, race.by);
        let them = warp.lane(race.earlier.thread.lane);
        let Some(engine) = &self.engine else {
            return false;
        };
        // What nobody has waited for is in no order.
        let open = race.rule == Rule::Asynchronous && !Id::of(warp).makes_copies();
        // A bulk copy lacks its proxy fence only where the write is in order.
        if open || matches!(race.rule, Rule::ReadOnly | Rule::Proxy) {
            return false;
        }
        if race.rule == Rule::Asynchronous {
            // What is in order all the same lacks something else.
            return main.knows(me, them) < race.time
                && engine.unordered(me, warp, 1 << them.lane, race.time) == 0;
        }
        let unordered = engine.unordered(me, warp, race.lanes, race.time);
        // A bulk copy reads what was written only behind a proxy fence.
        let lacks =
            |lane: &u32| engine.lacks_proxy_fence(me, race.location, warp.lane(*lane), race.time);
        let unfenced = match race.proxies {
            true => each(race.lanes)
                .filter(lacks)
                .fold(0, |all, lane| all | 1 << lane),
            false => 0,
        };
        // What it had observed itself, `main` knows; what it observes by this access does not order it.
        let knows = |of: Thread, time: Time| {
            of != me && engine.unordered(me, of.warp(), 1 << of.lane, time) == 0
        };
        let word = race.location.key() / WORD;
        let history = main.memory.of(race.location);
        let left = unfenced
            | match unordered {
                0 => 0,
                lanes => history.unseen(word, race, lanes, &knows),
            };
        if left != 0 {
            race.lanes = left;
            race.earlier.thread.lane = left.trailing_zeros();
        }
        left == 0
    }
}

impl Engine {
    /// A copy that has seen no access.
    fn without_memory(&self) -> Self {
        Self {
            shape: self.shape,
            ctas: self.ctas.clone(),
            clusters: self.clusters.clone(),
            mbarriers: self.mbarriers.clone(),
            inits: self.inits.clone(),
            memory: Memory::default(),
            releases: self.releases.clone(),
            sc_gpu: self.sc_gpu.clone(),
            sc_cluster: self.sc_cluster.clone(),
            sc_cta: self.sc_cta.clone(),
            copies: self.copies.clone(),
            proxies: self.proxies.clone(),
            strong_stores: self.strong_stores.clone(),
            own_stores: self.own_stores.clone(),
            ..*self
        }
    }

    /// The lanes of a warp that have done something, at a time of theirs, that a thread does not
    /// come after.
    pub(crate) fn unordered(&self, me: Thread, of: Warp, lanes: u32, time: Time) -> u32 {
        let Some(cta) = self.ctas.get(&me.cta) else {
            return lanes;
        };
        let times = match cta.known(me.warp) {
            Some(mine) => &mine.view(me.lane).times,
            None => &cta.base.times,
        };
        times.unordered(me.warp(), of, lanes, time) & lanes
    }
}
