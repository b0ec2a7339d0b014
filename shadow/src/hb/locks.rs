//! Which words are locks, who holds them, and what was accessed under them.
//!
//! After the lock inference of ScoRD (Kamath et al., ISCA 2020): who swaps a value in has taken a
//! lock, and writes there again to release it. Departures:
//! 1. Values decide (`lock_word.rs`). A swap takes the lock when it changes the value that was there
//!    first, the free one; the word is a lock once the thread that took it has written there again
//!    before anybody else changed it, and stays one while every swap finds it free or held in that way.
//! 2. Threads that add one and the same number to it and take that away again are readers. Several hold the
//!    lock at once, and none while a thread that has swapped holds it.
//! 3. Fences are remembered, and not required: what is missing is for a report to say.
//! 4. A word that another atomic changes while it is free, and not back by the same thread, as tickets and
//!    counters are, is none.
//! 5. A thread that passes a barrier while it holds a word lets others in: the word is none.
//! 6. Exchanges that take a word for different values would change it while it is held, if they failed:
//!    it is the end of a queue, and no lock.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::lock_word::{LockWord, Meaning};
use super::section::{Held, Hold, Touched, Used};
use super::thread::{Shape, Thread};
use super::turns::{Past, Touch, Turn};
use super::{FenceKind, Location};

/// Words that a thread holds at once; of more, the first that has not passed for a lock is none, or the first.
const MOST_HELD: usize = 8;
/// Words and sites that a thread accesses while it holds a lock; a word with more is none.
const MOST_TOUCHED: usize = 4096;
/// The same for words that nobody has given back yet: claims that are never given back are common.
const MOST_CLAIMED: usize = 256;
/// Words that are followed because somebody has added to them, before anybody has swapped there.
const MOST_COUNTED: usize = 1 << 16;

/// What an `atom.cas` or `atom.exch` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swap {
    /// What it compares with; none for an exchange.
    pub compare: Option<u64>,
    /// What it wants to write.
    pub new: u64,
    /// What was there.
    pub old: u64,
}

impl Swap {
    /// It has written something else than was there.
    pub fn changes(self) -> bool {
        self.after() != self.old
    }

    /// What is there now.
    pub(crate) fn after(self) -> u64 {
        match self.compare {
            Some(value) if value != self.old => self.old,
            _ => self.new,
        }
    }
}

/// What an atomic that is no swap did: what was there, and what is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// What was there.
    pub old: u64,
    /// What is there now.
    pub new: u64,
}

/// What became of a write to a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// A known lock was taken or given back, or an attempt failed: what it acquires is the order of this run.
    pub(crate) of_lock: bool,
    pub(crate) released: Option<Released>,
}

/// A lock was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Released {
    /// Its number.
    pub(crate) lock: u32,
    /// By a reader.
    pub(crate) shared: bool,
}

/// How a word is written: where, in which scopes it orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    pub(crate) thread: Thread,
    pub(crate) location: Location,
    pub(crate) site: u32,
    pub(crate) bytes: u32,
    pub(crate) scope: Scope,
    pub(crate) acquires: bool,
    pub(crate) releases: bool,
}

#[derive(Clone, Debug)]
struct Word {
    means: LockWord,
    /// Acquires of it were taken for the order of this run before it was known to be a lock.
    lent: bool,
}

/// The locks of a launch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    index: HashMap<Location, u32>,
    /// The first and the last of them.
    extent: Option<(Location, Location)>,
    words: Vec<Word>,
    held: HashMap<Thread, Vec<Hold>>,
    /// Accesses under locks that have been released since: word of memory, thread, site, lock.
    past: BTreeMap<(u64, Thread, u32, u32), Held>,
    /// Who has accessed a word of memory under a lock.
    used: HashMap<(u32, u64), Used>,
    /// Readers that have counted themselves into a word while another thread holds it alone.
    waiting: HashMap<(u32, Thread), Writing>,
    /// Words that are followed because somebody has added to them.
    counted: usize,
    /// Readers have given some word back.
    readers: bool,
    /// Of critical sections that are over: those that might as well have come the other way around.
    turns: Vec<Turn>,
    /// A word that had passed for a lock turned out to be none.
    spoiled: bool,
}

impl Locks {
    /// True while no word has been swapped.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// True when something that was taken for a lock was none, as far as is known.
    pub(crate) fn is_spoiled(&self) -> bool {
        self.spoiled
    }

    /// The same at the end of a launch.
    pub(crate) fn end_spoiled(&self) -> bool {
        self.spoiled || self.words.iter().any(|of| of.lent && !of.means.is_lock())
    }

    /// True for words that have been taken and released, and nothing else.
    pub(crate) fn is_lock(&self, location: Location) -> bool {
        self.known(location).is_some_and(LockWord::is_lock)
    }

    /// True for words that behave as locks until now.
    pub(crate) fn passes(&self, location: Location) -> bool {
        self.known(location).is_some_and(LockWord::passes)
    }

    /// True for a swap that would have taken a word, and has found it held.
    pub(crate) fn fails(&self, location: Location, swap: Swap) -> bool {
        self.known(location).is_some_and(|word| word.fails(swap))
    }

    /// True for words that readers have given back.
    pub(crate) fn has_had_readers(&self, location: Location) -> bool {
        self.readers && self.known(location).is_some_and(LockWord::has_had_readers)
    }

    /// True for words that have been swapped or counted.
    pub(crate) fn is_word(&self, location: Location) -> bool {
        let (first, last) = self.extent.unwrap_or((location, location));
        (first..=last).contains(&location) && self.index.contains_key(&location)
    }

    fn known(&self, location: Location) -> Option<&LockWord> {
        let at = *self.index.get(&location)?;
        Some(&self.words[at as usize].means)
    }

    /// The number of a word that is new if need be, with the value that it has.
    fn enter(&mut self, by: &Writing, value: u64) -> u32 {
        if let Some(&at) = self.index.get(&by.location) {
            return at;
        }
        let at = self.words.len() as u32;
        self.index.insert(by.location, at);
        let (first, last) = self.extent.unwrap_or((by.location, by.location));
        self.extent = Some((first.min(by.location), last.max(by.location)));
        self.words.push(Word {
            means: LockWord::new(by.bytes, value),
            lent: false,
        });
        at
    }

    /// A swap by one thread.
    pub(crate) fn swap(&mut self, by: &Writing, swap: Swap) -> Step {
        if !swap.changes() && !self.is_word(by.location) {
            return Step::default();
        }
        let at = self.enter(by, swap.old);
        let meaning = self.words[at as usize].means.swap(by.thread, swap);
        self.act(by, at, meaning)
    }

    /// Another atomic by one thread.
    pub(crate) fn update(&mut self, by: &Writing, update: Update) -> Step {
        let changes = update.old != update.new;
        if !self.is_word(by.location) {
            if !changes || self.counted >= MOST_COUNTED {
                return Step::default();
            }
            self.counted += 1;
        }
        let at = self.enter(by, update.old);
        let word = &mut self.words[at as usize].means;
        let meaning = word.update(by.thread, update.old, update.new);
        self.act(by, at, meaning)
    }

    /// Another write to a word, with a value that is not known; by an atomic if `rmw`.
    pub(crate) fn write(&mut self, by: &Writing, rmw: bool) -> Step {
        let Some(&at) = self.index.get(&by.location) else {
            return Step::default();
        };
        let meaning = self.words[at as usize].means.write(by.thread, rmw);
        self.act(by, at, meaning)
    }

    /// What a word holds behind a write whose value was not known, and which is said to have `released` it.
    /// With another value than the one it was free with, it is no lock.
    pub(crate) fn holds_now(&mut self, location: Location, value: u64, released: bool) {
        if let Some(&at) = self.index.get(&location)
            && !self.words[at as usize].means.holds_now(value, released)
        {
            self.spoil(at);
        }
    }

    fn act(&mut self, by: &Writing, at: u32, meaning: Meaning) -> Step {
        let mut released = None;
        match meaning {
            Meaning::Nothing => return Step::default(),
            Meaning::NoLock => {
                self.spoil(at);
                return Step::default();
            }
            Meaning::Failed => {
                let key = (at, by.thread);
                match self.words[at as usize].means.counts(by.thread) {
                    true => drop(self.waiting.insert(key, *by)),
                    false => drop(self.waiting.remove(&key)),
                }
            }
            Meaning::Exclusive => self.take(by, at, false),
            Meaning::Shared => self.take(by, at, true),
            Meaning::SharedWith(owner) => {
                let holds = self.held.get_mut(&owner).into_iter().flatten();
                { holds }
                    .filter(|hold| hold.word == at)
                    .for_each(|hold| hold.held.shared = true);
                self.take(by, at, true);
            }
            Meaning::Released => {
                let shared = self.give_back(by, at);
                self.readers |= shared;
                released = Some(Released { lock: at, shared });
            }
        }
        let word = &mut self.words[at as usize];
        let of_lock = word.means.passes();
        word.lent |= of_lock && !word.means.is_lock();
        Step { of_lock, released }
    }

    fn take(&mut self, by: &Writing, word: u32, shared: bool) {
        let holds = self.held.entry(by.thread).or_default();
        holds.push(Hold {
            word,
            held: Held {
                lock: by.location,
                taken: by.site,
                scope: by.scope,
                shared,
                entry: by.acquires.then_some(by.scope),
                exit: None,
                released: None,
            },
            touched: HashMap::new(),
            steps: 0,
            released: [0; 4],
            learned: false,
            turns: Vec::new(),
        });
        if holds.len() > MOST_HELD {
            // Rather a counter, or what else has not been given back yet, than a lock.
            let words = || holds.iter().map(|hold| hold.word);
            let passes = |at: &u32| self.words[*at as usize].means.passes();
            let first = words().find(|at| !passes(at)).or_else(|| words().next());
            if let Some(first) = first {
                self.spoil(first);
            }
        }
    }

    /// A holder has given a word back. True if it was a reader.
    fn give_back(&mut self, by: &Writing, at: u32) -> bool {
        let Some(mut hold) = self.drop_hold(by.thread, at) else {
            return false;
        };
        let shared = hold.held.shared;
        hold.held.released = Some(by.site);
        if by.releases {
            hold.release(by.scope);
        }
        for (&(memory, site), touched) in &hold.touched {
            let used = self.used.entry((at, memory)).or_default();
            let touch = touched.touch;
            used.add(&touch, shared);
            let held = hold.held(touched);
            used.sections.add(Past { touch, held });
            self.past.insert((memory, by.thread, site, at), held);
        }
        self.turns.append(&mut hold.turns);
        if !shared {
            // Readers that have counted themselves in meanwhile hold it from here on. They have not seen it free
            // yet, so they have acquired nothing.
            for reader in self.words[at as usize].means.readers().to_vec() {
                if let Some(waiting) = self.waiting.remove(&(at, reader)) {
                    let by = Writing {
                        acquires: false,
                        ..waiting
                    };
                    self.take(&by, at, true);
                }
            }
        }
        shared
    }

    fn drop_hold(&mut self, thread: Thread, word: u32) -> Option<Hold> {
        let holds = self.held.get_mut(&thread)?;
        let at = holds.iter().position(|hold| hold.word == word)?;
        let hold = holds.remove(at);
        if holds.is_empty() {
            self.held.remove(&thread);
        }
        Some(hold)
    }

    /// A word is no lock.
    fn spoil(&mut self, at: u32) {
        let word = &mut self.words[at as usize];
        self.spoiled |= word.means.is_lock() || word.lent;
        for holder in word.means.spoil() {
            self.waiting.remove(&(at, holder));
            self.drop_hold(holder, at);
        }
    }

    /// A thread passes a barrier: others may go on under what it holds.
    pub(crate) fn share(&mut self, thread: Thread) {
        let holds = self.held.get(&thread).into_iter().flatten();
        let words: Vec<u32> = holds.map(|hold| hold.word).collect();
        words.into_iter().for_each(|at| self.spoil(at));
    }

    /// A thread ends. What it holds nobody can give back, and a word that it has counted itself into is no lock.
    pub(crate) fn exit(&mut self, thread: Thread) {
        let holds = self.held.remove(&thread).into_iter().flatten();
        let shared = holds.filter(|hold| hold.held.shared);
        let words: Vec<u32> = shared.map(|hold| hold.word).collect();
        words.into_iter().for_each(|at| self.spoil(at));
    }

    /// A thread executes a fence.
    pub(crate) fn fence(&mut self, thread: Thread, scope: Scope, kind: FenceKind) {
        for hold in self.held.get_mut(&thread).into_iter().flatten() {
            if kind.acquires() {
                hold.held.entry = hold.held.entry.max(Some(scope));
            }
            if kind.releases() {
                hold.release(scope);
            }
        }
    }

    /// A thread is about to access a word of memory that is none of ours. Keeps the earlier
    /// sections that it conflicts with as the first of its own, if nothing but the lock orders the
    /// two.
    pub(crate) fn turn(
        &mut self,
        touch: &Touch,
        shape: &Shape,
        mut unordered: impl FnMut(&Touch) -> bool,
    ) {
        let holds = self.held.get_mut(&touch.thread).into_iter().flatten();
        for hold in holds.filter(|hold| !hold.is_of(touch.memory)) {
            let used = self.used.get(&(hold.word, touch.memory));
            let Some(used) = used.filter(|_| !hold.learned) else {
                continue;
            };
            let sections = used.sections.against(touch, shape);
            for earlier in sections.filter(|past| !(past.held.shared && hold.held.shared)) {
                let same = |old: &Turn| {
                    let of = |turn: &Turn| (turn.later.site, turn.earlier.touch.site);
                    of(old) == (touch.site, earlier.touch.site)
                };
                if !unordered(&earlier.touch) {
                    continue;
                }
                let turn = Turn {
                    earlier: *earlier,
                    later: *touch,
                };
                match hold.turns.iter_mut().find(|old| same(old)) {
                    Some(old) if earlier.held.entry < old.earlier.held.entry => *old = turn,
                    Some(_) => {}
                    None => hold.turns.push(turn),
                }
            }
        }
    }

    /// Of critical sections that are over by now, those that might as well have come the other way
    /// around; once each.
    pub(crate) fn turns(&mut self) -> Vec<Turn> {
        core::mem::take(&mut self.turns)
    }

    /// A thread accesses a word of memory that is none of ours. Calls `learn` with each lock under
    /// which somebody else has made a conflicting access, and whether the thread is a reader.
    pub(crate) fn touch(&mut self, touch: &Touch, mut learn: impl FnMut(u32, bool)) {
        let mut full = None;
        let (me, memory) = (touch.thread, touch.memory);
        let holds = self.held.get_mut(&me).into_iter().flatten();
        for hold in holds.filter(|hold| !hold.is_of(memory)) {
            hold.steps += 1;
            let (step, entry) = (hold.steps, hold.held.entry);
            let new = Touched {
                touch: *touch,
                entry,
                step,
            };
            hold.touched
                .entry((memory, touch.site))
                .and_modify(|old| {
                    let bytes = old.touch.bytes | touch.bytes;
                    let touch = Touch { bytes, ..*touch };
                    *old = Touched {
                        touch,
                        step,
                        ..*old
                    };
                })
                .or_insert(new);
            let most = match self.words[hold.word as usize].means.is_lock() {
                true => MOST_TOUCHED,
                false => MOST_CLAIMED,
            };
            if hold.touched.len() > most {
                full = Some(hold.word);
            }
            if hold.learned {
                continue;
            }
            let used = self.used.get(&(hold.word, memory));
            let shared = hold.held.shared;
            if used.is_some_and(|used| used.by_others(touch, shared)) {
                hold.learned = true;
                learn(hold.word, shared);
            }
        }
        if let Some(word) = full {
            self.spoil(word);
        }
    }

    /// True when a thread holds something.
    pub(crate) fn holds(&self, thread: Thread) -> bool {
        self.held.contains_key(&thread)
    }

    /// What a thread holds.
    pub(crate) fn now(&self, thread: Thread) -> Vec<Held> {
        let holds = self.held.get(&thread).into_iter().flatten();
        holds.map(|hold| hold.held).collect()
    }

    /// How a thread held a lock when it made an access, if it has given it back since.
    pub(crate) fn past(&self, touch: &Touch, lock: Location) -> Option<&Held> {
        let at = *self.index.get(&lock)?;
        let key = (touch.memory, touch.thread, touch.site, at);
        { self.past.get(&key) }.filter(|_| !self.words[at as usize].means.is_other())
    }

    /// What a thread held when it accessed a word of memory at a site.
    pub(crate) fn then(&self, thread: Thread, memory: u64, site: u32) -> Vec<Held> {
        let key = |lock| (memory, thread, site, lock);
        let past = self.past.range(key(0)..=key(u32::MAX));
        let past = past.filter(|((.., lock), _)| !self.words[*lock as usize].means.is_other());
        let open = self.held.get(&thread).into_iter().flatten();
        let open = open.filter_map(|hold| Some(hold.held(hold.touched.get(&(memory, site))?)));
        let mut all: Vec<Held> = past.map(|(_, held)| *held).collect();
        for open in open {
            if all.iter().all(|held| held.lock != open.lock) {
                all.push(open);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests;
