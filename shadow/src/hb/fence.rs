//! Fences, and what acquires learn.

use alloc::vec::Vec;
use events::Scope;

use super::clock::Sparse;
use super::lanes::{Lanes, View};
use super::release::{Fence, Pending, Releases};
use super::thread::{Id, Party, Shape, Warp};
use super::{Engine, each};

/// Ordering of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceKind {
    /// `fence.sc`, ordered after the earlier ones of this run
    Sc,
    /// `fence.sc`, ordered only after those that come before it in every run: see [`super::fenced`]
    ScForced,
    /// `fence.acq_rel`
    AcqRel,
    /// `fence.acquire`
    Acquire,
    /// `fence.release`
    Release,
}

impl FenceKind {
    pub(crate) fn acquires(self) -> bool {
        self != Self::Release
    }

    pub(crate) fn releases(self) -> bool {
        self != Self::Acquire
    }

    /// The kind without the order of this run.
    pub(crate) fn forced(self) -> Self {
        match self {
            Self::Sc => Self::ScForced,
            other => other,
        }
    }
}

impl Engine {
    /// Lanes of a warp execute a fence.
    pub fn fence(&mut self, warp: Warp, lanes: u32, kind: FenceKind, scope: Scope) {
        self.stats.synchronisations += 1;
        self.enter(warp);
        let cluster = self.shape.cluster_of(warp.cta);
        let existing = self.shape.lanes(warp.warp);
        let Self {
            shape,
            ctas,
            releases,
            now,
            ..
        } = self;
        let Some(cta) = ctas.get_mut(&warp.cta) else {
            return;
        };
        if kind.acquires() {
            cta.waits.fence(warp.warp, lanes, scope);
        }
        let mine = cta.lanes(warp.warp);
        mine.raise(lanes, *now);
        if kind.acquires() {
            for unit in units(releases, mine, warp, lanes, scope) {
                let me = Party {
                    thread: warp.lane(unit.trailing_zeros()),
                    scope,
                };
                mine.part(unit, |view, _| {
                    acquire(shape, releases, me, view, |_| true);
                });
            }
            if mine.groups().any(|(_, view)| view.counted.is_some()) {
                mine.update(lanes, |view, _| view.fence_counted(kind, scope));
            }
            if mine.groups().any(|(_, view)| !view.waited.is_empty()) {
                mine.update(lanes, |view, _| {
                    view.waited.acquire(scope, &mut view.times.rest);
                });
            }
        }
        if kind == FenceKind::Sc {
            let mut known = self.sc_cta.get(&warp.cta).cloned().unwrap_or_default();
            if scope >= Scope::Cluster
                && let Some(more) = self.sc_cluster.get(&cluster)
            {
                known.join(more);
            }
            if scope >= Scope::Gpu {
                known.join(&self.sc_gpu);
            }
            mine.update(lanes, |view, _| view.times.rest.join(&known));
            let mut published = Sparse::default();
            for (mask, view) in mine.groups() {
                let mask = mask & lanes & existing;
                if mask != 0 {
                    view.times
                        .publish(&mut published, warp, mask, mask == existing);
                }
            }
            // All of them know what those before have published.
            let any = !published.is_empty();
            if any && scope >= Scope::Gpu {
                self.sc_gpu = published.clone();
            }
            if any && scope >= Scope::Cluster {
                self.sc_cluster.insert(cluster, published.clone());
            }
            if any {
                self.sc_cta.insert(warp.cta, published);
            }
        }
        let forced = kind == FenceKind::ScForced;
        mine.update(lanes, |view, _| {
            if forced {
                view.fenced.order(&mut view.times, scope);
                view.fenced.fence(&view.times, scope);
            }
            if kind != FenceKind::Acquire {
                view.fences.retain(|fence| fence.scope > scope);
                view.fences.push(Fence {
                    scope,
                    times: view.times.clone(),
                    acquired: view.acquired,
                });
            }
            view.times.own += 1;
        });
        self.classify(warp);
    }
}

impl Engine {
    /// Lanes of a warp have acquired what they have observed and no fence of theirs has dealt with.
    pub(crate) fn imply(&mut self, warp: Warp, lanes: u32) {
        let Self {
            shape,
            ctas,
            releases,
            ..
        } = self;
        let Some(cta) = ctas.get_mut(&warp.cta) else {
            return;
        };
        let mine = cta.lanes(warp.warp);
        let fresh = |view: &View| view.pending.iter().any(|seen| seen.tried.is_none());
        let here = |(mask, view): (u32, &View)| mask & lanes != 0 && fresh(view);
        if !mine.groups().any(here) {
            return;
        }
        for unit in units(releases, mine, warp, lanes, Scope::Sys) {
            let me = Party {
                thread: warp.lane(unit.trailing_zeros()),
                scope: Scope::Sys,
            };
            mine.update(unit, |view, _| {
                acquire(shape, releases, me, view, |seen| seen.tried.is_none());
            });
        }
        self.classify(warp);
    }
}

/// Splits lanes into sets that can be treated alike by an acquire: who has observed something may
/// have observed a release of a lane of the same set, of which that one learns nothing.
fn units(releases: &mut Releases, of: &Lanes, warp: Warp, lanes: u32, scope: Scope) -> Vec<u32> {
    let mut units = Vec::new();
    for (mask, view) in of.groups() {
        let mask = mask & lanes;
        if mask == 0 || view.pending.is_empty() {
            continue;
        }
        let mut pending = view.pending.iter();
        if pending.all(|seen| releases.alike(Id::of(warp), scope, seen)) {
            units.push(mask);
        } else {
            units.extend(each(mask).map(|lane| 1 << lane));
        }
    }
    units
}

/// Learns from what was observed at the locations that `of` picks.
pub(crate) fn acquire(
    shape: &Shape,
    releases: &mut Releases,
    acquirer: Party,
    view: &mut View,
    of: impl Fn(&Pending) -> bool,
) {
    let View {
        times,
        pending,
        acquired,
        ..
    } = view;
    pending.retain_mut(|seen| {
        if !of(seen) {
            return true;
        }
        let all = releases.acquire(shape, acquirer, seen, times);
        seen.tried = seen.tried.max(Some(acquirer.scope));
        if all {
            *acquired = Some((seen.mark.log, seen.mark.count));
        }
        !all
    });
}
