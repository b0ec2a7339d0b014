//! Critical sections of one lock that another run has the other way around, and then in no order.
//!
//! Who enters without an acquire comes after nobody, and who leaves without a release comes before
//! nobody. When such a section happens to come first, or last, the run is ordered all the same, and
//! says nothing. So the first conflict of a section with an earlier one of its lock is looked at
//! the other way around, if nothing but the lock orders the two: the one that was second would have
//! to be left by a release, the one that was first entered by an acquire. Only the first one: what
//! a thread does then may depend on what it has read.

use alloc::vec::Vec;
use events::Scope;

use super::clock::Time;
use super::history::WORD;
use super::made::Made;
use super::observed::Observed;
use super::section::Held;
use super::thread::{Party, Shape, Thread};
use super::{Location, Race, Rule, Side};

/// Threads of which a word remembers a section, of each kind.
const MOST: usize = 2;

/// What a thread does to one word of memory by one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) thread: Thread,
    /// The number of the word.
    pub(crate) memory: u64,
    pub(crate) site: u32,
    pub(crate) writes: bool,
    /// Bytes of the word, one bit each.
    pub(crate) bytes: u8,
    /// Scope, of a strong operation.
    pub(crate) scope: Option<Scope>,
    /// The thread's own time, in both engines.
    pub(crate) times: [Time; 2],
}

impl Touch {
    /// True when two touches of a word are a data race if nothing orders them.
    fn conflicts(&self, other: &Self, shape: &Shape) -> bool {
        let strong = match (self.scope, other.scope) {
            (Some(one), Some(two)) => {
                let party = |thread, scope| Party { thread, scope };
                shape.mutual(party(self.thread, one), party(other.thread, two))
            }
            _ => false,
        };
        self.thread != other.thread
            && (self.writes || other.writes)
            && self.bytes & other.bytes != 0
            && !strong
    }
}

/// An access under a lock that has been given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    pub(crate) touch: Touch,
    pub(crate) held: Held,
}

impl Past {
    /// Its section has been entered in a scope that has all threads of the device.
    fn is_entered(&self) -> bool {
        self.held.entry.min(Some(self.held.scope)) >= Some(Scope::Gpu)
    }
}

/// Two accesses under one lock, in the order of this run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) earlier: Past,
    pub(crate) later: Touch,
}

impl Turn {
    /// The two as a race.
    pub(crate) fn race(&self) -> Race {
        let side = |touch: &Touch| Side {
            thread: touch.thread,
            site: touch.site,
        };
        let (earlier, later) = (&self.earlier.touch, &self.later);
        Race {
            later: side(later),
            earlier: side(earlier),
            location: Location::of(earlier.memory * WORD),
            rule: Rule::Unordered,
            by: earlier.thread.warp(),
            time: earlier.times[0],
            bytes: earlier.bytes & later.bytes,
            lanes: 1 << earlier.thread.lane,
            made: Made::default(),
            of_many: false,
            proxies: false,
            order: Observed::default(),
        }
    }

    /// True when both sections would be in order the other way around, too, by a lock that they
    /// held like that; `acquires` says that taking it needs no fence.
    pub(crate) fn turns(&self, shape: &Shape, acquires: bool, [before, now]: [&Held; 2]) -> bool {
        let (a, b) = (self.earlier.touch.thread, self.later.thread);
        let wide = |scope: Option<Scope>| scope.is_some_and(|scope| shape.includes(scope, a, b));
        wide(Some(before.scope)) && (acquires || wide(before.entry)) && wide(now.exit)
    }
}

/// What sections of one lock have done to one word: some that stand for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sections(Vec<Past>);

impl Sections {
    /// A section is over.
    pub(crate) fn add(&mut self, new: Past) {
        let kind = |past: &Past| (past.is_entered(), past.touch.writes, past.held.shared);
        let of = kind(&new);
        self.0
            .retain(|old| kind(old) != of || old.touch.thread != new.touch.thread);
        let same = |old: &Past| kind(old) == of;
        if self.0.iter().filter(|old| same(old)).count() >= MOST
            && let Some(first) = self.0.iter().position(same)
        {
            self.0.remove(first);
        }
        self.0.push(new);
    }

    /// Those that an access conflicts with.
    pub(crate) fn against<'a>(
        &'a self,
        touch: &'a Touch,
        shape: &'a Shape,
    ) -> impl Iterator<Item = &'a Past> {
        self.0
            .iter()
            .filter(|past| past.touch.conflicts(touch, shape))
    }
}
