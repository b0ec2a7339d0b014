//! Which words are locks, who holds them, and what was accessed under them.
//!
//! After the lock inference of ScoRD (Kamath et al., ISCA 2020): who swaps a value in has taken a
//! lock, and writes there again to release it. Departures:
//! 1. Values decide. A swap takes the lock when it changes the value that was there first, the free
//!    one; the word is a lock once the thread that took it has written there again before anybody
//!    else changed it, and stays one while every swap finds it free or held in that way.
//! 2. Fences are remembered, and not required: what is missing is for a report to say.
//! 3. A word that another atomic changes while it is free, as tickets and counters are, is none.
//! 4. A thread that passes a barrier while it holds a word lets others in: the word is none.
//! 5. Exchanges that take a word for different values would change it while it is held, if they failed:
//!    it is the end of a queue, and no lock.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::Place;
use super::place::{Shape, Thread};
use super::section::{Held, Hold, Touched, Used};
use super::turns::{Past, Touch, Turn};

/// Words that a thread holds at once; the first of more are no locks.
const MOST_HELD: usize = 8;
/// Words and sites that a thread accesses while it holds a lock; a word with more is none.
const MOST_TOUCHED: usize = 4096;
/// The same for words that nobody has given back yet: claims that are never given back are common.
const MOST_CLAIMED: usize = 256;

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
    /// It is an exchange, for something else than an earlier one.
    fn is_other_exchange(self, earlier: Option<u64>) -> bool {
        self.compare.is_none() && earlier.is_some_and(|value| value != self.new)
    }

    /// It has written something else than was there.
    pub fn changes(self) -> bool {
        self.after() != self.old
    }

    fn after(self) -> u64 {
        match self.compare {
            Some(value) if value != self.old => self.old,
            _ => self.new,
        }
    }
}

/// What became of a write to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing that has to do with a known lock.
    None,
    /// A known lock was taken, or the attempt failed.
    Tried,
    /// A lock was released; its number.
    Released(u32),
}

/// How a word is written: where, in which scopes it orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    pub(crate) thread: Thread,
    pub(crate) place: Place,
    pub(crate) site: u32,
    pub(crate) scope: Scope,
    pub(crate) acquires: bool,
    pub(crate) releases: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Held(Thread),
    /// Not a lock.
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Word {
    /// Its value when nobody holds it.
    free: u64,
    state: State,
    /// How often it has been given back.
    given: u32,
    /// What the first exchange that took it has written. One that writes something else would change
    /// the word while it is held: queues of waiting threads have such words, and locks do not.
    exchanged: Option<u64>,
}

impl Word {
    fn is_lock(&self) -> bool {
        self.given > 0
    }
}

/// The locks of a launch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    index: HashMap<Place, u32>,
    /// The first and the last of them.
    extent: Option<(Place, Place)>,
    words: Vec<Word>,
    held: HashMap<Thread, Vec<Hold>>,
    /// Accesses under locks that have been released since: word of memory, thread, site, lock.
    past: BTreeMap<(u64, Thread, u32, u32), Held>,
    /// Who has accessed a word of memory under a lock.
    used: HashMap<(u32, u64), Used>,
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

    /// True when something that was taken for a lock was none.
    pub(crate) fn is_spoiled(&self) -> bool {
        self.spoiled
    }

    /// True for words that have been taken and released, and nothing else.
    pub(crate) fn is_lock(&self, place: Place) -> bool {
        let word = self.index.get(&place).map(|&at| self.words[at as usize]);
        word.is_some_and(|word| word.is_lock() && word.state != State::Other)
    }

    /// True for words that have been swapped.
    pub(crate) fn is_word(&self, place: Place) -> bool {
        let (first, last) = self.extent.unwrap_or((place, place));
        (first..=last).contains(&place) && self.index.contains_key(&place)
    }

    /// A swap by one thread.
    pub(crate) fn swap(&mut self, by: &Writing, swap: Swap) -> Step {
        let (me, changes) = (by.thread, swap.changes());
        let Some(&at) = self.index.get(&by.place) else {
            if changes {
                let at = self.words.len() as u32;
                self.index.insert(by.place, at);
                let (first, last) = self.extent.unwrap_or((by.place, by.place));
                self.extent = Some((first.min(by.place), last.max(by.place)));
                self.words.push(Word {
                    free: swap.old,
                    state: State::Held(me),
                    given: 0,
                    exchanged: swap.compare.is_none().then_some(swap.new),
                });
                self.take(by, at);
            }
            return Step::None;
        };
        let word = self.words[at as usize];
        let tries = swap.compare.is_none_or(|value| value == word.free) && swap.new != word.free;
        match word.state {
            State::Free if swap.old != word.free => self.spoil(at),
            State::Free if changes && swap.is_other_exchange(word.exchanged) => self.spoil(at),
            State::Free if changes => {
                let word = &mut self.words[at as usize];
                word.state = State::Held(me);
                if swap.compare.is_none() {
                    word.exchanged = Some(swap.new);
                }
                self.take(by, at);
                return Step::Tried;
            }
            State::Held(owner) if owner == me && changes => {
                if swap.after() == word.free {
                    return self.give_back(by, at);
                }
                self.spoil(at);
            }
            State::Held(_) if changes => self.spoil(at),
            State::Held(_) if tries && word.is_lock() => return Step::Tried,
            State::Free | State::Held(_) | State::Other => {}
        }
        Step::None
    }

    /// Another write to a word, an atomic if `rmw`.
    pub(crate) fn write(&mut self, by: &Writing, rmw: bool) -> Step {
        let Some(&at) = self.index.get(&by.place) else {
            return Step::None;
        };
        match self.words[at as usize].state {
            State::Held(owner) if owner == by.thread => return self.give_back(by, at),
            State::Held(_) => self.spoil(at),
            State::Free if rmw => self.spoil(at),
            State::Free | State::Other => {}
        }
        Step::None
    }

    /// What a word holds behind a write that was no swap, and is said to have `released` it. With
    /// another value than the one it was free with, it is no lock.
    pub(crate) fn holds_now(&mut self, place: Place, value: u64, released: bool) {
        let Some(&at) = self.index.get(&place) else {
            return;
        };
        let word = &mut self.words[at as usize];
        if word.state == State::Free && value != word.free {
            word.given = word.given.saturating_sub(released.into());
            self.spoil(at);
        }
    }

    fn take(&mut self, by: &Writing, word: u32) {
        let holds = self.held.entry(by.thread).or_default();
        holds.push(Hold {
            word,
            held: Held {
                lock: by.place,
                taken: by.site,
                scope: by.scope,
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
            let first = holds[0].word;
            self.spoil(first);
        }
    }

    /// The holder has written to a word.
    fn give_back(&mut self, by: &Writing, at: u32) -> Step {
        let word = &mut self.words[at as usize];
        word.state = State::Free;
        word.given += 1;
        if let Some(mut hold) = self.drop_hold(by.thread, at) {
            hold.held.released = Some(by.site);
            if by.releases {
                hold.release(by.scope);
            }
            for (&(memory, site), touched) in &hold.touched {
                let used = self.used.entry((at, memory)).or_default();
                let touch = touched.touch;
                match touch.writes {
                    true => used.writers.add(by.thread),
                    false => used.readers.add(by.thread),
                }
                let held = hold.held(touched);
                used.sections.add(Past { touch, held });
                self.past.insert((memory, by.thread, site, at), held);
            }
            self.turns.append(&mut hold.turns);
        }
        Step::Released(at)
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
        self.spoiled |= word.is_lock();
        let before = core::mem::replace(&mut word.state, State::Other);
        if let State::Held(owner) = before {
            self.drop_hold(owner, at);
        }
    }

    /// A thread passes a barrier: others may go on under what it holds.
    pub(crate) fn share(&mut self, thread: Thread) {
        let holds = self.held.get(&thread).into_iter().flatten();
        let words: Vec<u32> = holds.map(|hold| hold.word).collect();
        words.into_iter().for_each(|at| self.spoil(at));
    }

    /// A thread ends. What it holds nobody can give back.
    pub(crate) fn exit(&mut self, thread: Thread) {
        self.held.remove(&thread);
    }

    /// A thread executes a fence.
    pub(crate) fn fence(
        &mut self,
        thread: Thread,
        scope: Scope,
        (acquires, releases): (bool, bool),
    ) {
        for hold in self.held.get_mut(&thread).into_iter().flatten() {
            if acquires {
                hold.held.entry = hold.held.entry.max(Some(scope));
            }
            if releases {
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
        for hold in self.held.get_mut(&touch.thread).into_iter().flatten() {
            let used = self.used.get(&(hold.word, touch.memory));
            let Some(used) = used.filter(|_| !hold.learned) else {
                continue;
            };
            for earlier in used.sections.against(touch, shape) {
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
    /// which somebody else has made a conflicting access.
    pub(crate) fn touch(&mut self, touch: &Touch, mut learn: impl FnMut(u32)) {
        let mut full = None;
        let (me, memory) = (touch.thread, touch.memory);
        for hold in self.held.get_mut(&me).into_iter().flatten() {
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
            let most = match self.words[hold.word as usize].is_lock() {
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
            let by_others = used.is_some_and(|used| {
                used.writers.besides(me) || touch.writes && used.readers.besides(me)
            });
            if by_others {
                hold.learned = true;
                learn(hold.word);
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

    /// What a thread held when it accessed a word of memory at a site.
    pub(crate) fn then(&self, thread: Thread, memory: u64, site: u32) -> Vec<Held> {
        let key = |lock| (memory, thread, site, lock);
        let past = self.past.range(key(0)..=key(u32::MAX));
        let past = past.filter(|((.., lock), _)| self.words[*lock as usize].state != State::Other);
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
