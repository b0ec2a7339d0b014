//! Work that a thread launches: what comes before it, and which accesses of the launch run beside it.
//!
//! What a thread does, and what it knows of, before it launches a grid comes before that; nothing that
//! it does later does, and no other thread waits for the grid (CUDA C++ Programming Guide, "CUDA Dynamic
//! Parallelism", "Memory Consistency and Coherence"). Accesses that are ordered before the launch are
//! ordered before all that are ordered before them, so at the end of the launch the history still has
//! one for each byte whose accesses the grid has to fear.

use core::ops::Range;

use super::clock::{Sparse, Times};
use super::entry::{Accessor, Class, Entry};
use super::history::WORD;
use super::made::Made;
use super::observed::Observed;
use super::thread::{Id, Thread, Warp};
use super::{Access, Engine, Enough, Location, OpKind, Race, Side};

/// What comes before the work that a thread has launched.
#[derive(Clone, Debug, Default)]
pub struct Launched(Sparse);

impl Engine {
    /// A thread launches work.
    pub fn launches(&mut self, me: Thread) -> Launched {
        let warp = me.warp();
        self.enter(warp);
        let now = self.now;
        let lanes = self.ctas.entry(me.cta).or_default().lanes(me.warp);
        lanes.raise(1 << me.lane, now);
        let mut known = Sparse::default();
        let times = &lanes.view(me.lane).times;
        times.publish(&mut known, warp, 1 << me.lane, false);
        lanes.update(1 << me.lane, |view, _| view.times.own += 1);
        self.classify(warp);
        Launched(known)
    }

    /// Calls `found` for accesses to some `bytes` of global memory that are not ordered before launched
    /// work and race with its `access`, which is made up of elements of that size. The later thread of
    /// these races means nothing.
    pub fn concurrent(
        &self,
        launched: &Launched,
        bytes: Range<u64>,
        access: &Access,
        mut found: impl FnMut(Race),
    ) {
        if bytes.is_empty() {
            return;
        }
        let Range { start, end } = bytes;
        // A thread of a CTA that is none of the launch.
        let ctas: u64 = self
            .shape
            .grid
            .iter()
            .map(|&n| u64::from(n.max(1)))
            .product();
        let size: u64 = self
            .shape
            .cluster
            .iter()
            .map(|&n| u64::from(n.max(1)))
            .product();
        let warp = Warp {
            cta: ctas.saturating_mul(size).saturating_mul(2),
            warp: 0,
        };
        let times = Times {
            rest: launched.0.clone(),
            ..Times::default()
        };
        let accessor = Accessor {
            shape: &self.shape,
            copies: &self.copies,
            warp,
            met: &|_| None,
            crowd: self.crowd,
            times: &times,
            maker: None,
        };
        let size = u64::from(access.bytes.max(1));
        let entry = |word: u64| {
            let first = start.max(word * WORD);
            let past = end.min(word * WORD + WORD);
            let mask = (1u16 << (past - word * WORD)) - (1 << (first - word * WORD));
            // The element that the first of these bytes is of; strong ones are aligned.
            let element = first - first % size;
            Entry {
                warp: Id::of(warp),
                lanes: 1,
                time: 1,
                class: Class {
                    writes: access.kind != OpKind::Load,
                    strength: access.order.strength(),
                    start: (element % 16) as u8,
                    bytes: access.bytes.min(255) as u8,
                },
                mask: mask as u8,
                site: access.site,
                copy: 0,
                made: Made::default(),
                order: Observed::default(),
            }
        };
        let words = start / WORD..=(end - 1) / WORD;
        let history = &self.memory.global;
        history.concurrent(&accessor, words, &entry, &mut |word, hit| {
            let earlier = hit.earlier.warp.lane_of(hit.earlier_lanes);
            found(Race {
                later: Side {
                    thread: warp.lane(0),
                    site: access.site,
                },
                earlier: Side {
                    thread: self.copies.issuer(earlier),
                    site: hit.earlier.site,
                },
                location: Location::of(word * WORD),
                rule: hit.rule,
                by: hit.earlier.warp.warp(),
                time: hit.earlier.time,
                bytes: hit.bytes,
                lanes: hit.earlier_lanes,
                made: hit.earlier.made,
                of_many: false,
                proxies: false,
                order: hit.earlier.order,
            });
            Enough::Never
        });
    }
}
