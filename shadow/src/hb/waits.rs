//! What threads have found over at asynchronous barriers, to say what was missing where that has not
//! ordered them.
//!
//! Kept in launches with clusters only: threads of one CTA are in every scope of each other.

use alloc::sync::Arc;
use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::clock::Sparse;
use super::thread::{Epoch, Shape, Thread};
use super::{Cause, each};

/// An arrival, and what it has published to its scope.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) by: Thread,
    pub(crate) scope: Scope,
    pub(crate) published: Sparse,
}

/// The arrivals of a phase.
pub(crate) type Phase = Arc<Vec<Arrived>>;

/// A thread has found a phase over.
#[derive(Clone, Debug)]
struct Wait {
    /// The barrier, by its location.
    at: u64,
    phase: Phase,
    scope: Scope,
    /// The widest scope in which the thread has acquired by it.
    acquired: Option<Scope>,
}

/// By warp and lane of a CTA: each thread's last wait at each barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(HashMap<(u32, u32), Vec<Wait>>);

impl Waits {
    /// A thread has found a phase over, by an operation that has `acquired` in its scope if it is no relaxed one.
    pub(crate) fn enter(
        &mut self,
        me: Thread,
        at: u64,
        phase: &Phase,
        scope: Scope,
        acquired: Option<Scope>,
    ) {
        if phase.is_empty() {
            return;
        }
        let all = self.0.entry((me.warp, me.lane)).or_default();
        all.retain(|wait| wait.at != at);
        all.push(Wait {
            at,
            phase: Arc::clone(phase),
            scope,
            acquired,
        });
    }

    /// Lanes of a warp acquire by a fence what relaxed waits have found over.
    pub(crate) fn fence(&mut self, warp: u32, lanes: u32, scope: Scope) {
        if self.0.is_empty() {
            return;
        }
        for lane in each(lanes) {
            for wait in self.0.get_mut(&(warp, lane)).into_iter().flatten() {
                // Where the wait was an acquire, that is what has acquired.
                if wait.acquired != Some(wait.scope) {
                    wait.acquired = wait.acquired.max(Some(scope.min(wait.scope)));
                }
            }
        }
    }

    /// What has kept the waits of `me` from ordering an access by another thread before it.
    pub(crate) fn lack(&self, shape: &Shape, me: Thread, earlier: Epoch) -> Option<Cause> {
        let waits = self.0.get(&(me.warp, me.lane))?;
        waits.iter().rev().find_map(|wait| {
            let knew = |of: &&Arrived| of.published.get(earlier.thread) >= earlier.time;
            wait.phase.iter().filter(knew).find_map(|of| {
                let by = of.by;
                let acquired = wait.acquired.unwrap_or(wait.scope);
                match wait.acquired {
                    _ if !shape.includes(of.scope, by, me) => Some(Cause::NarrowArrival {
                        by,
                        scope: of.scope,
                    }),
                    _ if !shape.includes(acquired, me, by) => Some(Cause::NarrowWait {
                        by,
                        scope: acquired,
                    }),
                    None => Some(Cause::NoAcquire { by }),
                    Some(_) => None,
                }
            })
        })
    }
}
