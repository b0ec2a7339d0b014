//! What operations on one word mean, if the word is a lock: of one thread at a time, or of several readers
//! and one writer.
//!
//! The word's value says who holds it. It is the free value, plus what the owner has put in by a swap, plus
//! one and the same number for each reader that has counted itself in. A reader takes the lock when it adds
//! that number while there is no owner, by an atomic operation of any kind, and gives it back when it takes
//! the number away again. While there is an owner, a reader's addition is an attempt: the reader takes it
//! back, or holds the lock from the moment at which the owner gives it back.
//! Swaps by different threads on top of one another, by the same number each, are readers as well.
//! Any other change says that the word is no lock.

use alloc::vec::Vec;

use super::locks::Swap;
use super::thread::Thread;

/// Readers at once; a word with more is no lock.
const MOST_INSIDE: usize = 4096;

/// What an operation on a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing that has to do with a lock.
    Nothing,
    /// An attempt to take it has failed, or is given up.
    Failed,
    /// The thread has taken it alone.
    Exclusive,
    /// The thread has taken it as a reader.
    Shared,
    /// The thread has taken it as a reader, and so has the thread that was taken for its owner.
    SharedWith(Thread),
    /// The thread has given it back.
    Released,
    /// The word is no lock.
    NoLock,
}

/// A word that may be a lock.
#[derive(Clone, Debug)]
pub(crate) struct LockWord {
    /// The bits of a value.
    mask: u64,
    /// Its value when nobody holds it.
    free: u64,
    /// Who holds it alone, and what that has added to the value.
    owner: Option<(Thread, u64)>,
    /// What each reader adds.
    step: Option<u64>,
    /// Readers that have counted themselves in, and not out.
    inside: Vec<Thread>,
    /// How often an owner, and readers, have given it back.
    given: [u32; 2],
    /// What the first exchange that took it has written. One that writes something else would change
    /// the word while it is held: queues of waiting threads have such words, and locks do not.
    exchanged: Option<u64>,
    /// A swap has tried to take it.
    tried: bool,
    other: bool,
}

impl LockWord {
    /// A word of so many bytes with a value, of which nothing else is known.
    pub(crate) fn new(bytes: u32, free: u64) -> Self {
        Self {
            mask: u64::MAX >> (64 - 8 * bytes.clamp(1, 8)),
            free,
            owner: None,
            step: None,
            inside: Vec::new(),
            given: [0; 2],
            exchanged: None,
            tried: false,
            other: false,
        }
    }

    /// An owner has given it back, and it is no other word.
    pub(crate) fn is_lock(&self) -> bool {
        self.given[0] > 0 && !self.other
    }

    /// True when it is no lock, whatever happens.
    pub(crate) fn is_other(&self) -> bool {
        self.other
    }

    /// It behaves as a lock until now: it has been given back, by readers alone if a swap takes it, or tries to.
    pub(crate) fn passes(&self) -> bool {
        !self.other && (self.given[0] > 0 || self.given[1] > 0 && self.tried)
    }

    /// Readers have given it back.
    pub(crate) fn has_had_readers(&self) -> bool {
        !self.other && self.given[1] > 0
    }

    /// The word is no lock. Gives those who hold it.
    pub(crate) fn spoil(&mut self) -> Vec<Thread> {
        self.other = true;
        let mut holders = core::mem::take(&mut self.inside);
        holders.extend(self.owner.take().map(|owner| owner.0));
        holders
    }

    /// A reader has counted itself in, and not out.
    pub(crate) fn counts(&self, reader: Thread) -> bool {
        self.inside.contains(&reader)
    }

    /// Readers that have counted themselves in, and not out.
    pub(crate) fn readers(&self) -> &[Thread] {
        &self.inside
    }

    /// The value without an owner.
    fn counted(&self) -> u64 {
        let step = self.step.unwrap_or(0);
        let all = step.wrapping_mul(self.inside.len() as u64);
        self.free.wrapping_add(all) & self.mask
    }

    /// A swap would take it if it were free.
    fn takes(&self, swap: Swap) -> bool {
        swap.compare.is_none_or(|value| value == self.free) && swap.new != self.free
    }

    /// A swap would have taken it, and has found it held.
    pub(crate) fn fails(&self, swap: Swap) -> bool {
        let held = self.owner.is_some() || !self.inside.is_empty();
        !self.other && held && !swap.changes() && self.takes(swap)
    }

    /// A thread swaps.
    pub(crate) fn swap(&mut self, me: Thread, swap: Swap) -> Meaning {
        if self.other {
            return Meaning::Nothing;
        }
        let change = swap.after().wrapping_sub(swap.old) & self.mask;
        self.tried |= self.takes(swap);
        if !swap.changes() {
            return match () {
                () if self.owner.is_none() && swap.old != self.counted() => Meaning::NoLock,
                () if self.fails(swap) => Meaning::Failed,
                () => Meaning::Nothing,
            };
        }
        let exchange = swap.compare.is_none();
        match self.owner {
            Some((owner, _)) if owner == me => return self.leave(swap.after()),
            // Two swaps on top of one another: both count.
            Some((owner, added))
                if !exchange
                    && self.exchanged.is_none()
                    && added == change
                    && self.inside.is_empty()
                    && self.step.is_none_or(|step| step == change) =>
            {
                self.step = Some(change);
                self.owner = None;
                self.inside.extend([owner, me]);
                return Meaning::SharedWith(owner);
            }
            Some(_) => return Meaning::NoLock,
            None if swap.old != self.counted() => return Meaning::NoLock,
            None => {}
        }
        if self.inside.contains(&me) {
            return self.count_out(me, change);
        }
        if !exchange && self.step == Some(change) {
            return self.count_in(me);
        }
        if !self.inside.is_empty() || exchange && self.exchanged.is_some_and(|of| of != swap.new) {
            return Meaning::NoLock;
        }
        if exchange {
            self.exchanged = Some(swap.new);
        }
        self.owner = Some((me, change));
        Meaning::Exclusive
    }

    /// A thread changes the word by another atomic, from one value to another.
    pub(crate) fn update(&mut self, me: Thread, old: u64, new: u64) -> Meaning {
        let change = new.wrapping_sub(old) & self.mask;
        if self.other || change == 0 {
            return Meaning::Nothing;
        }
        match self.owner {
            Some((owner, _)) if owner == me => return self.leave(new),
            None if old != self.counted() => return Meaning::NoLock,
            _ => {}
        }
        if self.inside.contains(&me) {
            return self.count_out(me, change);
        }
        match *self.step.get_or_insert(change) == change {
            true => self.count_in(me),
            false => Meaning::NoLock,
        }
    }

    /// A thread writes the word, with a value that is not known.
    pub(crate) fn write(&mut self, me: Thread, rmw: bool) -> Meaning {
        match self.owner {
            _ if self.other => Meaning::Nothing,
            Some((owner, _)) if owner == me => {
                let value = self.counted();
                self.leave(value)
            }
            None if self.inside.is_empty() && !rmw => Meaning::Nothing,
            _ => Meaning::NoLock,
        }
    }

    /// What the word holds behind a write with an unknown value, which is said to have `released` it. False
    /// if it is no lock then.
    pub(crate) fn holds_now(&mut self, value: u64, released: bool) -> bool {
        let right = self.other || self.owner.is_some() || value == self.counted();
        if !right {
            self.given[0] = self.given[0].saturating_sub(released.into());
        }
        right
    }

    /// The owner writes a value.
    fn leave(&mut self, value: u64) -> Meaning {
        if value != self.counted() {
            return Meaning::NoLock;
        }
        self.owner = None;
        self.given[0] += 1;
        Meaning::Released
    }

    fn count_in(&mut self, me: Thread) -> Meaning {
        if self.inside.len() >= MOST_INSIDE {
            return Meaning::NoLock;
        }
        self.inside.push(me);
        match self.owner {
            Some(_) => Meaning::Failed,
            None => Meaning::Shared,
        }
    }

    fn count_out(&mut self, me: Thread, change: u64) -> Meaning {
        if Some(change.wrapping_neg() & self.mask) != self.step {
            return Meaning::NoLock;
        }
        self.inside.retain(|of| *of != me);
        if self.owner.is_some() {
            return Meaning::Failed;
        }
        self.given[1] += 1;
        Meaning::Released
    }
}
