//! Who has accessed each byte of one word, as far as a later access may race with it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::clock::{Time, Times};
use super::observed::{Observed, Seen};
use super::place::{Id, Scope, Shape, Thread, Warp};

/// Accesses by different instructions that a word remembers although a later one says all that a
/// race is decided by: a report wants to name them.
pub(crate) const NAMED: usize = 12;
/// Accesses of a word after which a thread's last strong write stands for all its earlier ones,
/// although somebody may have observed the last and not the others.
const TOO_MANY: usize = 4096;

/// Accesses that a strong write looks at for one that it stands for.
const RECENT: usize = 4;

/// How strong an access is; see PTX ISA, "Strong and Weak Operations".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strength {
    /// Ordinary.
    Weak,
    /// Relaxed or more, at a scope.
    Strong(Scope),
    /// A load of data that is read-only while the kernel runs: `ld.global.nc`, textures.
    ReadOnly,
}

/// The part of an access that decides whether others race with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) writes: bool,
    pub(crate) strength: Strength,
    /// First byte in its 16-byte line, and bytes, of the scalar.
    pub(crate) start: u8,
    pub(crate) bytes: u8,
}

/// Accesses of lanes of one warp, at the same time of each, by one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) warp: Id,
    pub(crate) lanes: u32,
    pub(crate) time: Time,
    pub(crate) class: Class,
    /// Bytes of the word, one bit each.
    pub(crate) mask: u8,
    pub(crate) site: u32,
    /// Number of the asynchronous copies that it belongs to while they are under way, else 0.
    pub(crate) copy: u32,
    /// For strong writes, the highest lane's place among the writes that can be observed together;
    /// the other lanes have the places before.
    pub(crate) order: Observed,
}

/// The last strong write of a word.
#[derive(Clone, Copy, Debug)]
struct Last {
    order: Observed,
    start: u8,
    bytes: u8,
    writer: (Thread, Scope),
    time: Time,
}

/// What strong writes leave behind in a word.
#[derive(Clone, Debug, Default)]
struct Strong {
    /// The last strong writes of its scalars, which do not overlap.
    last: Vec<Last>,
    /// Who has observed which.
    seen: Vec<Seen>,
    /// Records of `seen` at which to look for those that nobody needs.
    crowd: u32,
}

/// The accesses of a word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pub(crate) writes: Vec<Entry>,
    pub(crate) loads: Vec<Entry>,
    /// Loads, and writes, at which to look for equal ones.
    crowd: [u32; 2],
    strong: Option<Box<Strong>>,
    /// Whether all accesses are alike and strong, at gpu scope or wider, so that none can race.
    calm: Calm,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Calm {
    /// No access yet.
    #[default]
    Untouched,
    /// First byte in the line, and bytes, of them all.
    At(u8, u8),
    /// They differ.
    No,
}

/// Why two accesses race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// At least one is weak, and nothing orders them.
    Unordered,
    /// Both are strong, but one's scope leaves the other's thread out.
    Scope,
    /// Both are strong, but they overlap in part only.
    Overlap,
    /// A write to data that is read as read-only in the same launch.
    ReadOnly,
    /// An asynchronous copy that was not waited for.
    Asynchronous,
}

/// Who accesses memory, and what they know.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) warp: Warp,
    /// The time of the last barrier that a whole CTA has passed; none when its threads have exited.
    pub(crate) met: &'a dyn Fn(u64) -> Option<Time>,
    /// See [`Engine::with_crowd`](super::Engine::with_crowd).
    pub(crate) crowd: u32,
    /// Of all the lanes that do the access.
    pub(crate) times: &'a Times,
}

/// A race of a lane with an earlier access by another one.
pub(crate) struct Hit<'a> {
    pub(crate) rule: Rule,
    pub(crate) earlier: &'a Entry,
    pub(crate) earlier_lane: u32,
    pub(crate) lane: u32,
}

/// Called for each race.
pub(crate) type Found<'a> = dyn FnMut(Hit<'_>) + 'a;

/// What became of an access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// It has put an end to a strong write that could be observed.
    pub(crate) displaced: bool,
}

impl Entry {
    /// The lanes of the entry that are not ordered before threads of `who`, and may be of them.
    fn unordered(&self, who: &Who<'_>) -> u32 {
        let of = self.warp.warp();
        who.times.unordered(who.warp, of, self.lanes, self.time)
    }

    /// Those of some lanes that have written after a place in the observation order.
    fn beyond(&self, lanes: u32, place: u32) -> u32 {
        let later = |lane: u32| (self.lanes >> lane).count_ones() - 1;
        let beyond = super::each(lanes).filter(|&lane| self.order.index - later(lane) > place);
        beyond.fold(0, |all, lane| all | 1 << lane)
    }
}

impl Class {
    /// True when whatever races with an access of the class `other` by `them` races with one of
    /// this class by `me` that is ordered after it.
    fn covers(&self, me: Warp, other: &Self, them: Warp) -> bool {
        if other.strength == Strength::ReadOnly || (other.writes && !self.writes) {
            return false;
        }
        match self.strength {
            Strength::Weak => true,
            // Whose scope includes the one may leave out the other, unless they share a CTA.
            Strength::Strong(_) => self == other && me.cta == them.cta,
            Strength::ReadOnly => false,
        }
    }

    /// Why two accesses of overlapping bytes race if nothing orders them.
    fn against(&self, me: Thread, other: &Self, them: Thread, shape: &Shape) -> Option<Rule> {
        match (self.strength, other.strength) {
            (Strength::Strong(mine), Strength::Strong(theirs)) => {
                if (self.start, self.bytes) != (other.start, other.bytes) {
                    Some(Rule::Overlap)
                } else if !shape.mutual((me, mine), (them, theirs)) {
                    Some(Rule::Scope)
                } else {
                    None
                }
            }
            _ => Some(Rule::Unordered),
        }
    }
}

impl Word {
    /// An access of lanes to bytes of the word: checked against what is known, then remembered.
    /// `continues` says that it reads what it observes in all its words; `observes`, that its thread
    /// gets to see that. Only loads may be of several lanes.
    pub(crate) fn access(
        &mut self,
        who: &Who<'_>,
        mut access: Entry,
        (continues, observes): (bool, bool),
        chains: &mut u32,
        found: &mut Found<'_>,
    ) -> Outcome {
        if !self.stays_calm(&access.class) {
            self.check(who, &access, found);
        }
        let me = who.warp.lane(access.lanes.trailing_zeros());
        let class = access.class;
        let before = self.observed(who.shape, me, &class).filter(|_| continues);
        let mut outcome = Outcome::default();
        let mut observed = before;
        if class.writes {
            outcome.displaced = self.displace(&class);
            observed = self.write((me, access.time), &class, before, chains);
            access.order = observed.unwrap_or_default();
        }
        if let Some(order) = observed.filter(|_| observes) {
            self.see(who, access.lanes, access.time, order);
        }
        self.remember(who, access);
        outcome
    }

    /// Finds what an access races with, calling `found` for each earlier access and lane.
    fn check(&self, who: &Who<'_>, access: &Entry, found: &mut Found<'_>) {
        let loads: &[Entry] = if access.class.writes {
            &self.loads
        } else {
            &[]
        };
        for entry in self.writes.iter().chain(loads) {
            if entry.mask & access.mask == 0 {
                continue;
            }
            let read_only = entry.class.strength == Strength::ReadOnly
                || access.class.strength == Strength::ReadOnly;
            if read_only || entry.copy != 0 {
                for lane in super::each(access.lanes) {
                    let own = entry.copy == access.copy && entry.warp.warp() == who.warp;
                    let others = entry.lanes & !(u32::from(own) << lane);
                    let (rule, by) = match read_only {
                        true => (Rule::ReadOnly, entry.lanes),
                        false => (Rule::Asynchronous, others),
                    };
                    if by != 0 {
                        found(Hit {
                            rule,
                            earlier: entry,
                            earlier_lane: by.trailing_zeros(),
                            lane,
                        });
                    }
                }
                continue;
            }
            let unordered = entry.unordered(who);
            if unordered != 0 {
                self.judge(who, access, (entry, unordered), found);
            }
        }
    }

    /// Decides about an earlier access, of which some lanes are not ordered before `access`.
    fn judge(
        &self,
        who: &Who<'_>,
        access: &Entry,
        (entry, unordered): (&Entry, u32),
        found: &mut Found<'_>,
    ) {
        for lane in super::each(access.lanes) {
            let me = who.warp.lane(lane);
            let own = u32::from(entry.warp.warp() == who.warp);
            let others = unordered & !(own << lane);
            if others == 0 {
                continue;
            }
            let other = others.trailing_zeros();
            let them = entry.warp.warp().lane(other);
            let Some(rule) = access.class.against(me, &entry.class, them, who.shape) else {
                continue;
            };
            let unseen = match entry.order.chain {
                0 => others,
                chain => entry.beyond(others, self.has_seen(me, who.times.cta, chain)),
            };
            if unseen != 0 {
                found(Hit {
                    rule,
                    earlier: entry,
                    earlier_lane: unseen.trailing_zeros(),
                    lane,
                });
            }
        }
    }

    /// How far a thread has observed a chain of writes.
    ///
    /// PTX ISA, "Causality Order": whatever comes after an operation that has observed a write comes
    /// after that write. Barriers of the whole CTA pass that on, and nothing else does.
    fn has_seen(&self, me: Thread, met: Time, chain: u32) -> u32 {
        let seen = self.strong.iter().flat_map(|strong| &strong.seen);
        let mine = seen.filter(|seen| {
            seen.order.chain == chain
                && seen.thread.cta == me.cta
                && (seen.thread == me || seen.time <= met)
        });
        mine.map(|seen| seen.order.index).max().unwrap_or(0)
    }

    fn see(&mut self, who: &Who<'_>, lanes: u32, time: Time, order: Observed) {
        let strong = self.strong.get_or_insert_default();
        for lane in super::each(lanes) {
            let thread = who.warp.lane(lane);
            let same = |old: &&mut Seen| {
                (old.thread, old.time, old.order.chain) == (thread, time, order.chain)
            };
            match strong.seen.iter_mut().rev().take(4).find(same) {
                Some(old) => old.order = old.order.max(order),
                None => strong.seen.push(Seen {
                    thread,
                    time,
                    order,
                }),
            }
        }
        if strong.seen.len() as u32 > strong.crowd.max(who.crowd) {
            let (writes, last) = (&self.writes, &strong.last);
            let alive = |chain: u32| {
                last.iter().any(|last| last.order.chain == chain)
                    || writes.iter().any(|entry| entry.order.chain == chain)
            };
            Seen::compact(&mut strong.seen, alive, who.met);
            strong.crowd = 2 * strong.seen.len() as u32;
        }
    }

    fn remember(&mut self, who: &Who<'_>, access: Entry) {
        if access.class.writes && access.copy == 0 {
            let many = self.writes.len() + self.loads.len() > NAMED;
            let me = access.lanes;
            let gone = |entry: &Entry| {
                let own = match entry.warp == access.warp {
                    true => me,
                    false => 0,
                };
                entry.copy == 0
                    && entry.mask & !access.mask == 0
                    && (many || entry.site == access.site)
                    && (access
                        .class
                        .covers(who.warp, &entry.class, entry.warp.warp()))
                    && (access.class.strength == Strength::Weak
                        || entry.order.chain == access.order.chain)
                    && entry.unordered(who) & !own == 0
            };
            match access.class.strength {
                Strength::Weak => {
                    self.loads.retain(|entry| !gone(entry));
                    self.writes.retain(|entry| !gone(entry));
                }
                // It stands for few others, if any, and those are recent.
                _ => {
                    let recent = self.writes.len().saturating_sub(RECENT);
                    if let Some(at) = self.writes[recent..].iter().position(gone) {
                        self.writes.remove(recent + at);
                    }
                }
            }
        }
        self.push(access, who.crowd);
    }

    fn push(&mut self, access: Entry, crowd: u32) {
        let of = usize::from(access.class.writes);
        let entries = match access.class.writes {
            true => &mut self.writes,
            false => &mut self.loads,
        };
        if merge(entries, &access) {
            return;
        }
        if entries.is_empty() {
            entries.reserve_exact(1);
        }
        entries.push(access);
        if entries.len() as u32 > self.crowd[of].max(crowd) {
            compact(entries, true);
            if entries.len() > TOO_MANY {
                compact(entries, false);
            }
            self.crowd[of] = 2 * entries.len() as u32;
        }
    }

    /// Takes in an access that has been checked elsewhere.
    pub(crate) fn enter(&mut self, access: Entry) {
        self.calm = Calm::No;
        self.push(access, u32::MAX);
    }

    /// A copy of a thread is complete: its accesses are now its own, at `time`.
    pub(crate) fn complete(&mut self, thread: Thread, copy: u32, time: Time) {
        for entries in [&mut self.writes, &mut self.loads] {
            let mut parted = Vec::new();
            for entry in entries.iter_mut() {
                let lane = entry.lanes & 1 << thread.lane;
                if entry.copy != copy || entry.warp.warp() != thread.warp() || lane == 0 {
                    continue;
                }
                entry.lanes &= !lane;
                parted.push(Entry {
                    lanes: lane,
                    copy: 0,
                    time,
                    ..*entry
                });
            }
            entries.retain(|entry| entry.lanes != 0);
            for entry in parted {
                if !merge(entries, &entry) {
                    entries.push(entry);
                }
            }
        }
    }

    /// Accesses kept.
    pub(crate) fn len(&self) -> usize {
        self.writes.len() + self.loads.len()
    }

    /// True when the access is like all others of the word, and so strong that none of them race.
    fn stays_calm(&mut self, class: &Class) -> bool {
        let Strength::Strong(Scope::Gpu | Scope::Sys) = class.strength else {
            self.calm = Calm::No;
            return false;
        };
        let at = Calm::At(class.start, class.bytes);
        if self.calm == Calm::Untouched {
            self.calm = at;
        }
        if self.calm != at {
            self.calm = Calm::No;
        }
        self.calm == at
    }

    /// The strong write that an access observes.
    fn observed(&self, shape: &Shape, me: Thread, class: &Class) -> Option<Observed> {
        self.last(shape, me, class).map(|last| last.order)
    }

    /// Whose strong write an access observes, and that thread's own time then.
    pub(crate) fn writer(
        &self,
        shape: &Shape,
        me: Thread,
        class: &Class,
    ) -> Option<(Thread, Time)> {
        let last = self.last(shape, me, class)?;
        Some((last.writer.0, last.time))
    }

    fn last(&self, shape: &Shape, me: Thread, class: &Class) -> Option<&Last> {
        let Strength::Strong(scope) = class.strength else {
            return None;
        };
        self.strong.as_ref()?.last.iter().find(|last| {
            (last.start, last.bytes) == (class.start, class.bytes)
                && (last.writer.0 == me || shape.mutual(last.writer, (me, scope)))
        })
    }

    /// True when an access observes a strong write.
    pub(crate) fn observes(&self, shape: &Shape, me: Thread, class: &Class) -> bool {
        self.observed(shape, me, class).is_some()
    }

    /// What a write overlaps can no longer be observed. True if it could.
    fn displace(&mut self, class: &Class) -> bool {
        let Some(strong) = &mut self.strong else {
            return false;
        };
        let end = |start: u8, bytes: u8| u32::from(start) + u32::from(bytes);
        let count = strong.last.len();
        strong.last.retain(|last| {
            end(last.start, last.bytes) <= u32::from(class.start)
                || end(class.start, class.bytes) <= u32::from(last.start)
        });
        strong.last.len() < count
    }

    /// Where a write that follows `before`, if any, stands in the observation order.
    fn write(
        &mut self,
        (me, time): (Thread, Time),
        class: &Class,
        before: Option<Observed>,
        chains: &mut u32,
    ) -> Option<Observed> {
        let Strength::Strong(scope) = class.strength else {
            return None;
        };
        let order = match before {
            Some(Observed { chain, index }) => Observed {
                chain,
                index: index + 1,
            },
            _ => {
                *chains += 1;
                Observed {
                    chain: *chains,
                    index: 1,
                }
            }
        };
        self.strong.get_or_insert_default().last.push(Last {
            order,
            start: class.start,
            bytes: class.bytes,
            writer: (me, scope),
            time,
        });
        Some(order)
    }
}

/// Adds an access to one of the last few that differ from it in the lanes only.
fn merge(entries: &mut [Entry], access: &Entry) -> bool {
    let same = |entry: &&mut Entry| {
        entry.warp == access.warp
            && entry.time == access.time
            && entry.site == access.site
            && entry.class == access.class
            && entry.mask == access.mask
            && entry.copy == access.copy
            && follows(entry, access)
    };
    match entries.iter_mut().rev().take(4).find(same) {
        Some(entry) => {
            entry.lanes |= access.lanes;
            entry.order = entry.order.max(access.order);
            true
        }
        None => false,
    }
}

/// True when the places of both in the observation order can be given by the last one.
fn follows(entry: &Entry, access: &Entry) -> bool {
    let (before, now) = (entry.order, access.order);
    let next = before.index + 1 == now.index && entry.lanes < access.lanes;
    before.chain == now.chain && (now.chain == 0 || next || entry.lanes == access.lanes)
}

/// Puts accesses together that differ in lanes only, and drops those that a later one of the same
/// threads stands for; `exactly`, only those that can be observed with it.
fn compact(entries: &mut Vec<Entry>, exactly: bool) {
    let key = |entry: &Entry| {
        let strength = match entry.class.strength {
            Strength::Weak => 0,
            Strength::ReadOnly => 1,
            Strength::Strong(scope) => 2 + scope as u32,
        };
        let place = (entry.class.start, entry.class.bytes, entry.mask);
        let chain = if exactly { entry.order.chain } else { 0 };
        (entry.warp, entry.site, strength, place, entry.copy, chain)
    };
    let latest = |entry: &Entry| core::cmp::Reverse((entry.time, entry.order));
    entries.sort_unstable_by_key(|entry| (key(entry), latest(entry)));
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    // Lanes of the current key that have been seen at a later time.
    let mut later = 0;
    for entry in entries.iter() {
        let same = kept.last().is_some_and(|last| key(last) == key(entry));
        if !same {
            later = 0;
        }
        let lanes = entry.lanes & !later;
        later |= entry.lanes;
        let unordered = entry.order.chain == 0;
        match kept.last_mut() {
            Some(_) if lanes == 0 => {}
            Some(last) if same && unordered && last.order.chain == 0 && last.time == entry.time => {
                last.lanes |= lanes;
            }
            // The lanes of a strong write give their places.
            _ if !unordered => kept.push(*entry),
            _ => kept.push(Entry { lanes, ..*entry }),
        }
    }
    *entries = kept;
}
