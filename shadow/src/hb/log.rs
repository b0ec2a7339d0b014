//! The releases that are to be observed at a location.

use alloc::sync::Arc;
use alloc::vec::Vec;
use events::Scope;

use hashbrown::HashMap;

use super::clock::{Sparse, Time, Times};
use super::each;
use super::thread::{Epoch, Id, Party, Shape, Thread};

/// Sums that a log keeps at least.
const SUMS: usize = 32;

/// Which log of releases; no two have the same.
pub(crate) type LogId = u64;

/// Release patterns of lanes of a warp that knew the same, as their observers need them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) warp: Id,
    /// In the order in which they wrote, lowest first.
    pub(crate) lanes: u32,
    /// Scope of the pattern's first operation.
    pub(crate) scope: Scope,
    /// What the threads had done before that.
    pub(crate) times: Times,
    /// A release operation on the location itself, of one thread: a later strong write of the same
    /// thread is part of such a pattern again.
    pub(crate) operation: bool,
    /// Releases before this one in its log that its thread had acquired, counted from the first:
    /// a thread that acquires this one need not look at them.
    pub(crate) covers: u32,
    /// Releases before this one in its log.
    pub(crate) first: u32,
}

/// How much of a log has been observed. A reader that needs that holds one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) log: LogId,
    pub(crate) count: u32,
}

/// What a strong write starts, and every read-modify-write that observes it adds to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) id: LogId,
    releases: Vec<Release>,
    /// Releases that there ever were.
    count: u32,
    /// The last fences among them, which one thread may put to use many times: their time and lanes.
    fences: HashMap<Id, (Time, u32)>,
    /// The observed lengths, ascending.
    marks: Vec<Arc<Mark>>,
    /// Releases, and marks, at which to look for those that are not needed.
    crowd: [usize; 2],
    least: usize,
    /// How many releases from the first are of gpu scope or wider.
    wide: u32,
    /// `sum` is what the first `summed` of those have published.
    summed: u32,
    sum: Sparse,
    /// The same for smaller numbers of releases, in ascending order. A thread that has observed fewer releases may acquire
    /// after one that has observed more.
    sums: Vec<(u32, Sparse)>,
    /// When there are more sums than this, those that no thread needs are dropped.
    most_sums: usize,
    /// Whose releases there are: of one warp, if there is just one.
    warp: Option<Id>,
    warps: bool,
}

impl Release {
    fn len(&self) -> u32 {
        self.lanes.count_ones()
    }

    /// The lanes whose releases are among the first `count` of the log.
    fn lanes(&self, count: u32) -> u32 {
        let mut lanes = self.lanes;
        while self.first + lanes.count_ones() > count {
            if lanes == 0 || self.first >= count {
                return 0;
            }
            lanes &= !(1 << (31 - lanes.leading_zeros()));
        }
        lanes
    }

    /// Takes in one that follows directly, of another lane that knew the same.
    fn absorb(&mut self, other: &Self) -> bool {
        let same = self.warp == other.warp
            && self.lanes < other.lanes
            && self.scope == other.scope
            && !self.operation
            && !other.operation
            && self.covers == other.covers
            && self.first + self.len() == other.first
            && self.times == other.times;
        if same {
            self.lanes |= other.lanes;
        }
        same
    }
}

impl Log {
    /// `crowd`: see [`Engine::with_crowd`](super::Engine::with_crowd).
    pub(crate) fn new(logs: &mut LogId, crowd: usize) -> Self {
        *logs += 1;
        Self {
            id: *logs,
            least: crowd,
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Releases kept.
    pub(crate) fn len(&self) -> usize {
        self.releases.len()
    }

    /// The last of the first `count` releases that knew of `earlier` at a time.
    pub(crate) fn would_order(&self, count: u32, earlier: Epoch) -> Option<Party> {
        self.releases.iter().rev().find_map(|release| {
            let mut threads = each(release.lanes(count)).map(|lane| release.warp.warp().lane(lane));
            let knew =
                threads.find(|&thread| release.times.get(thread, earlier.thread) >= earlier.time);
            let scope = release.scope;
            knew.map(|thread| Party { thread, scope })
        })
    }

    /// The release operations.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &Release> {
        self.releases.iter().filter(|release| release.operation)
    }

    /// All of it is observed; nothing if there is nothing to observe.
    pub(crate) fn mark(&mut self) -> Option<Arc<Mark>> {
        if self.count == 0 {
            return None;
        }
        if let Some(last) = self.marks.last().filter(|last| last.count == self.count) {
            return Some(Arc::clone(last));
        }
        if self.marks.len() > self.crowd[1].max(self.least) {
            self.is_observed();
            self.crowd[1] = 2 * self.marks.len();
        }
        let mark = Arc::new(Mark {
            log: self.id,
            count: self.count,
        });
        self.marks.push(Arc::clone(&mark));
        Some(mark)
    }

    /// True when a thread has observed it, and not made use of that.
    pub(crate) fn is_observed(&mut self) -> bool {
        self.marks.retain(|mark| Arc::strong_count(mark) > 1);
        !self.marks.is_empty()
    }

    /// True when a fence of a thread is not known to be in the log.
    pub(crate) fn is_new(&mut self, thread: Thread, time: Time) -> bool {
        let known = self.fences.entry(Id::of(thread.warp())).or_default();
        let lane = 1 << thread.lane;
        if known.0 != time {
            *known = (time, 0);
        }
        let new = known.1 & lane == 0;
        known.1 |= lane;
        new
    }

    pub(crate) fn push(&mut self, mut release: Release) {
        release.first = self.count;
        if self.wide == self.count && release.scope >= Scope::Gpu {
            self.wide += 1;
        }
        self.count += 1;
        self.warps |= self.warp.is_some_and(|warp| warp != release.warp);
        self.warp = Some(release.warp);
        if !self
            .releases
            .last_mut()
            .is_some_and(|last| last.absorb(&release))
        {
            self.releases.push(release);
        }
    }

    /// Drops releases that later ones stand for, whichever thread observes or acquires them. Gives the
    /// release operations among them.
    pub(crate) fn compact(&mut self) -> Vec<Release> {
        if self.releases.len() <= self.crowd[0].max(self.least) {
            return Vec::new();
        }
        self.is_observed();
        // By CTA and scope: how much of the log a later release covers. By warp: the lanes that
        // release again, and when. A thread that has observed the one has observed the other unless there
        // is a mark between them.
        let mut covered: HashMap<(u64, Scope), u32> = HashMap::new();
        let mut again: HashMap<(Id, Scope, bool), (u32, Time)> = HashMap::new();
        let mut marks = self.marks.iter().rev().peekable();
        let mut dropped = Vec::new();
        let mut kept = Vec::new();
        for release in self.releases.drain(..).rev() {
            let end = release.first + release.len();
            let mut whole = true;
            while let Some(mark) = marks.next_if(|mark| mark.count > release.first) {
                covered.clear();
                again.clear();
                whole &= mark.count >= end;
            }
            let by = covered
                .entry((release.warp.warp().cta, release.scope))
                .or_default();
            let key = (release.warp, release.scope, release.operation);
            let again = again.entry(key).or_insert((0, release.times.own));
            let repeated = release.lanes & !again.0 == 0 && release.times.own <= again.1;
            if *by < end && !repeated {
                *by = release.covers.max(*by);
                if whole {
                    *again = (again.0 | release.lanes, again.1.min(release.times.own));
                }
                kept.push(release);
            } else if release.operation {
                dropped.push(release);
            }
        }
        kept.reverse();
        self.releases = kept;
        self.crowd[0] = 2 * self.releases.len();
        dropped
    }

    /// True when a thread that acquires the first `count` releases by an acquire of gpu scope learns from
    /// all of them, and none is of a thread of `warp`.
    pub(crate) fn is_wide(&self, warp: Id, count: u32) -> bool {
        count <= self.wide && (self.warps || self.warp != Some(warp))
    }

    /// Lets a thread learn from the first `count` releases by an acquire of some scope. True when
    /// nothing is left that a wider acquire could learn.
    pub(crate) fn acquire(
        &mut self,
        shape: &Shape,
        acquirer: Party,
        count: u32,
        times: &mut Times,
    ) -> bool {
        let me = Id::of(acquirer.thread.warp());
        if acquirer.scope >= Scope::Gpu && self.is_wide(me, count) {
            if self.summed <= count {
                self.sum_up(count);
                times.rest.join(&self.sum);
                return true;
            }
            let known = self.sums.partition_point(|known| known.0 <= count);
            let known = known.checked_sub(1).and_then(|at| self.sums.get(at));
            let (done, mut sum) = known.cloned().unwrap_or_default();
            for (release, lanes) in self.newest(count) {
                if release.first + release.len() <= done {
                    break;
                }
                let of = release.warp.warp();
                release.times.publish(&mut sum, of, lanes, false);
            }
            times.rest.join(&sum);
            return true;
        }
        let mut all = true;
        let mut end = 0;
        for (release, lanes) in self.newest(count) {
            if release.first + release.len() <= end {
                break;
            }
            let warp = release.warp.warp();
            let releaser = Party {
                thread: warp.lane(0),
                scope: release.scope,
            };
            if !shape.mutual(releaser, acquirer) {
                all = false;
                continue;
            }
            for lane in each(lanes) {
                let by = warp.lane(lane);
                // Who knows a thread's time knows all that the thread knew then.
                if times.get(acquirer.thread, by) < release.times.own {
                    times.join(acquirer.thread, by, &release.times);
                }
            }
            end = end.max(release.covers);
        }
        all
    }

    /// The first `count` releases, newest first, with the lanes that are among them.
    fn newest(&self, count: u32) -> impl Iterator<Item = (&Release, u32)> {
        let all = self.releases.iter().rev();
        let there = all.map(move |release| (release, release.lanes(count)));
        there.filter(|(_, lanes)| *lanes != 0)
    }

    /// Adds up what the first `count` releases have published. On the way it keeps the sum for each thread that has
    /// observed fewer releases and has not acquired them yet.
    fn sum_up(&mut self, count: u32) {
        let first = self.marks.partition_point(|mark| mark.count <= self.summed);
        for at in first..self.marks.len() {
            let mark = &self.marks[at];
            if mark.count >= count {
                break;
            }
            if Arc::strong_count(mark) > 1 {
                self.sum_to(mark.count);
            }
        }
        self.sum_to(count);
        if self.sums.len() > self.most_sums.max(SUMS) {
            let mut marks = self.marks.iter().peekable();
            let last = self.summed;
            self.sums.retain(|(count, _)| {
                while marks.next_if(|mark| mark.count < *count).is_some() {}
                let needed =
                    |mark: &&Arc<Mark>| mark.count == *count && Arc::strong_count(mark) > 1;
                *count == last || marks.peek().is_some_and(needed)
            });
            self.most_sums = 2 * self.sums.len();
        }
    }

    /// Adds the releases from the last sum to the first `count`.
    fn sum_to(&mut self, count: u32) {
        let new = self
            .releases
            .partition_point(|release| release.first + release.len() <= self.summed);
        for release in &self.releases[new..] {
            let lanes = release.lanes(count);
            if lanes == 0 {
                break;
            }
            let of = release.warp.warp();
            release.times.publish(&mut self.sum, of, lanes, false);
        }
        if count > self.summed {
            self.summed = count;
            self.sums.push((count, self.sum.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::thread::Warp;
    use super::*;

    const RELEASES: u32 = 300;

    fn push(log: &mut Log, n: u32) -> Option<Arc<Mark>> {
        let warp = Warp {
            cta: u64::from(n % 7),
            warp: 0,
        };
        log.push(Release {
            warp: Id::of(warp),
            lanes: 1 << (n / 7 % 32),
            scope: Scope::Gpu,
            times: Times {
                own: n + 1,
                ..Times::default()
            },
            operation: false,
            covers: 0,
            first: 0,
        });
        log.mark()
    }

    /// A log of releases of several CTAs, with a mark behind each.
    fn log() -> (Log, Vec<Arc<Mark>>) {
        let mut log = Log::new(&mut 0, 4);
        let marks = (0..RELEASES).filter_map(|n| push(&mut log, n)).collect();
        (log, marks)
    }

    fn learned(log: &mut Log, count: u32) -> Times {
        let shape = Shape::new([8, 1, 1], 32);
        let reader = Party {
            thread: Warp { cta: 7, warp: 0 }.lane(0),
            scope: Scope::Gpu,
        };
        let mut times = Times::default();
        assert!(log.acquire(&shape, reader, count, &mut times));
        times
    }

    #[test]
    fn what_an_acquire_learns_does_not_depend_on_who_has_acquired_before() {
        let (mut busy, mut marks) = log();
        for n in 0..RELEASES {
            // Each number once, in no order. A thread that has acquired drops its mark.
            let count = n * 101 % RELEASES + 1;
            let (mut fresh, _held) = log();
            assert_eq!(
                learned(&mut busy, count),
                learned(&mut fresh, count),
                "{count}"
            );
            marks.retain(|mark| mark.count != count);
        }
    }

    #[test]
    fn sums_that_nobody_needs_are_dropped() {
        let mut log = Log::new(&mut 0, 4);
        for n in 0..RELEASES {
            let mark = push(&mut log, n);
            learned(&mut log, n + 1);
            drop(mark);
        }
        assert!(log.sums.len() <= SUMS + 1);
    }
}
