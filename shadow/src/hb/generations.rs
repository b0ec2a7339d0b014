//! Whether the barriers of a CTA are *well-synchronised*: whether each of their commands belongs to the same generation
//! in every order in which the threads can run.
//!
//! A barrier has sixteen numbers, which are used again and again. A command of a generation must come after all
//! commands of the generation before, or else another order would let it take part in that one.
//! After R. Sharma, M. Bauer and A. Aiken, "Verification of producer-consumer synchronization in GPU programs" (PLDI
//! 2015), section 4. There "after" is a transitive closure over all commands; here it is a look at the clocks of an
//! [`Engine`].

use alloc::vec::Vec;
use core::mem;

use hashbrown::HashMap;

use super::phased::Phase;
use super::thread::{Active, LANES, Thread, Warp};
use super::{Engine, Time};

/// A command that another order would let take part in an earlier generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recycled {
    /// The number of the barrier.
    pub barrier: u32,
    /// Site of a command of the earlier generation.
    pub earlier: u32,
    /// Site of the command.
    pub later: u32,
}

/// Follows the barriers of a launch.
#[derive(Debug, Default)]
pub struct Generations {
    pub(super) ctas: HashMap<u64, Cta>,
}

#[derive(Debug, Default)]
pub(super) struct Cta {
    barriers: HashMap<u32, Barrier>,
    /// By the key of their locations.
    pub(super) mbarriers: HashMap<u64, Phase>,
    /// Threads that have ended.
    ended: u32,
}

/// What has come to one barrier.
#[derive(Debug, Default)]
struct Barrier {
    last: Vec<Come>,
    now: Vec<Come>,
}

/// A thread has come to a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Come {
    pub(super) thread: Thread,
    /// Its own time.
    pub(super) at: Time,
    pub(super) site: u32,
}

impl Come {
    pub(super) fn now(engine: &mut Engine, thread: Thread, site: u32) -> Self {
        Self {
            thread,
            at: engine.knows(thread, thread),
            site,
        }
    }
}

impl Generations {
    /// Lanes come to a barrier, which `engine` receives next. Says if they may be too early in another order.
    pub fn arrive(
        &mut self,
        engine: &mut Engine,
        Active { warp, lanes }: Active,
        barrier: u32,
        site: u32,
    ) -> Option<Recycled> {
        let cta = self.ctas.entry(warp.cta).or_default();
        let of = cta.barriers.entry(barrier).or_default();
        let mut early = None;
        for thread in threads(warp, lanes) {
            let mut last = of.last.iter();
            let missed = last.find(|come| engine.knows(thread, come.thread) < come.at);
            early = early.or(missed.map(|come| come.site));
            of.now.push(Come::now(engine, thread, site));
        }
        early.map(|earlier| Recycled {
            barrier,
            earlier,
            later: site,
        })
    }

    /// A barrier of a CTA completes.
    pub fn complete(&mut self, cta: u64, barrier: u32) {
        let cta = self.ctas.entry(cta).or_default();
        let of = cta.barriers.entry(barrier).or_default();
        of.last = mem::take(&mut of.now);
    }

    /// Lanes end, of a CTA of so many threads.
    pub fn exit(&mut self, warp: Warp, lanes: u32, threads: u32) {
        if let Some(cta) = self.ctas.get_mut(&warp.cta) {
            cta.ended += lanes.count_ones();
            if cta.ended >= threads {
                self.ctas.remove(&warp.cta);
            }
        }
    }
}

/// The threads of these lanes; the first stands for a whole warp that comes together.
fn threads(warp: Warp, lanes: u32) -> impl Iterator<Item = Thread> {
    let lanes = if lanes == u32::MAX { 1 } else { lanes };
    (0..LANES)
        .filter(move |lane| lanes >> lane & 1 == 1)
        .map(move |lane| warp.lane(lane))
}
