//! Critical sections: how a lock is held, what is accessed under it, and who has done so before.

use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::Location;
use super::history::WORD;
use super::thread::Thread;
use super::turns::{Sections, Touch, Turn};

/// A lock that a thread held when it accessed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The word.
    pub lock: Location,
    /// Site that took it, and in which scope.
    pub taken: u32,
    /// Scope of what took it.
    pub scope: Scope,
    /// By a reader: others may have held it at the same time, in the same way.
    pub shared: bool,
    /// The widest acquire between taking it and the access, or the release.
    pub entry: Option<Scope>,
    /// The widest release between the last access and the one that gave it back.
    pub exit: Option<Scope>,
    /// Site that gave it back, if that has happened.
    pub released: Option<u32>,
}

/// A critical section that is not over.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) word: u32,
    pub(crate) held: Held,
    /// What was accessed under it, by word of memory and site.
    pub(crate) touched: HashMap<(u64, u32), Touched>,
    /// Accesses so far.
    pub(crate) steps: u32,
    /// By scope, the accesses that a release of that scope or a wider one comes after.
    pub(crate) released: [u32; 4],
    /// The thread has learned all earlier releases of the lock.
    pub(crate) learned: bool,
    /// Its first conflict with earlier sections that nothing but the lock orders before it.
    pub(crate) turns: Vec<Turn>,
}

/// What was accessed under a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    /// The last time; the bytes of all.
    pub(crate) touch: Touch,
    /// The widest acquire before the first time.
    pub(crate) entry: Option<Scope>,
    /// The number of the last time in the section.
    pub(crate) step: u32,
}

const SCOPES: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];

impl Hold {
    /// A word of memory is the lock itself, which a reader may look at while it waits.
    pub(crate) fn is_of(&self, memory: u64) -> bool {
        self.held.shared && self.held.lock.key() / WORD == memory
    }

    /// A release comes behind what was accessed until now.
    pub(crate) fn release(&mut self, scope: Scope) {
        let wide = SCOPES.iter().zip(&mut self.released);
        for (_, released) in wide.filter(|(of, _)| **of <= scope) {
            *released = self.steps;
        }
    }

    /// How the lock was held at an access.
    pub(crate) fn held(&self, touched: &Touched) -> Held {
        let mut behind = SCOPES.iter().zip(self.released).rev();
        let exit = behind.find(|&(_, released)| released >= touched.step);
        Held {
            entry: touched.entry,
            exit: exit.map(|(scope, _)| *scope),
            ..self.held
        }
    }
}

/// Who has read, or written, under a lock: nobody, one thread, or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Users {
    #[default]
    None,
    One(Thread),
    Several,
}

impl Users {
    pub(crate) fn add(&mut self, thread: Thread) {
        *self = match *self {
            Self::None => Self::One(thread),
            Self::One(before) if before == thread => return,
            _ => Self::Several,
        };
    }

    pub(crate) fn besides(self, me: Thread) -> bool {
        match self {
            Self::None => false,
            Self::One(thread) => thread != me,
            Self::Several => true,
        }
    }
}

/// Who has accessed a word of memory under a lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Used {
    /// Readers and writers of the word, in any way and with the lock held alone.
    all: [Users; 2],
    alone: [Users; 2],
    pub(crate) sections: Sections,
}

impl Used {
    pub(crate) fn add(&mut self, touch: &Touch, shared: bool) {
        let kind = usize::from(touch.writes);
        self.all[kind].add(touch.thread);
        if !shared {
            self.alone[kind].add(touch.thread);
        }
    }

    /// True when another thread has made a conflicting access in a section that excludes this one.
    pub(crate) fn by_others(&self, touch: &Touch, shared: bool) -> bool {
        let [readers, writers] = match shared {
            true => self.alone,
            false => self.all,
        };
        writers.besides(touch.thread) || touch.writes && readers.besides(touch.thread)
    }
}

impl Held {
    /// One lock, held by two threads so that they exclude each other.
    pub fn excludes(&self, other: &Self) -> bool {
        self.lock == other.lock && !(self.shared && other.shared)
    }
}
