//! Atomics that count threads, and whose order differs from run to run.
//!
//! Only the thread that receives the final count is known to be the last one; the others may have been
//! counted in any order. So a thread does not acquire what its counting atomic has observed until it
//! executes an instruction that only the thread with the final count executes. [`FenceOrder`] takes the order
//! of the run, and knows what it alone has ordered.
//!
//! [`FenceOrder`]: super::FenceOrder

use events::Scope;

use super::clock::{Sparse, Time};
use super::fence::{FenceKind, acquire};
use super::lanes::View;
use super::release::Pending;
use super::thread::{Party, Warp};
use super::{Atomics, Engine, each};

/// What a thread's last counting atomic has observed, while it is open whether it has found the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    site: u32,
    seen: Option<Pending>,
    /// The clocks of `fence.sc`s that the observed writes carry.
    fences: Sparse,
    /// The thread's own time then.
    time: Time,
    /// The widest acquire since.
    acquired: Option<Scope>,
    /// The widest `fence.sc` since.
    fenced: Option<Scope>,
}

impl View {
    /// An atomic that counts has observed something, and acquires in a scope if it does.
    pub(crate) fn count(
        &mut self,
        site: u32,
        seen: Option<Pending>,
        fences: Sparse,
        acquired: Option<Scope>,
    ) {
        let any = seen.is_some() || !fences.is_empty();
        self.counted = any.then_some(Counted {
            site,
            seen,
            fences,
            time: self.times.own,
            acquired,
            fenced: None,
        });
    }

    /// A fence acquires what has been observed.
    pub(crate) fn fence_counted(&mut self, kind: FenceKind, scope: Scope) {
        if let Some(counted) = &mut self.counted {
            counted.acquired = counted.acquired.max(Some(scope));
            if kind == FenceKind::ScForced {
                counted.fenced = counted.fenced.max(Some(scope));
            }
        }
    }
}

impl Engine {
    /// Says what the next atomics are for.
    pub fn atomics(&mut self, atomics: Atomics) {
        self.atomics = atomics;
    }

    /// Lanes execute an instruction that only the thread with the final count executes. `site` is that of
    /// the counting atomic; nothing happens if it is not the last one that the lanes have executed.
    pub fn has_found(&mut self, warp: Warp, lanes: u32, site: u32) {
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
        let here = |view: &View| view.counted.as_ref().is_some_and(|of| of.site == site);
        if !mine
            .groups()
            .any(|(mask, view)| mask & lanes != 0 && here(view))
        {
            return;
        }
        for lane in each(lanes) {
            let me = warp.lane(lane);
            mine.update(1 << lane, |view, _| {
                let Some(counted) = view.counted.take_if(|of| of.site == site) else {
                    return;
                };
                view.fenced.observe(&counted.fences);
                if let Some(scope) = counted.fenced {
                    view.fenced.order(&mut view.times, scope);
                }
                if let Some(seen) = counted.seen {
                    let log = seen.mark.log;
                    view.pending.retain(|old| old.mark.log != log);
                    view.pending.push(seen);
                    if let Some(scope) = counted.acquired {
                        let me = Party { thread: me, scope };
                        acquire(shape, releases, me, view, |seen| seen.mark.log == log);
                    }
                }
                if counted.acquired.is_none() {
                    return;
                }
                // A fence behind the atomic has published that as well.
                for fence in &mut view.fences {
                    if fence.times.own >= counted.time {
                        fence.times.rest.join(&view.times.rest);
                        fence.times.warp = view.times.warp;
                        fence.times.cta = view.times.cta;
                        fence.acquired = view.acquired;
                    }
                }
            });
        }
        self.classify(warp);
    }
}
