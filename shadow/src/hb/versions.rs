//! What is read under a version, and written under it.
//!
//! A reader looks at a version, reads data, looks again, and uses what it has read only if the version is
//! the same (a sequence lock). A writer writes the version before and after the data. Such accesses may
//! meet in any order, and do no harm if all four fences are there, in a scope that has both threads:
//!
//! | | before the data | behind it |
//! |---|---|---|
//! | writer | first write of the version, release fence | release fence, second write |
//! | reader | first look, acquire fence | acquire fence, second look |
//!
//! Whoever reads what the writer has written then sees the first write at its second look; who has seen
//! the second write at its first look comes after the data. What of this is missing does not depend on
//! who came first.
//!
//! Another thread may change the version in the writer's place, as in deques and queues that use their places again.
//! Let the version change after the reader's first look. The writer sees that, or comes after a thread that has seen
//! it, and then executes a release fence and writes the data. A reader that reads this data, and executes a fence, finds
//! the changed version at its second look. Whether a writer has seen a change depends on the run. Every write of a
//! version counts as a change, also one of the same value.
//!
//! Which loads look at versions, the caller says. Any two strong writes of a word by one thread may be a
//! writer's; the last [`MOST`] words that it has written are remembered.

use alloc::vec::Vec;
use events::{Gap, Scope};

use hashbrown::{HashMap, HashSet};

use super::release::Fence;
use super::thread::{Shape, Thread};
use super::{Access, FenceKind, MemoryOrder, OpKind, Side, Time};

/// Versions that a thread may be reading or writing under at once.
const MOST: usize = 8;
/// Accesses under one version until the next look or write.
const MOST_TOUCHED: usize = 64;
/// Changes of a word that are remembered for each thread that has seen them.
const MOST_SEEN: usize = 8;

/// How an access looks at a version, if it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// It comes before what the version guards.
    pub opens: bool,
    /// It comes after.
    pub closes: bool,
    /// Whatever it finds, what the version guards is read.
    pub blind: bool,
    /// A swap that comes after writes what is read here, so that it cannot come earlier.
    pub carried: bool,
    /// It is a swap, and whether it has written anything is said later, or never.
    pub swap: Option<SwapValue>,
}

/// When a swap's values are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapValue {
    /// By [`Strong::swap`](super::Strong::swap).
    Later,
    /// Never.
    Never,
}

/// What versions say of two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nothing.
    None,
    /// The writer writes the reader's version, but not before and after the data.
    Apart,
    /// The reader throws away what it has read, or comes before or after the writer.
    Whole,
    /// It is not known whether the writer has written the version.
    Open,
    /// It would if a fence were there.
    Lacks(Gap),
}

/// What an access is inside of.
#[derive(Clone, Copy, Debug)]
struct Section {
    version: u64,
    reads: bool,
    /// Writes of the version before the section.
    changes: u64,
    /// The widest fence between the version and the access.
    entry: Option<Scope>,
    /// The widest fence between the access and the version.
    exit: Option<Scope>,
}

/// A section that is not over.
#[derive(Clone, Debug)]
struct Open {
    section: Section,
    /// What was accessed: scalar, site, and how.
    touched: Vec<((u64, u32), Section)>,
}

/// A word that may be a version.
#[derive(Clone, Debug, Default)]
struct Word {
    /// Its writes so far.
    changes: u64,
    /// For each thread, the times at which it has seen a change, each with the writes until then, ascending.
    seen: HashMap<Thread, Vec<(Time, u64)>>,
    writers: HashSet<Thread>,
}

/// What threads do under versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Versions {
    open: HashMap<Thread, Vec<Open>>,
    /// By scalar, thread and site: the sections around the last access that had any.
    past: HashMap<(u64, Thread, u32), Vec<Section>>,
    /// By scalar, thread and site: the release fences ahead of the last write.
    fences: HashMap<(u64, Thread, u32), Vec<Fence>>,
    words: HashMap<u64, Word>,
    /// Words of which it is not known when they were written.
    doubtful: HashSet<u64>,
}

impl Versions {
    /// True when a thread has looked at a version, and not again.
    pub(crate) fn is_reading(&self, me: Thread) -> bool {
        let open = self.open.get(&me).into_iter().flatten();
        { open }.any(|open| open.section.reads)
    }

    /// A thread executes a fence.
    pub(crate) fn fence(&mut self, me: Thread, scope: Scope, kind: FenceKind) {
        for Open { section, touched } in self.open.get_mut(&me).into_iter().flatten() {
            let orders = match section.reads {
                true => kind.acquires(),
                false => kind.releases(),
            };
            if !orders {
                continue;
            }
            section.entry = section.entry.max(Some(scope));
            for (_, of) in touched {
                of.exit = of.exit.max(Some(scope));
            }
        }
    }

    /// A thread is about to make a strong access to a scalar; `fences` are the release fences that it has executed last.
    pub(crate) fn begin(
        &mut self,
        me: Thread,
        access: &Access,
        key: u64,
        look: Look,
        fences: &[Fence],
    ) {
        self.touch(me, access, key, look.carried);
        if access.kind != OpKind::Load {
            self.fences.insert((key, me, access.site), fences.to_vec());
        }
    }

    /// A thread has made a strong access to a scalar, at this time of its own.
    pub(crate) fn access(&mut self, me: Thread, access: &Access, key: u64, look: Look, time: Time) {
        let (acquired, released) = match access.order {
            MemoryOrder::Acquire(scope) => (Some(scope), None),
            MemoryOrder::Release(scope) => (None, Some(scope)),
            MemoryOrder::AcqRel(scope) => (Some(scope), Some(scope)),
            _ => (None, None),
        };
        let writes = access.kind != OpKind::Load;
        self.see(me, key, time);
        self.look(me, key, look, acquired);
        match look.swap {
            None if writes => self.write(me, key, released, time),
            Some(SwapValue::Never) => {
                self.doubtful.insert(key);
            }
            None | Some(SwapValue::Later) => {}
        }
    }

    /// A thread looks at a word; `acquired` is the scope of an acquire.
    fn look(&mut self, me: Thread, key: u64, look: Look, acquired: Option<Scope>) {
        let closed = match look.closes {
            true => self.close(me, key, true, None),
            false => None,
        };
        if look.opens {
            // If the version is still the same, the fence behind the first look counts behind this one too.
            let changes = self.words.get(&key).map_or(0, |word| word.changes);
            let same = closed.filter(|section| section.changes == changes);
            let entry = same.and_then(|section| section.entry);
            self.enter(me, key, true, acquired.max(entry));
        }
    }

    /// A thread reads or writes a word, at this time of its own.
    fn see(&mut self, me: Thread, key: u64, time: Time) {
        let Some(word) = self.words.get_mut(&key) else {
            return;
        };
        let seen = word.seen.entry(me).or_default();
        if seen.last().is_some_and(|last| last.1 == word.changes) {
            return;
        }
        if seen.len() >= MOST_SEEN {
            seen.remove(0);
        }
        seen.push((time, word.changes));
    }

    /// A thread writes a word; `released` is the scope of a release.
    pub(crate) fn write(&mut self, me: Thread, key: u64, released: Option<Scope>, time: Time) {
        let word = self.words.entry(key).or_default();
        word.changes += 1;
        word.writers.insert(me);
        self.see(me, key, time);
        self.close(me, key, false, released);
        self.enter(me, key, false, None);
    }

    /// A thread reads a scalar, or writes it.
    fn touch(&mut self, me: Thread, access: &Access, key: u64, carried: bool) {
        let scalar = (key, access.site);
        let writes = access.kind != OpKind::Load;
        for Open { section, touched } in self.open.get_mut(&me).into_iter().flatten() {
            if section.reads == writes || section.version == key {
                continue;
            }
            touched.retain(|(of, _)| *of != scalar);
            if touched.len() < MOST_TOUCHED {
                let exit = carried.then_some(Scope::Sys);
                touched.push((scalar, Section { exit, ..*section }));
            }
        }
    }

    /// What versions say of a reader and a writer of a scalar, each with its site.
    pub(crate) fn guard(&self, shape: &Shape, key: u64, reader: Side, writer: Side) -> Guard {
        let wide = |scope: Option<Scope>| {
            scope.is_some_and(|scope| shape.includes(scope, reader.thread, writer.thread))
        };
        let around = |side: Side, reads: bool| {
            let all = self.past.get(&(key, side.thread, side.site));
            let all = all.into_iter().flatten();
            all.filter(move |section| section.reads == reads)
        };
        let mut guard = Guard::None;
        for read in around(reader, true) {
            if self.doubtful.contains(&read.version) {
                return Guard::Open;
            }
            let word = self.words.get(&read.version);
            let writes = word.is_some_and(|word| word.writers.contains(&writer.thread));
            if writes && guard == Guard::None {
                guard = Guard::Apart;
            }
            let mut written = around(writer, false);
            let Some(write) = written.find(|write| write.version == read.version) else {
                continue;
            };
            let fences = [
                (write.entry, Gap::FirstWrite),
                (write.exit, Gap::SecondWrite),
                (read.entry, Gap::FirstLook),
                (read.exit, Gap::SecondLook),
            ];
            match fences.iter().find(|(scope, _)| !wide(*scope)) {
                Some((_, gap)) => guard = Guard::Lacks(*gap),
                None => return Guard::Whole,
            }
        }
        guard
    }

    /// The versions under which a reader has read a scalar last, as far as they have changed after its first look and
    /// ahead of the writer's release fence.
    pub(crate) fn changed(&self, shape: &Shape, key: u64, reader: Side, writer: Side) -> Vec<u64> {
        let fences = self.fences.get(&(key, writer.thread, writer.site));
        let Some(fences) = fences.filter(|fences| !fences.is_empty()) else {
            return Vec::new();
        };
        let reaches = |fence: &&Fence| shape.includes(fence.scope, reader.thread, writer.thread);
        let knows = |by: Thread, time: Time| {
            let mut fences = fences.iter().filter(reaches);
            fences.any(|fence| fence.times.get(writer.thread, by) >= time)
        };
        let open = self.open.get(&reader.thread).into_iter().flatten();
        let open: Vec<_> = { open }
            .filter(|open| {
                let mut touched = open.touched.iter();
                touched.any(|(scalar, _)| *scalar == (key, reader.site))
            })
            .map(|open| open.section)
            .collect();
        let past = self.past.get(&(key, reader.thread, reader.site));
        let is_open = |of: &Section| open.iter().any(|open| open.version == of.version);
        let past = past.into_iter().flatten().filter(|of| !is_open(of));
        let sections = open.iter().chain(past);
        let reads = sections.filter(|section| section.reads);
        let changed = reads.filter(|section| {
            let Some(word) = self.words.get(&section.version) else {
                return false;
            };
            let knows_by = |by: Thread, seen: &[(Time, u64)]| {
                let mut later = seen.iter().filter(|(_, of)| *of > section.changes);
                later.next().is_some_and(|&(time, _)| knows(by, time))
            };
            // In most programs it is the writer itself that has seen the change.
            let own = word.seen.get(&writer.thread);
            own.is_some_and(|seen| knows_by(writer.thread, seen))
                || word.seen.iter().any(|(&by, seen)| knows_by(by, seen))
        });
        changed.map(|section| section.version).collect()
    }

    /// The widest fence between the last read of a scalar and the second look at a version. None if there was no second
    /// look, `Some(None)` if there was no fence.
    pub(crate) fn exit(&self, key: u64, reader: Side, version: u64) -> Option<Option<Scope>> {
        let past = self.past.get(&(key, reader.thread, reader.site))?;
        let mut past = past.iter();
        let section = past.find(|section| section.reads && section.version == version)?;
        Some(section.exit)
    }

    fn enter(&mut self, me: Thread, version: u64, reads: bool, entry: Option<Scope>) {
        let changes = self.words.get(&version).map_or(0, |word| word.changes);
        let all = self.open.entry(me).or_default();
        all.retain(|open| (open.section.version, open.section.reads) != (version, reads));
        let of_kind = |open: &Open| open.section.reads == reads;
        if all.iter().filter(|open| of_kind(open)).count() >= MOST
            && let Some(first) = all.iter().position(of_kind)
        {
            all.remove(first);
        }
        let section = Section {
            version,
            reads,
            changes,
            entry,
            exit: None,
        };
        all.push(Open {
            section,
            touched: Vec::new(),
        });
    }

    /// A thread comes to the end of a section. Gives the section, if there was one.
    fn close(
        &mut self,
        me: Thread,
        version: u64,
        reads: bool,
        exit: Option<Scope>,
    ) -> Option<Section> {
        let all = self.open.get_mut(&me)?;
        let of = |open: &Open| (open.section.version, open.section.reads) == (version, reads);
        let at = all.iter().position(of)?;
        let Open { section, touched } = all.swap_remove(at);
        for ((key, site), mut section) in touched {
            section.exit = section.exit.max(exit);
            let around = self.past.entry((key, me, site)).or_default();
            around.retain(|old| (old.version, old.reads) != (version, reads));
            if around.len() >= MOST {
                around.remove(0);
            }
            around.push(section);
        }
        Some(section)
    }
}
