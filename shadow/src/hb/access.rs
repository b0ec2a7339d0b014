//! Accesses to memory: checked against the history, entered there, and what they order.

use super::copy::Copies;
use super::cta::Heard;
use super::entry::{Accessor, Class, Entry, Strength};
use super::fence::acquire;
use super::history::{LINE, WORD};
use super::lanes::View;
use super::made::Made;
use super::observed::Observed;
use super::release::{Pending, Write};
use super::row::{Row, Run};
use super::thread::{Epoch, Id, LANES, Party, Thread, Warp};
use super::word::{Hit, Reads};
use super::{
    Access, Atomics, Engine, Enough, Location, MemoryOrder, OpKind, Race, Side, all, each,
};

/// How lanes come to some bytes each.
#[derive(Clone, Copy)]
pub(crate) struct Weak {
    pub(crate) writes: bool,
    pub(crate) read_only: bool,
    pub(crate) site: u32,
    /// Number of the copies that it belongs to, else 0.
    pub(crate) copy: u32,
    /// See [`Accessor::maker`].
    pub(crate) maker: Option<Epoch>,
}

impl Engine {
    /// The lanes `lanes` of a warp access memory, each at its own location; calls `found` for each
    /// race with an earlier access, which may be one of an earlier lane.
    pub fn access(
        &mut self,
        warp: Warp,
        lanes: u32,
        access: &Access,
        locations: impl Fn(u32) -> Location,
        found: impl FnMut(Race),
    ) {
        self.access_until(warp, lanes, access, locations, all(found));
    }

    /// The same, for a listener who says what it has heard enough of.
    pub fn access_until(
        &mut self,
        warp: Warp,
        lanes: u32,
        access: &Access,
        locations: impl Fn(u32) -> Location,
        mut found: impl FnMut(Race) -> Enough,
    ) {
        self.stats.accesses += u64::from(lanes.count_ones());
        self.enter(warp);
        let mut keys = [0; LANES as usize];
        each(lanes).for_each(|lane| keys[lane as usize] = locations(lane).key());
        let key = |lane: u32| keys[lane as usize];
        let bytes = u64::from(access.bytes * access.elements);
        let weak = Weak {
            writes: access.kind == OpKind::Store,
            read_only: access.order == MemoryOrder::ReadOnly,
            site: access.site,
            copy: 0,
            maker: None,
        };
        let plain =
            access.order.scope().is_none() && matches!(access.kind, OpKind::Load | OpKind::Store);
        // A vector is one access to aligned bytes.
        let whole = |key: u64| {
            key % LINE + bytes <= LINE && (access.elements == 1 || key.is_multiple_of(bytes))
        };
        if plain && each(lanes).all(|lane| whole(key(lane))) {
            let mut left = lanes;
            while left != 0 {
                let run = Run::take(&mut left, bytes, !weak.writes, &key);
                self.weak(warp, run, weak, &mut found);
            }
            return;
        }
        let mut changed = false;
        for lane in each(lanes) {
            for element in 0..access.elements {
                let key = key(lane) + u64::from(element * access.bytes);
                let heard = self.check(warp.lane(lane), access, None, key, &mut found);
                if let (Some(heard), Some(cta)) = (heard, self.ctas.get_mut(&warp.cta)) {
                    cta.heard.insert((warp.warp, lane), heard);
                }
                let signals = matches!(self.atomics, Atomics::Signal | Atomics::Count);
                let stores = access.kind == OpKind::Store || access.kind != OpKind::Load && signals;
                if stores && access.order.scope().is_some() {
                    self.stored(warp.lane(lane), key, access);
                }
                changed |= self.synchronise(warp.lane(lane), access, key);
            }
        }
        if changed {
            self.classify(warp);
        }
    }

    /// A weak access of lanes at a fixed distance, each within a line.
    pub(crate) fn weak(
        &mut self,
        warp: Warp,
        run: Run,
        weak: Weak,
        found: &mut impl FnMut(Race) -> Enough,
    ) {
        let Self {
            shape,
            ctas,
            memory,
            releases,
            copies,
            crowd,
            stamp,
            ..
        } = self;
        let met = |cta: u64| ctas.get(&cta).map(|cta| cta.base.times.cta);
        let Some(clocks) = ctas.get(&warp.cta).and_then(|cta| cta.known(warp.warp)) else {
            return;
        };
        // Shared memory of another CTA of the cluster belongs to that CTA.
        let history = memory.of(Location::of(run.first));
        for (mask, view) in clocks.groups() {
            let accessor = Accessor {
                shape,
                copies,
                warp,
                met: &met,
                crowd: *crowd,
                times: &view.times,
                maker: weak.maker,
            };
            run.lines(mask, |line, lanes, map, words| {
                let row = Row {
                    warp: Id::of(warp),
                    lanes,
                    time: view.times.own,
                    site: weak.site,
                    copy: weak.copy,
                    words,
                    map,
                    made: Made::at(*stamp),
                    read_only: weak.read_only,
                };
                let outcome = history.weak(&accessor, line, row, weak.writes, &mut |at, hit| {
                    let word = line * (LINE / WORD) + u64::from(at);
                    found(race(copies, warp, weak.site, word, &hit))
                });
                if outcome.displaced {
                    for lane in each(lanes) {
                        let key = line * LINE + u64::from(map.start(lane));
                        releases.weak_write(key, map.bytes.into());
                    }
                }
            });
        }
    }

    /// Checks an access of one thread against the history, and enters it there, in the name of a maker of
    /// copies if there is one; see [`Accessor::maker`]. The strong write that it has observed, if it is a
    /// strong load or an atomic that a loop waits for.
    pub(crate) fn check(
        &mut self,
        me: Thread,
        access: &Access,
        maker: Option<Epoch>,
        key: u64,
        found: &mut impl FnMut(Race) -> Enough,
    ) -> Option<Heard> {
        let Self {
            shape,
            ctas,
            memory,
            releases,
            copies,
            crowd,
            stamp,
            atomics,
            ..
        } = self;
        let met = |cta: u64| ctas.get(&cta).map(|cta| cta.base.times.cta);
        let clocks = ctas.get(&me.cta).and_then(|cta| cta.known(me.warp))?;
        let times = &clocks.view(me.lane).times;
        let accessor = Accessor {
            shape,
            copies,
            warp: me.warp(),
            met: &met,
            crowd: *crowd,
            times,
            maker,
        };
        let class = Class {
            writes: access.kind != OpKind::Load,
            strength: access.order.strength(),
            start: (key % 16) as u8,
            bytes: access.bytes.min(255) as u8,
        };
        let history = memory.of(Location::of(key));
        let end = key + u64::from(access.bytes);
        let words = key / WORD..=(end - 1) / WORD;
        let reads = access.kind != OpKind::Store && matches!(class.strength, Strength::Strong(_));
        let continues = reads
            && words
                .clone()
                .all(|word| history.observes(&accessor, me.lane, word, &class));
        let listens = match access.kind {
            OpKind::Load => true,
            OpKind::Rmw => *atomics == Atomics::Wait,
            _ => false,
        };
        let writer = match continues && listens {
            true => history.writer(&accessor, me.lane, key / WORD, &class),
            false => None,
        };
        let reads = Reads {
            continues,
            sees: matches!(access.kind, OpKind::Load | OpKind::Rmw),
        };
        for word in words {
            let first = key.saturating_sub(word * WORD).min(WORD) as u32;
            let past = (end - word * WORD).min(WORD) as u32;
            let entry = Entry {
                warp: Id::of(me.warp()),
                lanes: 1 << me.lane,
                time: times.own,
                class,
                mask: ((1 << past) - (1 << first)) as u8,
                site: access.site,
                copy: 0,
                made: Made::at(*stamp),
                order: Observed::default(),
            };
            let outcome = history.access(&accessor, word, entry, reads, &mut |hit| {
                found(race(copies, me.warp(), access.site, word, &hit))
            });
            if outcome.displaced && class.strength == Strength::Weak {
                releases.weak_write(key, access.bytes);
            }
        }
        let at = times.own;
        writer.map(|writer| Heard { writer, key, at })
    }

    /// The part of an access that orders others, or is ordered. True if it has changed clocks.
    pub(crate) fn synchronise(&mut self, me: Thread, access: &Access, key: u64) -> bool {
        let (scope, acquires, releases) = match access.order {
            MemoryOrder::Weak | MemoryOrder::ReadOnly => return false,
            MemoryOrder::Relaxed(scope) => (scope, false, false),
            MemoryOrder::Acquire(scope) => (scope, true, false),
            MemoryOrder::Release(scope) => (scope, false, true),
            MemoryOrder::AcqRel(scope) => (scope, true, true),
        };
        let Self {
            shape,
            ctas,
            releases: log,
            now,
            atomics,
            ..
        } = self;
        let party = Party { thread: me, scope };
        let lanes = ctas.entry(me.cta).or_default().lanes(me.warp);
        if releases {
            lanes.raise(1 << me.lane, *now);
        }
        let mut changed = false;
        let reads = matches!(access.kind, OpKind::Load | OpKind::Rmw);
        if reads {
            let seen = log.observe(shape, party, key, access.bytes);
            let fences = log.carried(shape, party, key, access.bytes);
            // An acquire ends the patterns of earlier strong reads of the same location as well.
            let earlier = acquires
                && lanes
                    .view(me.lane)
                    .pending
                    .iter()
                    .any(|pending| pending.address == key);
            let counts = *atomics == Atomics::Count && access.kind == OpKind::Rmw;
            if !counts && let Some(all) = lanes.view(me.lane).fenced.observing(&fences) {
                lanes.update(1 << me.lane, |view, _| view.fenced.observe(&all));
            }
            if counts {
                changed = seen.is_some();
                let acquired = acquires.then_some(scope);
                lanes.update(1 << me.lane, |view, _| {
                    view.count(access.site, seen.clone(), fences.clone(), acquired);
                });
            } else if earlier
                || seen
                    .as_ref()
                    .is_some_and(|seen| acquires || is_new(lanes.view(me.lane), seen))
            {
                changed = true;
                lanes.update(1 << me.lane, |view, _| {
                    if let Some(seen) = &seen {
                        note(view, seen);
                    }
                    if acquires {
                        acquire(shape, log, party, view, |pending| pending.address == key);
                    }
                });
            }
        }
        if access.kind != OpKind::Load {
            let view = lanes.view(me.lane);
            let times = releases.then(|| view.times.clone());
            let write = Write {
                thread: me,
                address: key,
                bytes: access.bytes,
                scope,
                operation: times.as_ref(),
                fences: &view.fences,
                fenced: &view.fenced,
                acquired: view.acquired,
            };
            log.strong_write(shape, &write, access.kind != OpKind::Store);
            if releases {
                changed = true;
                lanes.update(1 << me.lane, |view, _| view.times.own += 1);
            }
        }
        changed
    }
}

/// A race of a lane of `warp` at a word.
fn race(copies: &Copies, warp: Warp, site: u32, word: u64, hit: &Hit<'_>) -> Race {
    let Hit {
        rule,
        earlier,
        earlier_lanes,
        lane,
        bytes,
        of_many,
    } = *hit;
    Race {
        later: Side {
            thread: warp.lane(lane),
            site,
        },
        earlier: Side {
            thread: copies.issuer(earlier.warp.lane_of(earlier_lanes)),
            site: earlier.site,
        },
        location: Location::of(word * WORD),
        rule,
        by: earlier.warp.warp(),
        time: earlier.time,
        bytes,
        lanes: earlier_lanes,
        made: earlier.made,
        of_many,
        proxies: false,
        order: earlier.order,
    }
}

/// Whether a thread observes something for the first time, and has not acquired it yet. A thread that polls observes the
/// same again and again.
fn is_new(view: &View, seen: &Pending) -> bool {
    let (log, count) = (seen.mark.log, seen.mark.count);
    let acquired = { view.acquired }.is_some_and(|(of, all)| of == log && all >= count);
    let before = |old: &Pending| is_of(old, seen) && old.mark.count >= count;
    !acquired && !view.pending.iter().any(before)
}

/// Enters what a strong read has observed, once per log.
fn note(view: &mut View, seen: &Pending) {
    if !is_new(view, seen) {
        return;
    }
    match view.pending.iter_mut().find(|old| is_of(old, seen)) {
        Some(old) => old.clone_from(seen),
        None => view.pending.push(seen.clone()),
    }
}

/// Whether two reads have observed one log at one location.
fn is_of(old: &Pending, seen: &Pending) -> bool {
    (old.mark.log, old.address) == (seen.mark.log, seen.address)
}
