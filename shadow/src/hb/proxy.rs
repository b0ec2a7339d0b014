//! The async proxy: bulk copies read memory by another way than loads and stores.
//!
//! PTX ISA, "Async proxy" and "membar / fence": what threads have written comes before a bulk copy's
//! reads only if a `fence.proxy.async` stands between, behind the write and before the copy in
//! causality order.

use alloc::vec::Vec;

use hashbrown::HashMap;

use super::clock::{Time, Times};
use super::copy::MAKERS;
use super::entry::Rule;
use super::history::WORD;
use super::observed::Seen;
use super::thread::{Shape, Thread, Warp};
use super::{Engine, Enough, Location, Race, Side, Span, each};

/// Fences of a CTA that are kept.
const MOST: usize = 256;

/// Stands for the CTAs that have ended.
const ENDED: u64 = u64::MAX;

/// Proxy fences by lanes of a warp that knew the same.
#[derive(Clone, Debug)]
struct Fenced {
    warp: Warp,
    lanes: u32,
    times: Times,
}

/// The proxy fences of a CTA.
#[derive(Clone, Debug, Default)]
struct Fences {
    kept: Vec<Fenced>,
    /// There were more, and nothing is known of them.
    more: bool,
}

/// All proxy fences.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies(HashMap<u64, Fences>);

impl Proxies {
    /// A CTA has ended, and its fences are forgotten.
    pub(crate) fn exit(&mut self, cta: u64) {
        let ended = self.0.remove(&cta);
        if ended.is_some_and(|fences| !fences.kept.is_empty() || fences.more) {
            self.0.entry(ENDED).or_default().more = true;
        }
    }

    /// The fences that come before what the thread `me` does now to memory like that of `location`; `times` is what the
    /// thread knows of others. None if some of the fences may have been forgotten.
    fn before(
        &self,
        shape: &Shape,
        me: Thread,
        times: &Times,
        location: Location,
    ) -> Option<Vec<&Fenced>> {
        // Nobody outside of a cluster writes to its shared memory.
        let cluster = shape.cluster_of(me.cta);
        let near = |cta: u64| match location {
            Location::Global(_) => true,
            Location::Shared { .. } => cta != ENDED && shape.cluster_of(cta) == cluster,
        };
        let all = self.0.iter().filter(|&(&cta, _)| near(cta));
        // A fence of another CTA comes before only if something is known of that CTA.
        let knows = |cta: u64| match cta {
            ENDED => times
                .rest
                .knows_any(|known| known != me.cta && known < MAKERS),
            cta => cta == me.cta || times.rest.knows(cta),
        };
        if all.clone().any(|(&cta, fences)| fences.more && knows(cta)) {
            return None;
        }
        let kept = all.flat_map(|(_, fences)| &fences.kept);
        Some(kept.filter(|fence| fence.is_before(me, times)).collect())
    }
}

impl Fenced {
    /// True when the fence comes before what `me`, who knows `times`, does now.
    fn is_before(&self, me: Thread, times: &Times) -> bool {
        each(self.lanes).any(|lane| times.get(me, self.warp.lane(lane)) >= self.times.own)
    }

    /// True when what a thread has done at a time of its own comes before the fence.
    fn is_behind(&self, thread: Thread, time: Time) -> bool {
        each(self.lanes).any(|lane| self.times.get(self.warp.lane(lane), thread) >= time)
    }
}

impl Engine {
    /// Lanes of a warp execute `fence.proxy.async`.
    pub fn fence_proxy(&mut self, warp: Warp, lanes: u32) {
        self.stats.synchronisations += 1;
        self.enter(warp);
        let existing = self.shape.lanes(warp.warp);
        let Some(cta) = self.ctas.get_mut(&warp.cta) else {
            return;
        };
        let mine = cta.lanes(warp.warp);
        mine.raise(lanes, self.now);
        let fences = self.proxies.0.entry(warp.cta).or_default();
        for (mask, view) in mine.groups() {
            let lanes = mask & lanes & existing;
            if lanes != 0 {
                fences.kept.push(Fenced {
                    warp,
                    lanes,
                    times: view.times.clone(),
                });
            }
        }
        let over = fences.kept.len().saturating_sub(MOST);
        fences.more |= over > 0;
        fences.kept.drain(..over);
        // What comes after the fence is told from what came before.
        mine.update(lanes, |view, _| view.times.own += 1);
        self.classify(warp);
    }

    /// Whether no proxy fence stands between a write that a thread has made at a time of its own and a bulk copy of it that
    /// `me` issues now, if all proxy fences are known.
    pub(crate) fn lacks_proxy_fence(
        &self,
        me: Thread,
        location: Location,
        writer: Thread,
        time: Time,
    ) -> bool {
        let clocks = self.ctas.get(&me.cta).and_then(|cta| cta.known(me.warp));
        let before = clocks.and_then(|clocks| {
            let times = &clocks.view(me.lane).times;
            self.proxies.before(&self.shape, me, times, location)
        });
        before.is_some_and(|before| !before.iter().any(|of| of.is_behind(writer, time)))
    }

    /// Finds writes that a bulk copy, issued by `me`, reads without a proxy fence between.
    pub(crate) fn proxied(
        &mut self,
        me: Thread,
        from: Span,
        site: u32,
        found: &mut impl FnMut(Race) -> Enough,
    ) {
        let Span { location, bytes } = from;
        let (first, end) = (location.key(), location.key() + u64::from(bytes));
        let Some(clocks) = self.ctas.get(&me.cta).and_then(|cta| cta.known(me.warp)) else {
            return;
        };
        let times = &clocks.view(me.lane).times;
        let before = self.proxies.before(&self.shape, me, times, location);
        let Some(before) = before.filter(|_| bytes > 0) else {
            return;
        };
        let history = self.memory.of(location);
        history.writes(first / WORD..=(end - 1) / WORD, &mut |word, entry, seen| {
            let start = first.saturating_sub(word * WORD).min(WORD) as u32;
            let past = (end - word * WORD).min(WORD) as u32;
            let mask = ((1 << past) - (1 << start)) as u8;
            if entry.copy != 0 || entry.warp.makes_copies() || entry.mask & mask == 0 {
                return;
            }
            for lane in each(entry.lanes) {
                let writer = entry.warp.warp().lane(lane);
                let observes = |of: &&Seen| {
                    entry.order.chain != 0
                        && of.order.chain == entry.order.chain
                        && entry.beyond(1 << lane, of.order.index) == 0
                };
                // The write itself, and what has observed it.
                let points = || {
                    let observed = seen.iter().filter(observes);
                    core::iter::once((writer, entry.time))
                        .chain(observed.map(|of| (of.thread, of.time)))
                };
                // What nothing orders at all is another race.
                // A thread's own time is behind that of a write that a journal has recorded late.
                let ordered = points().any(|(of, time)| of == me || times.get(me, of) >= time);
                let fenced = |(of, time)| before.iter().any(|fence| fence.is_behind(of, time));
                if ordered && !points().any(fenced) {
                    _ = found(Race {
                        later: Side { thread: me, site },
                        earlier: Side {
                            thread: writer,
                            site: entry.site,
                        },
                        location: Location::of(word * WORD),
                        rule: Rule::Proxy,
                        by: writer.warp(),
                        time: entry.time,
                        bytes: entry.mask & mask,
                        lanes: 1 << lane,
                        made: entry.made,
                        of_many: false,
                        proxies: false,
                        order: entry.order,
                    });
                }
            }
        });
    }
}
