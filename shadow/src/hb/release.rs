//! Releases, and who has observed them.
//!
//! PTX ISA, "Release and Acquire Patterns": a release pattern is a release operation, or a release
//! fence and a strong write after it; an acquire pattern is an acquire operation, or a strong read
//! and an acquire fence after it. The first synchronises with the second when the read observes the
//! write, through read-modify-writes too, and the first operation of the one and the last of the
//! other include each other's threads in their scopes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::clock::{Sparse, Times};
use super::fenced::{Carried, Fenced};
use super::log::{Log, LogId, Mark, Release};
use super::thread::{Epoch, Id, Party, Shape, Thread};

/// A release fence and what it published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) scope: Scope,
    /// What its thread had acquired last.
    pub(crate) acquired: Option<(LogId, u32)>,
    pub(crate) times: Times,
}

/// A log that a strong read has observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) address: u64,
    pub(crate) mark: Arc<Mark>,
    /// The widest acquire that has made use of it and left some of it over.
    pub(crate) tried: Option<Scope>,
}

/// The last strong write to a location.
#[derive(Clone, Debug)]
struct LastWrite {
    address: u64,
    bytes: u32,
    /// None when something else was written there since.
    writer: Option<Party>,
    log: Log,
    /// Last release operation of each thread on the location whose write is no longer observed.
    dormant: HashMap<Thread, Release>,
}

/// Bytes that no aligned scalar access crosses.
pub(crate) const LINE: u64 = 16;

/// All locations that something may be observed at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Releases {
    lines: HashMap<u64, Vec<LastWrite>>,
    carried: Carried,
    /// Logs of overwritten locations that somebody has observed, and not made use of yet.
    orphans: HashMap<LogId, Log>,
    /// Orphans at which to look for those that are not needed any more.
    crowd: usize,
    least: usize,
    logs: LogId,
}

/// A strong write of one thread to one location.
pub(crate) struct Write<'a> {
    pub(crate) thread: Thread,
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) scope: Scope,
    /// It is a release operation itself, at these times.
    pub(crate) operation: Option<&'a Times>,
    /// The release fences before it.
    pub(crate) fences: &'a [Fence],
    pub(crate) fenced: &'a Fenced,
    /// What its thread has acquired last.
    pub(crate) acquired: Option<(LogId, u32)>,
}

impl Releases {
    /// `crowd`: see [`Engine::with_crowd`](super::Engine::with_crowd).
    pub(crate) fn new(crowd: u32) -> Self {
        Self {
            least: crowd as usize,
            ..Self::default()
        }
    }

    /// True when there is nothing to observe.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.carried.is_empty()
    }

    /// Releases kept.
    pub(crate) fn len(&self) -> usize {
        let locations = self.lines.values().flatten();
        let there: usize = locations.map(|of| of.log.len() + of.dormant.len()).sum();
        there + self.orphans.values().map(Log::len).sum::<usize>()
    }

    /// What a strong read observes.
    pub(crate) fn observe(
        &mut self,
        shape: &Shape,
        reader: Party,
        address: u64,
        bytes: u32,
    ) -> Option<Pending> {
        let line = self.lines.get_mut(&(address / LINE))?;
        let mut locations = line.iter_mut();
        let location = locations.find(|of| of.address == address && of.bytes == bytes)?;
        let writer = location.writer?;
        let strong = writer.thread == reader.thread || shape.mutual(writer, reader);
        let mark = location.log.mark().filter(|_| strong)?;
        Some(Pending {
            address,
            mark,
            tried: None,
        })
    }

    /// The clocks of `fence.sc`s that a strong read observes; see [`super::fenced`].
    pub(crate) fn carried(&self, shape: &Shape, reader: Party, address: u64, bytes: u32) -> Sparse {
        let carried = self.carried.at(shape, reader, address, bytes);
        carried.cloned().unwrap_or_default()
    }

    /// A weak write: nothing can be observed any more in what it overlaps.
    pub(crate) fn weak_write(&mut self, address: u64, bytes: u32) {
        self.carried.overwrite(address, bytes);
        self.end_locations(address, bytes);
    }

    /// Releases at locations that overlap some bytes can no longer be observed.
    fn end_locations(&mut self, address: u64, bytes: u32) {
        let end = address + u64::from(bytes);
        for line in address / LINE..=(end - 1) / LINE {
            let Some(locations) = self.lines.get_mut(&line) else {
                continue;
            };
            let mut old = Vec::new();
            for location in locations.iter_mut() {
                if location.address < end && location.address + u64::from(location.bytes) > address
                {
                    old.extend(location.put_to_sleep(&mut self.logs, self.least));
                    location.writer = None;
                }
            }
            locations.retain(|location| location.writer.is_some() || !location.dormant.is_empty());
            if locations.is_empty() {
                self.lines.remove(&line);
            }
            old.into_iter().for_each(|log| self.keep(log));
        }
    }

    /// A strong write, or with `rmw` a read-modify-write.
    pub(crate) fn strong_write(&mut self, shape: &Shape, write: &Write<'_>, rmw: bool) {
        let writer = Party {
            thread: write.thread,
            scope: write.scope,
        };
        self.carried.write(shape, write, rmw);
        let releases = write.operation.is_some() || !write.fences.is_empty();
        if rmw && !releases && self.pass_on(shape, writer, write) {
            return;
        }
        let before = self.take(write.address, write.bytes);
        if before.is_none() && !releases {
            return;
        }
        // Does it continue what was there?
        let continues = rmw
            && before
                .as_ref()
                .and_then(|location| location.writer)
                .is_some_and(|old| old.thread == write.thread || shape.mutual(old, writer));
        let mut location = before.unwrap_or_else(|| LastWrite {
            address: write.address,
            bytes: write.bytes,
            writer: None,
            log: Log::new(&mut self.logs, self.least),
            dormant: HashMap::new(),
        });
        if !continues && let Some(old) = location.put_to_sleep(&mut self.logs, self.least) {
            self.keep(old);
        }
        location.writer = Some(writer);
        location.append(write);
        let line = self.lines.entry(write.address / LINE).or_default();
        line.push(location);
    }

    /// Handles a read-modify-write that continues the releases at its location and adds none, in place. False if that is
    /// not the case, or if another location overlaps it.
    fn pass_on(&mut self, shape: &Shape, writer: Party, write: &Write<'_>) -> bool {
        let line = self.lines.get_mut(&(write.address / LINE));
        let Some([location]) = line.map(Vec::as_mut_slice) else {
            return false;
        };
        let exact = (location.address, location.bytes) == (write.address, write.bytes);
        let continues = |old: Party| old.thread == write.thread || shape.mutual(old, writer);
        if !exact || !location.writer.is_some_and(continues) {
            return false;
        }
        location.writer = Some(writer);
        location.append(write);
        true
    }

    /// Takes out the location; what overlaps it otherwise is lost.
    fn take(&mut self, address: u64, bytes: u32) -> Option<LastWrite> {
        let locations = self.lines.get_mut(&(address / LINE))?;
        let exact = |location: &LastWrite| location.address == address && location.bytes == bytes;
        let found = locations.iter().position(exact);
        let location = found.map(|at| locations.swap_remove(at));
        if !locations.is_empty() {
            self.end_locations(address, bytes);
        }
        location
    }

    /// Keeps a log that cannot be observed any more, for those who have.
    fn keep(&mut self, mut log: Log) {
        if !log.is_observed() {
            return;
        }
        self.orphans.insert(log.id, log);
        if self.orphans.len() > self.crowd.max(self.least) {
            self.orphans.retain(|_, log| log.is_observed());
            self.crowd = 2 * self.orphans.len();
        }
    }

    fn log(&mut self, seen: &Pending) -> Option<&mut Log> {
        let line = self.lines.get_mut(&(seen.address / LINE));
        let mut locations = line.into_iter().flatten();
        match locations.find(|location| location.log.id == seen.mark.log) {
            Some(location) => Some(&mut location.log),
            None => self.orphans.get_mut(&seen.mark.log),
        }
    }

    /// The release among those observed that would have ordered `earlier`, at a time, before the
    /// observer.
    pub(crate) fn would_order(&self, seen: &Pending, earlier: Epoch) -> Option<Party> {
        let locations = self.lines.get(&(seen.address / LINE)).into_iter().flatten();
        let mut logs = locations.map(|location| &location.log);
        let log = logs.find(|log| log.id == seen.mark.log);
        let log = log.or_else(|| self.orphans.get(&seen.mark.log))?;
        log.would_order(seen.mark.count, earlier)
    }

    /// True when all lanes of a warp learn the same by an acquire of some scope.
    pub(crate) fn alike(&mut self, warp: Id, scope: Scope, seen: &Pending) -> bool {
        let log = self.log(seen);
        log.is_none_or(|log| scope >= Scope::Gpu && log.is_wide(warp, seen.mark.count))
    }

    /// Lets a thread learn from the releases it has observed by an acquire of some scope. True when
    /// nothing is left that a wider acquire could learn.
    pub(crate) fn acquire(
        &mut self,
        shape: &Shape,
        acquirer: Party,
        seen: &Pending,
        times: &mut Times,
    ) -> bool {
        let log = self.log(seen);
        log.is_none_or(|log| log.acquire(shape, acquirer, seen.mark.count, times))
    }
}

impl LastWrite {
    /// The location's value is overwritten: its releases can no longer be observed, but those who
    /// have observed them need the log, which is returned.
    fn put_to_sleep(&mut self, logs: &mut LogId, crowd: usize) -> Option<Log> {
        if self.log.is_empty() {
            return None;
        }
        let old = core::mem::replace(&mut self.log, Log::new(logs, crowd));
        for release in old.operations() {
            self.dormant
                .insert(release.warp.lane_of(release.lanes), release.clone());
        }
        Some(old)
    }

    fn append(&mut self, write: &Write<'_>) {
        // A thread writes again where it has released before.
        if let Some(mut release) = self.dormant.remove(&write.thread)
            && !(write.operation.is_some() && write.scope >= release.scope)
        {
            release.covers = 0;
            self.log.push(release);
        }
        let id = self.log.id;
        let covers = |acquired| match acquired {
            Some((of, count)) if of == id => count,
            _ => 0,
        };
        let release = |scope, times: &Times, operation, acquired| Release {
            warp: Id::of(write.thread.warp()),
            lanes: 1 << write.thread.lane,
            scope,
            times: times.clone(),
            operation,
            covers: covers(acquired),
            first: 0,
        };
        for fence in write.fences {
            if self.log.is_new(write.thread, fence.times.own) {
                let release = release(fence.scope, &fence.times, false, fence.acquired);
                self.log.push(release);
            }
        }
        if let Some(times) = write.operation {
            let release = release(write.scope, times, true, write.acquired);
            self.log.push(release);
        }
        let dropped = self.log.compact();
        dropped.into_iter().for_each(|of| self.sleep(of));
    }

    /// Remembers a release operation until its thread writes again.
    fn sleep(&mut self, release: Release) {
        let thread = release.warp.lane_of(release.lanes);
        match self.dormant.get(&thread) {
            Some(last) if last.times.own >= release.times.own => {}
            _ => {
                self.dormant.insert(thread, release);
            }
        }
    }
}
