//! Who has accessed what, as far as a later access may race with it.
//!
//! A line remembers weak accesses by rows, an instruction of a warp each, as long as it is plain that
//! they do not race with one another. What is not so plain is left to the single words ([`Word`]),
//! which know best; a word that once stands on its own stays so.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use hashbrown::HashMap;

use super::clock::Time;
use super::copy::Part;
use super::entry::{Accessor, Class, Entry};
use super::observed::Seen;
use super::row::Row;
use super::thread::{Epoch, Id, Thread};
use super::word::{Found, Hit, NAMED, Outcome, Reads, Word};
use super::{Enough, Race, each};

/// Bytes of a word.
pub(crate) const WORD: u64 = 4;
/// Bytes of a line.
pub(crate) const LINE: u64 = 128;
/// Lines of a page.
const PAGE: usize = 32;
/// Pages that are found without looking them up; a power of two.
const RECENT: usize = 16;

/// 32 words.
#[derive(Clone, Debug, Default)]
struct Line {
    writes: Vec<Row>,
    loads: Vec<Row>,
    /// Loads, and writes, at which to look for equal ones.
    crowd: [u32; 2],
    /// The words that stand on their own, one bit each, and their accesses in order.
    own: u32,
    words: Vec<Word>,
}

type Page = Box<[Option<Box<Line>>; PAGE]>;

/// Memory of which a history is kept.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pages: HashMap<u64, u32>,
    store: Vec<Page>,
    /// Chains of observed writes so far.
    chains: u32,
    /// Some pages used last, by their lowest bits.
    recent: [(u64, u32); RECENT],
}

impl Default for History {
    fn default() -> Self {
        Self {
            pages: HashMap::new(),
            store: Vec::new(),
            chains: 0,
            recent: [(u64::MAX, 0); RECENT],
        }
    }
}

impl Line {
    /// A word, which stands on its own from now on.
    fn word(&mut self, at: u32) -> &mut Word {
        let rank = (self.own & ((1 << at) - 1)).count_ones() as usize;
        if self.own >> at & 1 == 0 {
            self.own |= 1 << at;
            let mut word = Word::default();
            for (rows, writes) in [(&mut self.writes, true), (&mut self.loads, false)] {
                for row in rows.iter_mut().filter(|row| row.words >> at & 1 == 1) {
                    row.entries(at, writes).for_each(|entry| word.enter(entry));
                    row.words &= !(1 << at);
                }
                rows.retain(|row| row.words != 0);
            }
            self.words.insert(rank, word);
        }
        &mut self.words[rank]
    }

    fn concurrent(&self, accessor: &Accessor<'_>, at: u32, access: &Entry, found: &mut Found<'_>) {
        if self.own >> at & 1 == 1 {
            let rank = (self.own & ((1 << at) - 1)).count_ones() as usize;
            return self.words[rank].concurrent(accessor, access, found);
        }
        let mut word = Word::default();
        let loads = Some(&self.loads).filter(|_| access.class.writes);
        for (rows, writes) in [(Some(&self.writes), true), (loads, false)] {
            let rows = rows.into_iter().flatten();
            for row in rows.filter(|row| row.words >> at & 1 == 1) {
                row.entries(at, writes).for_each(|entry| word.enter(entry));
            }
        }
        word.concurrent(accessor, access, found);
    }

    fn weak(
        &mut self,
        accessor: &Accessor<'_>,
        mut row: Row,
        writes: bool,
        chains: &mut u32,
        found: &mut dyn FnMut(u32, Hit<'_>) -> Enough,
    ) -> Outcome {
        let mut apart = self.own & row.words;
        let loads: &[Row] = if writes { &self.loads } else { &[] };
        for old in self.writes.iter().chain(loads) {
            apart |= old.suspects(&row, accessor.warp, accessor.times);
        }
        let mut outcome = Outcome::default();
        for at in each(apart) {
            let word = self.word(at);
            let mut found = |race: Hit<'_>| found(at, race);
            for entry in row.entries(at, writes) {
                let it = word.access(accessor, entry, Reads::default(), chains, &mut found);
                outcome.displaced |= it.displaced;
            }
        }
        row.words &= !apart;
        if row.words != 0 {
            self.remember(accessor, row, writes);
        }
        outcome
    }

    fn remember(&mut self, accessor: &Accessor<'_>, mut row: Row, writes: bool) {
        let mut made = row.made;
        if writes && row.copy == 0 {
            let all = self.writes.iter().chain(&self.loads);
            let many = all.filter(|old| old.words & row.words != 0).count() > NAMED;
            for rows in [&mut self.writes, &mut self.loads] {
                rows.retain_mut(|old| {
                    let gone = old.covered(&row, accessor.warp, accessor.times, many);
                    if gone != 0 && old.repeats(&row) {
                        made = made.and(old.made);
                    }
                    old.words &= !gone;
                    old.words != 0
                });
            }
        }
        row.made = made;
        if let Some(maker) = accessor.maker {
            (row.warp, row.time) = (Id::of(maker.thread.warp()), maker.time);
        }
        let rows = match writes {
            true => &mut self.writes,
            false => &mut self.loads,
        };
        push(rows, row);
        let crowd = &mut self.crowd[usize::from(writes)];
        if rows.len() as u32 > (*crowd).max(accessor.crowd) {
            compact(rows);
            *crowd = 2 * rows.len() as u32;
        }
    }

    fn complete(&mut self, words: u32, part: Part, by: Epoch) {
        let thread = part.issuer;
        let rows = match part.writes {
            true => &mut self.writes,
            false => &mut self.loads,
        };
        for at in 0..rows.len() {
            let row = &mut rows[at];
            let lane = row.lanes & 1 << thread.lane;
            if row.copy != part.copy || row.warp.warp() != thread.warp() || lane == 0 {
                continue;
            }
            let done = Row {
                warp: Id::of(by.thread.warp()),
                lanes: lane,
                words: row.map.words(lane) & row.words,
                copy: 0,
                time: by.time,
                ..*row
            };
            row.lanes &= !lane;
            row.words &= row.map.words(row.lanes);
            if done.words != 0 {
                push(rows, done);
            }
        }
        rows.retain(|row| row.words != 0);
        for at in each(words & self.own) {
            self.word(at).complete(part, by);
        }
    }

    /// Some words are new memory.
    fn forget(&mut self, words: u32) {
        for rows in [&mut self.writes, &mut self.loads] {
            rows.iter_mut().for_each(|row| row.words &= !words);
            rows.retain(|row| row.words != 0);
        }
        for at in each(words & self.own) {
            *self.word(at) = Word::default();
        }
    }

    fn len(&self) -> usize {
        let words: usize = self.words.iter().map(Word::len).sum();
        self.writes.len() + self.loads.len() + words
    }
}

/// The words of a line that are not before `first` or after `last`, one bit each.
fn part(line: u64, words: &RangeInclusive<u64>) -> u32 {
    let per_line = LINE / WORD;
    let start = words.start().max(&(line * per_line)) % per_line;
    let end = words.end().min(&(line * per_line + per_line - 1)) % per_line;
    u32::MAX >> (31 - (end - start)) << start
}

/// The lines that some words are in.
fn lines(words: &RangeInclusive<u64>) -> RangeInclusive<u64> {
    let per_line = LINE / WORD;
    words.start() / per_line..=words.end() / per_line
}

/// Adds a row, to one of the last few if that says the same of other lanes or times.
fn push(rows: &mut Vec<Row>, row: Row) {
    let mut last = rows.iter_mut().rev().take(4);
    if last.any(|old| old.absorb(&row)) {
        return;
    }
    if rows.is_empty() {
        rows.reserve_exact(1);
    }
    rows.push(row);
}

/// Puts rows together that differ in lanes only, and drops those that a later one of the same lanes
/// stands for.
fn compact(rows: &mut Vec<Row>) {
    let key = |row: &Row| (row.warp, row.site, row.map, row.copy, row.time);
    rows.sort_unstable_by_key(key);
    let mut kept: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows.iter() {
        if !kept.last_mut().is_some_and(|last| last.absorb(row)) {
            kept.push(*row);
        }
    }
    *rows = kept;
}

impl History {
    /// A weak access of lanes to a line, by one instruction. Races come with the word in the line.
    pub(crate) fn weak(
        &mut self,
        accessor: &Accessor<'_>,
        line: u64,
        row: Row,
        writes: bool,
        found: &mut dyn FnMut(u32, Hit<'_>) -> Enough,
    ) -> Outcome {
        let mut chains = self.chains;
        let line = self.line(line);
        let outcome = line.weak(accessor, row, writes, &mut chains, found);
        self.chains = chains;
        outcome
    }

    /// An access to bytes of one word, of one lane; see [`Word::access`].
    pub(crate) fn access(
        &mut self,
        accessor: &Accessor<'_>,
        word: u64,
        access: Entry,
        reads: Reads,
        found: &mut Found<'_>,
    ) -> Outcome {
        let mut chains = self.chains;
        let outcome = self
            .word(word)
            .access(accessor, access, reads, &mut chains, found);
        self.chains = chains;
        outcome
    }

    /// Enters an access to a word that need not be checked.
    pub(crate) fn enter(&mut self, word: u64, access: Entry) {
        self.word(word).enter(access);
    }

    /// True when an access observes a strong write in a word.
    pub(crate) fn observes(
        &mut self,
        accessor: &Accessor<'_>,
        lane: u32,
        word: u64,
        class: &Class,
    ) -> bool {
        let me = accessor.warp.lane(lane);
        self.word(word).observes(accessor.shape, me, class)
    }

    /// Whose strong write an access observes in a word, and that thread's own time then.
    pub(crate) fn writer(
        &mut self,
        accessor: &Accessor<'_>,
        lane: u32,
        word: u64,
        class: &Class,
    ) -> Option<Epoch> {
        let me = accessor.warp.lane(lane);
        self.word(word).writer(accessor.shape, me, class)
    }

    /// What later accesses to some words, which `make` gives, race with; see
    /// [`Engine::concurrent`](super::Engine::concurrent).
    pub(crate) fn concurrent(
        &self,
        accessor: &Accessor<'_>,
        words: RangeInclusive<u64>,
        make: &dyn Fn(u64) -> Entry,
        found: &mut dyn FnMut(u64, Hit<'_>) -> Enough,
    ) {
        let per_line = LINE / WORD;
        for line in lines(&words) {
            let page = self.pages.get(&(line / PAGE as u64));
            let page = page.map(|&page| &self.store[page as usize]);
            let known = page.and_then(|page| page[(line % PAGE as u64) as usize].as_ref());
            for at in known.into_iter().flat_map(|_| each(part(line, &words))) {
                let word = line * per_line + u64::from(at);
                if let Some(line) = known {
                    line.concurrent(accessor, at, &make(word), &mut |hit| found(word, hit));
                }
            }
        }
    }

    /// Calls `each` with the writes to some words, and with what threads have observed there.
    pub(crate) fn writes(
        &mut self,
        words: RangeInclusive<u64>,
        each: &mut dyn FnMut(u64, &Entry, &[Seen]),
    ) {
        let per_line = LINE / WORD;
        for line in lines(&words) {
            if !self.pages.contains_key(&(line / PAGE as u64)) {
                continue;
            }
            let found = self.line(line);
            for at in super::each(part(line, &words)) {
                let word = line * per_line + u64::from(at);
                let rows = found.writes.iter().filter(|row| row.words >> at & 1 == 1);
                for row in rows {
                    row.entries(at, true)
                        .for_each(|entry| each(word, &entry, &[]));
                }
                if found.own >> at & 1 == 1 {
                    let own = found.word(at);
                    own.writes().for_each(|entry| each(word, entry, own.seen()));
                }
            }
        }
    }

    /// See [`Word::unseen`].
    pub(crate) fn unseen(
        &mut self,
        word: u64,
        race: &Race,
        lanes: u32,
        knows: &dyn Fn(Thread, Time) -> bool,
    ) -> u32 {
        let per_line = LINE / WORD;
        let (line, at) = (self.line(word / per_line), (word % per_line) as u32);
        match line.own >> at & 1 {
            0 => lanes,
            _ => line.word(at).unseen(race, lanes, knows),
        }
    }

    /// See [`Word::flag`].
    pub(crate) fn flag(&self, word: u64, writer: Thread, reader: Thread) -> [Option<u32>; 2] {
        let per_line = LINE / WORD;
        let (line, at) = (word / per_line, (word % per_line) as u32);
        let page = self.pages.get(&(line / PAGE as u64));
        let page = page.map(|&page| &self.store[page as usize]);
        let line = page.and_then(|page| page[(line % PAGE as u64) as usize].as_ref());
        let Some(line) = line.filter(|line| line.own >> at & 1 == 1) else {
            return [None; 2];
        };
        let rank = (line.own & ((1 << at) - 1)).count_ones() as usize;
        line.words[rank].flag(writer, reader)
    }

    /// Some words are new memory.
    pub(crate) fn forget(&mut self, words: RangeInclusive<u64>) {
        for line in lines(&words) {
            if self.pages.contains_key(&(line / PAGE as u64)) {
                self.line(line).forget(part(line, &words));
            }
        }
    }

    fn word(&mut self, word: u64) -> &mut Word {
        let per_line = LINE / WORD;
        self.line(word / per_line).word((word % per_line) as u32)
    }

    fn line(&mut self, line: u64) -> &mut Line {
        let (page, at) = (line / PAGE as u64, (line % PAGE as u64) as usize);
        let recent = &mut self.recent[page as usize % RECENT];
        if recent.0 != page {
            let store = &mut self.store;
            let index = *self.pages.entry(page).or_insert_with(|| {
                store.push(Page::default());
                (store.len() - 1) as u32
            });
            *recent = (page, index);
        }
        self.store[recent.1 as usize][at].get_or_insert_default()
    }

    /// Accesses of some words by a copy are now those of `by`, in the same lane.
    pub(crate) fn complete(&mut self, words: RangeInclusive<u64>, copy: Part, by: Epoch) {
        for line in lines(&words) {
            let words = part(line, &words);
            self.line(line).complete(words, copy, by);
        }
    }

    /// Accesses kept, over all words.
    pub(crate) fn len(&self) -> usize {
        let lines = self.store.iter().flat_map(|page| page.iter().flatten());
        lines.map(|line| line.len()).sum()
    }
}
