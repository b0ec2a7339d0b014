//! Releases, and who has observed them.
//!
//! PTX ISA, "Release and Acquire Patterns": a release pattern is a release operation, or a release
//! fence and a strong write after it; an acquire pattern is an acquire operation, or a strong read
//! and an acquire fence after it. The first synchronises with the second when the read observes the
//! write, through read-modify-writes too, and the first operation of the one and the last of the
//! other include each other's threads in their scopes.

use alloc::vec::Vec;

use hashbrown::{HashMap, HashSet};

use super::clock::{Time, Times};
use super::place::{Scope, Shape, Thread};

/// Which log of releases.
pub(crate) type LogId = u32;

/// A release pattern, as its observers need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) thread: Thread,
    /// Scope of the pattern's first operation.
    pub(crate) scope: Scope,
    /// What the thread had done before that.
    pub(crate) times: Times,
    /// A release operation on the location itself: a later strong write of the same thread is part
    /// of such a pattern again.
    operation: bool,
    /// Releases before this one in its log that its thread had acquired, counted from the first:
    /// whoever acquires this one need not look at them.
    covers: u32,
}

/// A release fence and what it published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) scope: Scope,
    pub(crate) times: Times,
    /// What its thread had acquired last.
    pub(crate) acquired: Option<(LogId, u32)>,
}

/// The releases that are to be observed at a location: a strong write starts a log, every
/// read-modify-write that observes it adds to it.
#[derive(Clone, Debug, Default)]
struct Log {
    releases: Vec<Release>,
    /// The fences among them, which one thread may put to use many times: thread and own time.
    fences: HashSet<(Thread, Time)>,
}

/// A log that a strong read has observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) address: u64,
    pub(crate) log: LogId,
    /// How much of it.
    pub(crate) count: u32,
    /// The widest acquire that has made use of it and left some of it over.
    pub(crate) tried: Option<Scope>,
}

/// The last strong write to a location.
#[derive(Clone, Debug)]
struct Location {
    address: u64,
    bytes: u32,
    /// None when something else was written there since.
    writer: Option<(Thread, Scope)>,
    log: LogId,
    /// Last release operation of each thread on the location whose write is no longer observed.
    dormant: Vec<Release>,
}

/// Bytes that no aligned scalar access crosses.
const LINE: u64 = 16;

/// All locations that something may be observed at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Releases {
    lines: HashMap<u64, Vec<Location>>,
    logs: Vec<Log>,
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
    /// What its thread has acquired last.
    pub(crate) acquired: Option<(LogId, u32)>,
}

impl Releases {
    /// True when no release can be observed anywhere.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Releases kept.
    pub(crate) fn len(&self) -> usize {
        self.logs.iter().map(|log| log.releases.len()).sum()
    }

    fn find(&self, address: u64, bytes: u32) -> Option<&Location> {
        let line = self.lines.get(&(address / LINE))?;
        line.iter()
            .find(|location| location.address == address && location.bytes == bytes)
    }

    /// What a strong read observes.
    pub(crate) fn observe(
        &self,
        shape: &Shape,
        reader: (Thread, Scope),
        address: u64,
        bytes: u32,
    ) -> Option<Pending> {
        let location = self.find(address, bytes)?;
        let writer = location.writer?;
        let strong = writer.0 == reader.0 || shape.mutual(writer, reader);
        let count = self.logs[location.log as usize].releases.len() as u32;
        (strong && count > 0).then_some(Pending {
            address,
            log: location.log,
            count,
            tried: None,
        })
    }

    /// A weak write: nothing can be observed any more in what it overlaps.
    pub(crate) fn weak_write(&mut self, address: u64, bytes: u32) {
        let end = address + u64::from(bytes);
        for line in address / LINE..=(end - 1) / LINE {
            let Some(mut locations) = self.lines.remove(&line) else {
                continue;
            };
            for location in &mut locations {
                if location.address < end && location.address + u64::from(location.bytes) > address
                {
                    self.put_to_sleep(location);
                    location.writer = None;
                }
            }
            locations.retain(|location| location.writer.is_some() || !location.dormant.is_empty());
            if !locations.is_empty() {
                self.lines.insert(line, locations);
            }
        }
    }

    /// A strong write, or with `rmw` a read-modify-write.
    pub(crate) fn strong_write(&mut self, shape: &Shape, write: &Write<'_>, rmw: bool) {
        let writer = (write.thread, write.scope);
        let before = self.take(write.address, write.bytes);
        let releases = write.operation.is_some() || !write.fences.is_empty();
        if before.is_none() && !releases {
            return;
        }
        // Does it continue what was there?
        let continues = rmw
            && before
                .as_ref()
                .and_then(|location| location.writer)
                .is_some_and(|old| old.0 == write.thread || shape.mutual(old, writer));
        let mut location = match before {
            Some(location) => location,
            None => Location {
                address: write.address,
                bytes: write.bytes,
                writer: None,
                log: self.new_log(),
                dormant: Vec::new(),
            },
        };
        if !continues {
            self.put_to_sleep(&mut location);
        }
        location.writer = Some(writer);
        self.wake(&mut location, write.thread);
        self.append(location.log, write);
        let line = self.lines.entry(write.address / LINE).or_default();
        line.push(location);
    }

    /// Takes out the location; what overlaps it otherwise is lost.
    fn take(&mut self, address: u64, bytes: u32) -> Option<Location> {
        let locations = self.lines.get_mut(&(address / LINE))?;
        let exact = |location: &Location| location.address == address && location.bytes == bytes;
        let found = locations.iter().position(exact);
        let location = found.map(|at| locations.swap_remove(at));
        self.weak_write(address, bytes);
        location
    }

    fn new_log(&mut self) -> LogId {
        self.logs.push(Log::default());
        (self.logs.len() - 1) as LogId
    }

    /// The location's value is overwritten: its releases can no longer be observed, but those who
    /// have observed them keep the log.
    fn put_to_sleep(&mut self, location: &mut Location) {
        if self.logs[location.log as usize].releases.is_empty() {
            return;
        }
        let log = self.new_log();
        let old = core::mem::replace(&mut location.log, log);
        for release in &self.logs[old as usize].releases {
            if release.operation {
                location
                    .dormant
                    .retain(|other| other.thread != release.thread);
                location.dormant.push(release.clone());
            }
        }
    }

    /// A thread writes again where it has released before.
    fn wake(&mut self, location: &mut Location, thread: Thread) {
        if let Some(at) = location
            .dormant
            .iter()
            .position(|release| release.thread == thread)
        {
            let mut release = location.dormant.swap_remove(at);
            release.covers = 0;
            self.logs[location.log as usize].releases.push(release);
        }
    }

    fn append(&mut self, log: LogId, write: &Write<'_>) {
        let Log { releases, fences } = &mut self.logs[log as usize];
        let covers = |acquired| match acquired {
            Some((of, count)) if of == log => count,
            _ => 0,
        };
        for fence in write.fences {
            if fences.insert((write.thread, fence.times.own)) {
                releases.push(Release {
                    thread: write.thread,
                    scope: fence.scope,
                    times: fence.times.clone(),
                    operation: false,
                    covers: covers(fence.acquired),
                });
            }
        }
        if let Some(times) = write.operation {
            releases.push(Release {
                thread: write.thread,
                scope: write.scope,
                times: times.clone(),
                operation: true,
                covers: covers(write.acquired),
            });
        }
    }

    /// The release among those observed that would have ordered `earlier`, at a time, before the
    /// observer.
    pub(crate) fn would_order(
        &self,
        seen: &Pending,
        (earlier, time): (Thread, Time),
    ) -> Option<(Thread, Scope)> {
        let releases = &self.logs[seen.log as usize].releases[..seen.count as usize];
        let found = releases
            .iter()
            .rev()
            .find(|release| release.times.get(release.thread, earlier) >= time);
        found.map(|release| (release.thread, release.scope))
    }

    /// Lets a thread learn from the releases it has observed by an acquire of some scope. True when
    /// nothing is left that a wider acquire could learn.
    pub(crate) fn acquire(
        &self,
        shape: &Shape,
        acquirer: (Thread, Scope),
        seen: Pending,
        times: &mut Times,
    ) -> bool {
        let releases = &self.logs[seen.log as usize].releases[..seen.count as usize];
        let mut all = true;
        let mut at = releases.len();
        let mut end = 0;
        while at > end {
            at -= 1;
            let release = &releases[at];
            if !shape.mutual((release.thread, release.scope), acquirer) {
                all = false;
                continue;
            }
            times.learn(acquirer.0, release.thread, &release.times);
            end = end.max(release.covers as usize);
        }
        all
    }
}
