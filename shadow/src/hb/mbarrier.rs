//! Asynchronous barriers (mbarriers).
//!
//! PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". An arrival is a
//! release and a wait that finds its phase over an acquire, by default; where they are `.relaxed`, a
//! fence before the one and behind the other does it. Operations on an object are atomic; that memory
//! becomes one is a write as any other.

use alloc::sync::Arc;
use events::Scope;

use hashbrown::HashMap;

use super::access::Weak;
use super::clock::{Sparse, Time};
use super::row::Run;
use super::thread::{Epoch, Thread, Warp};
use super::waits::{Arrived, Phase};
use super::{Access, Cause, Engine, Location, MemoryOrder, Race, Shape, View, all, barrier};

/// Bytes of an object.
pub(crate) const MBARRIER: u64 = 8;

/// What arrivals have published.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// Those of cluster scope or wider.
    pub(crate) wide: Sparse,
    /// Those of cta scope at least, by the CTA of the thread that arrived.
    pub(crate) of_cta: HashMap<u64, Sparse>,
    /// Who arrived in the last phase, in launches with clusters.
    phase: Phase,
}

impl Published {
    /// A thread publishes something to a scope.
    fn enter(&mut self, by: Thread, scope: Scope, published: &Sparse, shape: &Shape) {
        self.of_cta.entry(by.cta).or_default().join(published);
        if scope >= Scope::Cluster {
            self.wide.join(published);
        }
        if shape.has_clusters() {
            let published = published.clone();
            Arc::make_mut(&mut self.phase).push(Arrived {
                by,
                scope,
                published,
            });
        }
    }

    fn join(&mut self, other: &Self) {
        self.wide.join(&other.wide);
        for (&cta, times) in &other.of_cta {
            self.of_cta.entry(cta).or_default().join(times);
        }
    }
}

/// An asynchronous barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases {
    /// The current phase.
    current: Published,
    /// The phases before.
    complete: Published,
    /// All of these but the last.
    earlier: Published,
    /// How many have ended, and in whose name that is known, where [`Engine::following_phases`] asks.
    over: Time,
    pub(super) ends: Option<Thread>,
}

impl Engine {
    /// A thread arrives at an asynchronous barrier: a release, or a relaxed operation, which publishes
    /// only what fences have before. `completes` when that ends the phase.
    pub fn mbarrier_arrive(
        &mut self,
        me: Thread,
        at: Location,
        order: MemoryOrder,
        completes: bool,
    ) {
        self.stats.synchronisations += 1;
        self.enter(me.warp());
        if let Some(cta) = self.ctas.get_mut(&me.cta) {
            let met = cta.met.entry((me.warp, me.lane)).or_default();
            met.arrived = Some(at.key());
        }
        match order {
            MemoryOrder::Release(scope) | MemoryOrder::AcqRel(scope) => {
                self.arrive_at(me, at, scope);
            }
            MemoryOrder::Relaxed(scope) => self.arrive_behind_fences(me, at, scope),
            MemoryOrder::Weak | MemoryOrder::ReadOnly | MemoryOrder::Acquire(_) => {}
        }
        if completes {
            self.mbarrier_complete(at);
        }
    }

    fn arrive_behind_fences(&mut self, me: Thread, at: Location, scope: Scope) {
        let lanes = self.ctas.get(&me.cta).and_then(|cta| cta.known(me.warp));
        let Some(lanes) = lanes.filter(|lanes| !lanes.view(me.lane).fences.is_empty()) else {
            return;
        };
        let current = &mut self.mbarriers.entry(at.key()).or_default().current;
        for fence in &lanes.view(me.lane).fences {
            let mut published = Sparse::default();
            let times = &fence.times;
            times.publish(&mut published, me.warp(), 1 << me.lane, false);
            let scope = scope.min(fence.scope);
            current.enter(me, scope, &published, &self.shape);
        }
    }

    /// The current phase of an asynchronous barrier gets to know what a thread knows.
    pub(crate) fn arrive_at(&mut self, me: Thread, at: Location, scope: Scope) {
        let Some(cta) = self.ctas.get_mut(&me.cta) else {
            return;
        };
        let clocks = cta.lanes(me.warp);
        clocks.raise(1 << me.lane, self.now);
        let times = &clocks.view(me.lane).times;
        let mut published = Sparse::default();
        times.publish(&mut published, me.warp(), 1 << me.lane, false);
        let current = &mut self.mbarriers.entry(at.key()).or_default().current;
        current.enter(me, scope, &published, &self.shape);
        clocks.update(1 << me.lane, |view, _| view.times.own += 1);
        self.classify(me.warp());
    }

    /// The current phase of an asynchronous barrier gets to know copies of a thread's, and nothing that
    /// the thread has done before. These complete at the barrier itself, whoever has issued them: so a
    /// wait of cta scope, by threads of the CTA that the barrier belongs to, learns of them.
    pub(crate) fn copies_at(&mut self, me: Thread, at: Location, scope: Scope, copies: &Sparse) {
        let current = &mut self.mbarriers.entry(at.key()).or_default().current;
        current.enter(me, scope, copies, &self.shape);
        if let Location::Shared { cta: owner, .. } = at
            && scope >= Scope::Cluster
        {
            current.of_cta.entry(owner).or_default().join(copies);
        }
    }

    /// The phase of an asynchronous barrier ends, and so do the copies that it waits for.
    pub fn mbarrier_complete(&mut self, at: Location) {
        let phases = self.mbarriers.entry(at.key()).or_default();
        let current = core::mem::take(&mut phases.current);
        phases.earlier = phases.complete.clone();
        phases.complete.join(&current);
        phases.complete.phase = current.phase;
        if !self.follows_phases {
            return;
        }
        phases.over += 1;
        let ends = *phases.ends.get_or_insert_with(|| self.copies.ends(at));
        phases.complete.wide.raise(ends, phases.over);
        if let Location::Shared { cta, .. } = at {
            phases.complete.of_cta.entry(cta).or_default();
        }
        for known in phases.complete.of_cta.values_mut() {
            known.raise(ends, phases.over);
        }
    }

    /// An engine that also knows which phases of asynchronous barriers a thread knows to be over.
    pub fn following_phases(self) -> Self {
        Self {
            follows_phases: true,
            ..self
        }
    }

    /// Phases of an asynchronous barrier that are over since it was made.
    pub(crate) fn phases_over(&self, at: Location) -> Time {
        self.mbarriers.get(&at.key()).map_or(0, |of| of.over)
    }

    /// Those that a thread knows to be over.
    pub(crate) fn phases_known(&mut self, me: Thread, at: Location) -> Time {
        let ends = self.mbarriers.get(&at.key()).and_then(|of| of.ends);
        ends.map_or(0, |ends| self.knows(me, ends))
    }

    /// Phases that are over before a thread's next operation that counts.
    pub(crate) fn phases_before(&mut self, me: Thread, at: Location) -> Time {
        let ends = self.mbarriers.get(&at.key()).and_then(|of| of.ends);
        ends.map_or(0, |ends| self.knows_issued(me, ends))
    }

    /// The time of `other` up to which it has come before what `me` does next: `me` is ordered after it, or after the
    /// arrival of copies that were issued behind it.
    pub(crate) fn knows_issued(&mut self, me: Thread, other: Thread) -> Time {
        let issued = self.copies.issued(other);
        let issued = issued.map_or(0, |other| self.knows(me, other));
        self.knows(me, other).max(issued)
    }

    /// The asynchronous barriers in the shared memory of a CTA end with it.
    pub(crate) fn exit_mbarriers(&mut self, cta: u64) {
        let of_cta =
            |key: u64| matches!(Location::of(key), Location::Shared { cta: of, .. } if of == cta);
        self.mbarriers.retain(|&key, _| !of_cta(key));
        self.copies.forget_mbarriers(of_cta);
        self.inits.exit(cta);
    }

    /// A thread makes an asynchronous barrier, anew perhaps: a weak write of its bytes. `fenced`: some thread of the launch executes [`Self::fence_init`].
    pub fn mbarrier_init(
        &mut self,
        me: Thread,
        at: Location,
        site: u32,
        fenced: bool,
        found: impl FnMut(Race),
    ) {
        self.stats.accesses += 1;
        self.enter(me.warp());
        self.mbarriers.insert(at.key(), Phases::default());
        let maker = fenced.then(|| self.copies.init(me));
        let weak = Weak {
            writes: true,
            read_only: false,
            site,
            copy: 0,
            maker,
        };
        let bytes = Run::one(me.lane, at.key(), MBARRIER);
        self.weak(me.warp(), bytes, weak, &mut all(found));
        if let (Some(maker), Some(cta)) = (maker, self.ctas.get_mut(&me.cta)) {
            let knows = |view: &mut View, _| view.times.rest.raise(maker.thread, maker.time);
            cta.lanes(me.warp).update(1 << me.lane, knows);
            self.inits.made.insert(me, maker);
            self.classify(me.warp());
        }
    }

    /// A thread operates on an asynchronous barrier: an access of its bytes that orders nothing by
    /// itself.
    pub fn mbarrier_used(
        &mut self,
        me: Thread,
        at: Location,
        access: &Access,
        found: impl FnMut(Race),
    ) {
        self.stats.accesses += 1;
        self.enter(me.warp());
        self.check(me, access, None, at.key(), &mut all(found));
    }

    /// An asynchronous barrier is none any more.
    pub fn mbarrier_inval(&mut self, at: Location) {
        self.mbarriers.remove(&at.key());
    }

    /// Lanes execute `fence.mbarrier_init.release.cluster`, which publishes what they have made
    /// asynchronous barriers, and nothing else.
    pub fn fence_init(&mut self, warp: Warp, lanes: u32) {
        self.stats.synchronisations += 1;
        for me in barrier::threads(warp, lanes) {
            if let Some(&made) = self.inits.made.get(&me) {
                self.inits.fenced.insert(me, made);
            }
        }
    }

    /// A thread has found that the last phase of an asynchronous barrier is over: an acquire, or a
    /// relaxed operation, which needs a fence behind it.
    pub fn mbarrier_wait(&mut self, me: Thread, at: Location, order: MemoryOrder) {
        self.mbarrier_learn(me, at, order, |phases| &phases.complete);
    }

    /// The same, but it was the phase before that, and the last one has ended in the meantime.
    pub fn mbarrier_waited(&mut self, me: Thread, at: Location, order: MemoryOrder) {
        self.mbarrier_learn(me, at, order, |phases| &phases.earlier);
    }

    fn mbarrier_learn(
        &mut self,
        me: Thread,
        at: Location,
        order: MemoryOrder,
        what: impl Fn(&Phases) -> &Published,
    ) {
        self.stats.synchronisations += 1;
        self.enter(me.warp());
        let (scope, acquired) = match order {
            MemoryOrder::Acquire(scope) | MemoryOrder::AcqRel(scope) => (scope, Some(scope)),
            MemoryOrder::Relaxed(scope) => (scope, None),
            MemoryOrder::Weak | MemoryOrder::ReadOnly | MemoryOrder::Release(_) => return,
        };
        if let Some(phases) = self.mbarriers.get(&at.key())
            && let Some(cta) = self.ctas.get_mut(&me.cta)
        {
            let mut over = Waited::default();
            let complete = what(phases);
            let own = cta.lanes(me.warp).view(me.lane).times.own;
            let met = cta.met.entry((me.warp, me.lane)).or_default();
            met.waited = Some((at.key(), own));
            cta.waits
                .enter(me, at.key(), &complete.phase, scope, acquired);
            if let Some(of_cta) = complete.of_cta.get(&me.cta) {
                over.near = of_cta.clone();
            }
            if scope >= Scope::Cluster {
                over.wide = complete.wide.clone();
            }
            cta.lanes(me.warp)
                .update(1 << me.lane, |view, _| match acquired {
                    None => view.waited.join(&over),
                    Some(scope) => over.clone().acquire(scope, &mut view.times.rest),
                });
        }
        self.classify(me.warp());
    }
}

impl Engine {
    /// The asynchronous barrier that would have ordered two accesses of a race, if one thread had waited for it
    /// or the other had arrived at it later.
    pub(crate) fn unused_mbarrier(&self, race: &Race) -> Option<(Cause, Location)> {
        let (me, them) = (race.later.thread, race.earlier.thread);
        let met = |of: Thread| {
            self.ctas
                .get(&of.cta)?
                .met
                .get(&(of.warp, of.lane))
                .copied()
        };
        let knows = |published: &Published| {
            let near = published.of_cta.get(&me.cta).map(|of| of.get(them));
            near.unwrap_or_default().max(published.wide.get(them)) >= race.time
        };
        // What makes an object an mbarrier is ordered by something else than mbarriers.
        let own = race.location.key() / MBARRIER * MBARRIER;
        if self.mbarriers.contains_key(&own) {
            return None;
        }
        let arrived = met(them)?.arrived?;
        let phases = self.mbarriers.get(&arrived)?;
        if knows(&phases.current) || knows(&phases.complete) {
            return Some((Cause::NoWait, Location::of(arrived)));
        }
        // Where all threads arrive and then wait, what follows needs another barrier.
        let is_barrier = |(waited, own)| waited == arrived && own <= race.time;
        let (waited, _) = met(me)?.waited?;
        let hands_over = waited == arrived && !met(them)?.waited.is_some_and(is_barrier);
        hands_over.then(|| (Cause::NoArrival, Location::of(arrived)))
    }
}

/// What waits have found over, and what nobody has acquired yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waited {
    /// What was published to the CTA, for an acquire of any scope.
    near: Sparse,
    /// What was published to the cluster, for one of cluster scope or wider.
    wide: Sparse,
}

impl Waited {
    pub(crate) fn is_empty(&self) -> bool {
        self.near.is_empty() && self.wide.is_empty()
    }

    fn join(&mut self, other: &Self) {
        self.near.join(&other.near);
        self.wide.join(&other.wide);
    }

    /// Lets somebody know what an acquire of some scope makes known; the rest stays.
    pub(crate) fn acquire(&mut self, scope: Scope, known: &mut Sparse) {
        known.join(&core::mem::take(&mut self.near));
        if scope >= Scope::Cluster {
            known.join(&core::mem::take(&mut self.wide));
        }
    }
}

/// The memory that threads have last made asynchronous barriers, as writes by makers; see
/// [`super::copy`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Inits {
    made: HashMap<Thread, Epoch>,
    /// Of these, what fences have published.
    fenced: HashMap<Thread, Epoch>,
}

impl Inits {
    /// A relaxed arrival of lanes lets others know.
    pub(crate) fn publish(&self, into: &mut Sparse, warp: Warp, lanes: u32) {
        if self.fenced.is_empty() {
            return;
        }
        for me in barrier::threads(warp, lanes) {
            if let Some(by) = self.fenced.get(&me) {
                into.raise(by.thread, by.time);
            }
        }
    }

    fn exit(&mut self, cta: u64) {
        self.made.retain(|me, _| me.cta != cta);
        self.fenced.retain(|me, _| me.cta != cta);
    }
}
