//! The accesses of a word, and crowds among them.
//!
//! Where hundreds of warps have accessed a word by one instruction, and nothing orders them, a later
//! access races with all of them. To look at each of them would take time with the square of the
//! threads. So accesses that differ in the threads only stand together once they are many, and are
//! looked at from the latest to the first, until the listener has heard [`Enough`] of them.

use alloc::vec::Vec;

use super::Enough;
use super::copy::Part;
use super::entry::{Class, Entry, Strength};
use super::thread::{Epoch, Id};

/// Accesses of a word after which a thread's last strong write stands for all its earlier ones,
/// although another thread may have observed the last and not the others.
const TOO_MANY: usize = 4096;

/// What accesses of a crowd have in common: the instruction, and the bytes of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    site: u32,
    class: Class,
    mask: u8,
}

fn kind(of: &Entry) -> Kind {
    Kind {
        site: of.site,
        class: of.class,
        mask: of.mask,
    }
}

/// Many accesses of one kind, none of them a copy.
#[derive(Clone, Debug)]
struct Crowd {
    kind: Kind,
    entries: Vec<Entry>,
    /// How many there are when it is time to look for equal ones.
    limit: u32,
}

/// Accesses, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    /// Those that belong to no crowd yet.
    recent: Vec<Entry>,
    crowds: Vec<Crowd>,
    /// How many recent ones there are when it is time to look for equal ones, and for crowds.
    limit: u32,
}

impl List {
    pub(crate) fn len(&self) -> usize {
        let crowds = self.crowds.iter().map(|crowd| crowd.entries.len());
        self.recent.len() + crowds.sum::<usize>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.crowds.is_empty()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let crowds = self.crowds.iter().flat_map(|crowd| &crowd.entries);
        crowds.chain(&self.recent)
    }

    /// Where the first of the last few is that `wanted` holds for; none of a crowd.
    pub(crate) fn last(&self, count: usize, wanted: impl FnMut(&Entry) -> bool) -> Option<usize> {
        let first = self.recent.len().saturating_sub(count);
        let at = self.recent[first..].iter().position(wanted);
        at.map(|at| first + at)
    }

    /// Takes out what [`Self::last`] has found.
    pub(crate) fn remove(&mut self, at: usize) {
        self.recent.remove(at);
    }

    /// Drops those that are not to be kept.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        for crowd in &mut self.crowds {
            crowd.entries.retain(&mut keep);
        }
        self.crowds.retain(|crowd| !crowd.entries.is_empty());
        self.recent.retain(keep);
    }

    /// Calls `look` for each, and says whether it is one of many, until it has had enough of those of
    /// its kind. True if some were left out for that.
    pub(crate) fn look(&self, mut look: impl FnMut(&Entry, bool) -> Enough) -> bool {
        if self.crowds.is_empty() {
            for entry in &self.recent {
                look(entry, false);
            }
            return false;
        }
        let mut had: Vec<Kind> = Vec::new();
        let kinds = self.crowds.iter().map(|crowd| (&crowd.entries, true));
        for (entries, alike) in [(&self.recent, false)].into_iter().chain(kinds) {
            for entry in entries.iter().rev() {
                match had.contains(&kind(entry)) {
                    true if alike => break,
                    true => {}
                    false if look(entry, true) == Enough::OfSite => had.push(kind(entry)),
                    false => {}
                }
            }
        }
        !had.is_empty()
    }

    /// Adds an access, or lets one of the last few stand for it.
    pub(crate) fn push(&mut self, access: Entry, crowd: u32) {
        let entries = &mut self.recent;
        if merge(entries, &access) {
            return;
        }
        if entries.is_empty() {
            entries.reserve_exact(1);
        }
        entries.push(access);
        if entries.len() as u32 > self.limit.max(crowd) {
            compact(entries, true);
            if entries.len() > TOO_MANY {
                compact(entries, false);
            }
            if entries.len() as u32 > crowd {
                self.gather(&access, crowd);
            }
            self.limit = 2 * self.recent.len() as u32;
        }
    }

    /// Puts those together of which there are many. The last one's instruction may go on, so that its
    /// lanes stay.
    fn gather(&mut self, last: &Entry, crowd: u32) {
        let stays = |of: &Entry| {
            let under_way = (of.warp, of.time) == (last.warp, last.time);
            under_way || of.copy != 0 || of.warp.makes_copies()
        };
        let mut kinds: Vec<(Kind, u32)> = Vec::new();
        for of in self.recent.iter().filter(|of| !stays(of)).map(kind) {
            match kinds.iter_mut().find(|known| known.0 == of) {
                Some(known) => known.1 += 1,
                None => kinds.push((of, 1)),
            }
        }
        kinds.retain(|(_, count)| *count > crowd / 4);
        for (kind, _) in &kinds {
            if self.crowds.iter().all(|crowd| crowd.kind != *kind) {
                self.crowds.push(Crowd {
                    kind: *kind,
                    entries: Vec::new(),
                    limit: crowd,
                });
            }
        }
        let mut left = Vec::with_capacity(self.recent.len());
        for entry in self.recent.drain(..) {
            let of = kind(&entry);
            let of = self.crowds.iter_mut().find(|crowd| crowd.kind == of);
            match of.filter(|_| !stays(&entry)) {
                Some(crowd) => crowd.entries.push(entry),
                None => left.push(entry),
            }
        }
        self.recent = left;
        let many = self.len() > TOO_MANY;
        for Crowd { entries, limit, .. } in &mut self.crowds {
            if entries.len() as u32 > *limit {
                compact(entries, !many);
                *limit = 2 * entries.len() as u32;
            }
        }
    }

    /// See [`History::complete`](super::history::History::complete).
    pub(crate) fn complete(&mut self, part: Part, by: Epoch) {
        let thread = part.issuer;
        let mut parted = Vec::new();
        for entry in &mut self.recent {
            let lane = entry.lanes & 1 << thread.lane;
            if entry.copy != part.copy || entry.warp.warp() != thread.warp() || lane == 0 {
                continue;
            }
            entry.lanes &= !lane;
            parted.push(Entry {
                warp: Id::of(by.thread.warp()),
                lanes: lane,
                copy: 0,
                time: by.time,
                ..*entry
            });
        }
        self.recent.retain(|entry| entry.lanes != 0);
        parted
            .into_iter()
            .for_each(|entry| self.push(entry, u32::MAX));
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
            entry.made = entry.made.and(access.made);
            entry.order = entry.order.max(access.order);
            true
        }
        None => false,
    }
}

/// True when the positions of both in the observation order can be given by the last one.
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
        let extent = (entry.class.start, entry.class.bytes, entry.mask);
        let chain = if exactly { entry.order.chain } else { 0 };
        (entry.warp, entry.site, strength, extent, entry.copy, chain)
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
            Some(last) if lanes == 0 => {
                if last.time == entry.time {
                    last.made = last.made.and(entry.made);
                }
            }
            Some(last) if same && unordered && last.order.chain == 0 && last.time == entry.time => {
                last.lanes |= lanes;
                last.made = last.made.and(entry.made);
            }
            // The lanes of a strong write give their positions.
            _ if !unordered => kept.push(*entry),
            _ => kept.push(Entry { lanes, ..*entry }),
        }
    }
    *entries = kept;
}
