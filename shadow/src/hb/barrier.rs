//! Barriers: of a CTA, of a warp, and of a cluster.

use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::clock::{Sparse, Time, Times};
use super::cta::Cta;
use super::fenced::Fenced;
use super::lanes::Lanes;
use super::mbarrier::Published;
use super::thread::{Shape, Thread, Warp};
use super::{Engine, each};

/// Who has arrived at a barrier of a CTA.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// Lanes that wait, by warp.
    waiting: Vec<(u32, u32)>,
    /// Lanes that have gone on, by warp, with what they knew when they arrived.
    passed: Vec<(u32, u32, Times)>,
    /// The `fence.sc`s that the lanes in `passed` knew of.
    fenced: Fenced,
    /// The barrier waits for a number of threads, and not for whoever is left of the CTA.
    counted: bool,
}

/// How lanes come to a barrier of their CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Which of the CTA's barriers.
    pub id: u32,
    /// They stay until it completes.
    pub waits: bool,
    /// It waits for a number of threads, and not for all of the CTA that have not exited.
    pub counted: bool,
}

/// The barrier of a cluster: what the arrivals of each phase have published.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    phases: HashMap<u64, Published>,
    fenced: HashMap<u64, Fenced>,
}

impl Engine {
    /// Lanes arrive at a barrier of their CTA.
    pub fn arrive(&mut self, warp: Warp, lanes: u32, arrival: Arrival) {
        let Arrival { id, waits, counted } = arrival;
        self.stats.synchronisations += 1;
        self.enter(warp);
        let Some(cta) = self.ctas.get_mut(&warp.cta) else {
            return;
        };
        cta.barriers.entry(id).or_default().counted |= counted;
        if waits {
            let arrivals = cta.barriers.entry(id).or_default();
            arrivals.waiting.push((warp.warp, lanes));
            return;
        }
        // Whatever these lanes do from now on is not ordered by the barrier.
        let mut passed = Vec::new();
        cta.lanes(warp.warp).raise(lanes, self.now);
        cta.lanes(warp.warp).update(lanes, |view, mask| {
            passed.push((warp.warp, mask, view.times.clone()));
            view.times.own += 1;
        });
        let mut fenced = Fenced::default();
        let existing = self.shape.lanes(warp.warp);
        arrive(&mut fenced, cta.lanes(warp.warp), warp, lanes, existing);
        let arrivals = cta.barriers.entry(id).or_default();
        arrivals.passed.extend(passed);
        arrivals.fenced.wait(&fenced);
        self.classify(warp);
    }

    /// Barrier `id` of a CTA completes: all that arrived is ordered before all that waited.
    pub fn complete(&mut self, cta: u64, id: u32) {
        let (shape, now) = (self.shape, self.now);
        let Some(state) = self.ctas.get_mut(&cta) else {
            return;
        };
        let Some(arrivals) = state.barriers.remove(&id) else {
            return;
        };
        let everyone = arrivals.passed.is_empty()
            && (0..shape.warps()).all(|warp| {
                let of = arrivals.waiting.iter().filter(|(of, _)| *of == warp);
                let there = of.fold(0, |all, (_, lanes)| all | lanes);
                let exited = match arrivals.counted {
                    true => 0,
                    false => state.exited(warp),
                };
                shape.lanes(warp) & !(there | exited) == 0
            });
        if everyone {
            state.synchronise_all(cta, now, &shape);
            return;
        }
        let mut published = Sparse::default();
        let mut fenced = arrivals.fenced;
        for (warp, lanes, times) in &arrivals.passed {
            // Their own time went up when they arrived.
            let whole = *lanes & shape.lanes(*warp) == shape.lanes(*warp);
            let of = Warp { cta, warp: *warp };
            times.publish(&mut published, of, *lanes & shape.lanes(*warp), whole);
        }
        let mut waiting: Vec<(u32, u32)> = Vec::new();
        for &(warp, lanes) in &arrivals.waiting {
            match waiting.iter_mut().find(|(of, _)| *of == warp) {
                Some((_, all)) => *all |= lanes,
                None => waiting.push((warp, lanes)),
            }
        }
        for &(warp, lanes) in &waiting {
            let of = Warp { cta, warp };
            state.lanes(warp).raise(lanes, now);
            let (clocks, existing) = (state.lanes(warp), shape.lanes(warp));
            publish(&mut published, clocks, of, lanes, existing);
            arrive(&mut fenced, clocks, of, lanes, existing);
        }
        for &(warp, lanes) in &waiting {
            state.lanes(warp).update(lanes, |view, _| {
                view.fenced.clone_from(&fenced);
                view.times.rest.join(&published);
                view.times.own += 1;
            });
        }
        for (warp, _) in waiting {
            self.classify(Warp { cta, warp });
        }
    }

    /// Lanes pass a `bar.warp.sync` together. Lanes of its mask that have exited may be among them.
    pub fn warp_barrier(&mut self, warp: Warp, lanes: u32) {
        self.stats.synchronisations += 1;
        self.enter(warp);
        let existing = self.shape.lanes(warp.warp);
        let Some(cta) = self.ctas.get_mut(&warp.cta) else {
            return;
        };
        let clocks = cta.lanes(warp.warp);
        clocks.raise(lanes, self.now);
        let mut fenced = Fenced::default();
        arrive(&mut fenced, clocks, warp, lanes, existing);
        if existing & !lanes == 0 {
            let mut joined = Times::default();
            for (mask, view) in clocks.groups() {
                if mask & existing != 0 {
                    let times = &view.times;
                    joined.own = joined.own.max(times.own);
                    joined.cta = joined.cta.max(times.cta);
                    joined.rest.join(&times.rest);
                }
            }
            joined.warp = joined.own;
            joined.own += 1;
            clocks.update(lanes, |view, _| {
                view.times.clone_from(&joined);
                view.fenced.clone_from(&fenced);
            });
        } else {
            let mut published = Sparse::default();
            publish(&mut published, clocks, warp, lanes, existing);
            clocks.update(lanes, |view, _| {
                view.fenced.clone_from(&fenced);
                view.times.rest.join(&published);
                view.times.own += 1;
            });
        }
        self.classify(warp);
    }

    /// Lanes arrive at the barrier of their cluster, in a phase. `relaxed` publishes only what fences
    /// have before.
    pub fn cluster_arrive(&mut self, warp: Warp, lanes: u32, phase: u64, relaxed: bool) {
        self.stats.synchronisations += 1;
        self.enter(warp);
        let cluster = self.shape.cluster_of(warp.cta);
        let existing = self.shape.lanes(warp.warp);
        let Some(cta) = self.ctas.get_mut(&warp.cta) else {
            return;
        };
        let cluster = self.clusters.entry(cluster).or_default();
        let published = cluster.phases.entry(phase).or_default();
        let clocks = cta.lanes(warp.warp);
        if relaxed {
            for (mask, view) in clocks.groups() {
                let mask = mask & lanes & existing;
                for fence in view.fences.iter().filter(|_| mask != 0) {
                    let into = match fence.scope {
                        Scope::Cta => published.of_cta.entry(warp.cta).or_default(),
                        _ => &mut published.wide,
                    };
                    fence.times.publish(into, warp, mask, mask == existing);
                }
            }
            let wide = &mut published.wide;
            self.inits.publish(wide, warp, lanes & existing);
        } else {
            clocks.raise(lanes, self.now);
            publish(&mut published.wide, clocks, warp, lanes, existing);
            let fenced = cluster.fenced.entry(phase).or_default();
            arrive(fenced, clocks, warp, lanes, existing);
            clocks.update(lanes, |view, _| view.times.own += 1);
        }
        // Nobody waits for a phase before the last one any more.
        cluster.phases.retain(|&of, _| of + 2 > phase);
        cluster.fenced.retain(|&of, _| of + 2 > phase);
        self.classify(warp);
    }

    /// Lanes have waited for a phase of the barrier of their cluster.
    pub fn cluster_wait(&mut self, warp: Warp, lanes: u32, phase: u64) {
        self.stats.synchronisations += 1;
        self.enter(warp);
        let cluster = self.shape.cluster_of(warp.cta);
        if let Some(cluster) = self.clusters.get(&cluster)
            && let Some(published) = cluster.phases.get(&phase)
            && let Some(cta) = self.ctas.get_mut(&warp.cta)
        {
            let near = published.of_cta.get(&warp.cta);
            let fenced = cluster.fenced.get(&phase);
            cta.lanes(warp.warp).update(lanes, |view, _| {
                fenced
                    .into_iter()
                    .for_each(|fenced| view.fenced.wait(fenced));
                view.times.rest.join(&published.wide);
                near.into_iter().for_each(|near| view.times.rest.join(near));
            });
        }
        self.classify(warp);
    }
}

impl Cta {
    /// A barrier of the whole CTA: everyone knows everyone's time, which makes the clocks short
    /// again.
    fn synchronise_all(&mut self, cta: u64, now: Time, shape: &Shape) {
        let mut joined = self.base.times.clone();
        joined.own = joined.own.max(now);
        for lanes in self.all() {
            for (_, view) in lanes.groups() {
                joined.own = joined.own.max(view.times.own);
                joined.rest.join(&view.times.rest);
            }
        }
        let fenced = self.fenced(cta, shape);
        joined.rest.forget(cta);
        (joined.cta, joined.warp) = (joined.own, joined.own);
        joined.own += 1;
        self.base.times.clone_from(&joined);
        self.base.fenced.clone_from(&fenced);
        for lanes in self.all() {
            lanes.update(u32::MAX, |view, _| {
                view.times.clone_from(&joined);
                view.fenced.clone_from(&fenced);
            });
        }
    }

    /// The `fence.sc`s that any thread of the CTA knows of.
    fn fenced(&self, cta: u64, shape: &Shape) -> Fenced {
        let mut fenced = self.base.fenced.clone();
        let warps = (0..shape.warps()).map(|warp| (warp, self.known(warp)));
        // If all threads have executed one at the same time of theirs, one time for the CTA is enough.
        let mut times = warps.clone().map(|(warp, lanes)| {
            let groups = lanes.into_iter().flat_map(Lanes::groups);
            let mut here = groups.filter(|(mask, _)| mask & shape.lanes(warp) != 0);
            let time = here.next().and_then(|(_, view)| view.fenced.time());
            time.filter(|&time| here.all(|(_, view)| view.fenced.time() == Some(time)))
        });
        let time = times.next().flatten();
        if let Some(time) = time
            && times.all(|of| of == Some(time))
        {
            fenced.raise_cta(cta, time);
        }
        for (warp, lanes) in warps {
            if let Some(lanes) = lanes {
                arrive(
                    &mut fenced,
                    lanes,
                    Warp { cta, warp },
                    u32::MAX,
                    shape.lanes(warp),
                );
            }
        }
        fenced
    }
}

/// Adds the `fence.sc`s that lanes of a warp know of to `into`.
fn arrive(into: &mut Fenced, clocks: &Lanes, of: Warp, lanes: u32, existing: u32) {
    for (mask, view) in clocks.groups().filter(|(_, view)| !view.fenced.is_empty()) {
        let mask = mask & lanes & existing;
        if mask != 0 {
            view.fenced.arrive(into, of, mask, mask == existing);
        }
    }
}

/// Adds what lanes of a warp know to `into`. Where it can, it gives one time for the whole warp.
fn publish(into: &mut Sparse, clocks: &Lanes, of: Warp, lanes: u32, existing: u32) {
    for (mask, view) in clocks.groups() {
        let mask = mask & lanes & existing;
        if mask != 0 {
            view.times.publish(into, of, mask, mask == existing);
        }
    }
}

/// The lanes of a mask.
pub(crate) fn threads(warp: Warp, lanes: u32) -> impl Iterator<Item = Thread> {
    each(lanes).map(move |lane| warp.lane(lane))
}
