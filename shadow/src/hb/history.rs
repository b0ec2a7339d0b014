//! Who has accessed each byte, as far as a later access may race with it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hashbrown::HashMap;

use super::clock::Time;
use super::lanes::Lanes;
use super::observed::Observed;
use super::place::{Scope, Shape, Thread, Warp};

/// Bytes of a word.
pub(crate) const WORD: u64 = 4;
/// Words of a page.
const PAGE: usize = 256;
/// Accesses by different instructions that a word remembers although a later one says all that a
/// race is decided by: a report wants to name them.
const NAMED: usize = 12;
/// Accesses of a word after which equal ones are looked for.
const CROWD: u32 = 256;

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
    pub(crate) warp: Warp,
    pub(crate) lanes: u32,
    pub(crate) time: Time,
    pub(crate) class: Class,
    /// Bytes of the word, one bit each.
    pub(crate) mask: u8,
    pub(crate) site: u32,
    /// Number of the asynchronous copy that it belongs to while that is under way, else 0.
    pub(crate) copy: u32,
    /// For a strong write, its place among the writes that can be observed together.
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

/// The accesses of a word.
#[derive(Clone, Debug, Default)]
struct Word {
    writes: Vec<Entry>,
    loads: Vec<Entry>,
    /// Loads, and writes, at which to look for equal ones.
    crowd: [u32; 2],
    /// The last strong writes of its scalars, which do not overlap.
    last: Vec<Last>,
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

/// Memory of which a history is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pages: HashMap<u64, u32>,
    store: Vec<Box<[Word]>>,
    /// Chains of observed writes so far.
    chains: u32,
    /// The page used last.
    last: Option<(u64, u32)>,
}

impl Entry {
    /// The lanes of the entry that are not ordered before `me`.
    fn unordered(&self, me: Thread, lanes: &Lanes) -> u32 {
        let times = &lanes.view(me.lane).times;
        let mut left = self.lanes;
        if self.warp == me.warp() {
            left &= !(1 << me.lane);
            if self.time <= times.warp.max(times.cta) {
                return 0;
            }
        } else if self.warp.cta == me.cta && self.time <= times.cta {
            return 0;
        }
        if times.rest.is_empty() {
            return left;
        }
        (0..32)
            .filter(|lane| left >> lane & 1 == 1)
            .filter(|&lane| times.get(me, self.warp.lane(lane)) < self.time)
            .fold(0, |all, lane| all | 1 << lane)
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
    /// Finds what an access of `me` races with, calling `found` for each earlier access.
    fn check(
        &self,
        shape: &Shape,
        me: Thread,
        lanes: &Lanes,
        access: &Entry,
        knows: &impl Fn(u32) -> u32,
        found: &mut impl FnMut(Rule, &Entry, u32),
    ) {
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
            if read_only {
                found(Rule::ReadOnly, entry, entry.lanes.trailing_zeros());
                continue;
            }
            if entry.copy != 0 && entry.copy != access.copy {
                found(Rule::Asynchronous, entry, entry.lanes.trailing_zeros());
                continue;
            }
            let unordered = entry.unordered(me, lanes);
            if unordered == 0 {
                continue;
            }
            let lane = unordered.trailing_zeros();
            let them = entry.warp.lane(lane);
            let Some(rule) = access.class.against(me, &entry.class, them, shape) else {
                continue;
            };
            let Observed { chain, index } = entry.order;
            if chain == 0 || knows(chain) < index {
                found(rule, entry, lane);
            }
        }
    }

    fn remember(&mut self, me: Thread, lanes: &Lanes, access: Entry) {
        if access.class.writes {
            let many = self.writes.len() + self.loads.len() > NAMED;
            let gone = |entry: &Entry| {
                entry.copy == 0
                    && entry.mask & !access.mask == 0
                    && (many || entry.site == access.site)
                    && access.class.covers(access.warp, &entry.class, entry.warp)
                    && (access.class.strength == Strength::Weak
                        || entry.order.chain == access.order.chain)
                    && entry.unordered(me, lanes) == 0
            };
            if !self.loads.is_empty() && access.copy == 0 {
                self.loads.retain(|entry| !gone(entry));
            }
            if access.copy == 0 {
                self.writes.retain(|entry| !gone(entry));
            }
        }
        let of = usize::from(access.class.writes);
        let entries = match access.class.writes {
            true => &mut self.writes,
            false => &mut self.loads,
        };
        if merge(entries, &access) {
            return;
        }
        entries.push(access);
        if entries.len() as u32 > self.crowd[of].max(CROWD) {
            compact(entries);
            self.crowd[of] = 2 * entries.len() as u32;
        }
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
    fn observed(&self, shape: &Shape, me: Thread, class: &Class) -> Option<&Last> {
        let Strength::Strong(scope) = class.strength else {
            return None;
        };
        self.last.iter().find(|last| {
            (last.start, last.bytes) == (class.start, class.bytes)
                && (last.writer.0 == me || shape.mutual(last.writer, (me, scope)))
        })
    }

    /// Where a write that follows `before`, if any, stands in the observation order.
    fn write(
        &mut self,
        (me, time): (Thread, Time),
        class: &Class,
        before: Option<Observed>,
        chains: &mut u32,
    ) -> Option<Observed> {
        let end = |start: u8, bytes: u8| u32::from(start) + u32::from(bytes);
        self.last.retain(|last| {
            end(last.start, last.bytes) <= u32::from(class.start)
                || end(class.start, class.bytes) <= u32::from(last.start)
        });
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
        self.last.push(Last {
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
            && entry.order.chain == access.order.chain
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

/// Puts accesses together that differ in lanes only, and drops those that a later one of the same
/// thread stands for.
fn compact(entries: &mut Vec<Entry>) {
    let key = |entry: &Entry| {
        let strength = match entry.class.strength {
            Strength::Weak => 0,
            Strength::ReadOnly => 1,
            Strength::Strong(scope) => 2 + scope as u32,
        };
        let place = (entry.class.start, entry.class.bytes, entry.mask);
        (entry.warp, entry.site, strength, place, entry.copy)
    };
    entries.sort_unstable_by_key(|entry| (key(entry), core::cmp::Reverse(entry.time)));
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
        match kept.last_mut() {
            Some(last) if same && (last.time == entry.time || lanes == 0) => {
                last.lanes |= lanes;
                last.order = last.order.max(entry.order);
            }
            _ => kept.push(Entry { lanes, ..*entry }),
        }
    }
    *entries = kept;
}

impl History {
    /// An access of one lane to bytes of one word: checked against what is known, then remembered.
    /// `knows` gives how far the lane has observed a chain. `continues` says that the access reads
    /// what it observes in all its words. Gives what it observes, itself included.
    pub(crate) fn access(
        &mut self,
        shape: &Shape,
        (me, lanes): (Thread, &Lanes),
        (word, continues): (u64, bool),
        mut access: Entry,
        knows: impl Fn(u32) -> u32,
        mut found: impl FnMut(Rule, &Entry, u32),
    ) -> Option<Observed> {
        let mut chains = self.chains;
        let word = self.word(word);
        if !word.stays_calm(&access.class) {
            word.check(shape, me, lanes, &access, &knows, &mut found);
        }
        let class = access.class;
        let before = word.observed(shape, me, &class).filter(|_| continues);
        let before = before.map(|last| last.order);
        let observed = match class.writes {
            true => word.write((me, access.time), &class, before, &mut chains),
            false => before,
        };
        if class.writes {
            access.order = observed.unwrap_or_default();
        }
        word.remember(me, lanes, access);
        self.chains = chains;
        observed
    }

    /// Whose strong write an access observes in a word, and that thread's own time then.
    pub(crate) fn observes(
        &mut self,
        shape: &Shape,
        me: Thread,
        word: u64,
        class: &Class,
    ) -> Option<(Thread, Time)> {
        let last = self.word(word).observed(shape, me, class)?;
        Some((last.writer.0, last.time))
    }

    fn word(&mut self, word: u64) -> &mut Word {
        let (page, at) = (word / PAGE as u64, (word % PAGE as u64) as usize);
        let index = match self.last {
            Some((last, index)) if last == page => index,
            _ => {
                let store = &mut self.store;
                let index = *self.pages.entry(page).or_insert_with(|| {
                    store.push(alloc::vec![Word::default(); PAGE].into_boxed_slice());
                    (store.len() - 1) as u32
                });
                self.last = Some((page, index));
                index
            }
        };
        &mut self.store[index as usize][at]
    }

    /// The words from `first` to `last` are new memory.
    pub(crate) fn forget(&mut self, first: u64, last: u64) {
        for word in first..=last {
            if self.pages.contains_key(&(word / PAGE as u64)) {
                *self.word(word) = Word::default();
            }
        }
    }

    /// A copy is complete: its accesses of `word` are now those of its thread, at `time`.
    pub(crate) fn complete(&mut self, word: u64, copy: u32, time: Time) {
        let word = self.word(word);
        for entry in word.writes.iter_mut().chain(&mut word.loads) {
            if entry.copy == copy {
                (entry.copy, entry.time) = (0, time);
            }
        }
    }

    /// Accesses kept, over all words.
    pub(crate) fn len(&self) -> usize {
        let words = self.store.iter().flat_map(|page| page.iter());
        words.map(|word| word.writes.len() + word.loads.len()).sum()
    }
}
