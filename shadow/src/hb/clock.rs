//! What is known about the times of other threads, compressed along the thread hierarchy.
//!
//! A thread's own time goes up whenever it lets others know what it has done. A clock that holds
//! time `t` for a thread is ordered after all that the thread did at times up to `t`.
//! After Peng et al., "BARRACUDA: Binary-level Analysis of Runtime RAces in CUDA programs" (PLDI
//! 2017): their formats, for lanes that are not in lockstep.

use alloc::sync::Arc;
use alloc::vec::Vec;

use rpds::RedBlackTreeMapSync;

use super::place::{LANES, Thread};

/// A time of one thread, from 1.
pub type Time = u32;

/// Times of a warp: of all its lanes, and of single ones that are known further.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WarpTimes {
    all: Time,
    /// By lane, each beyond `all`.
    lanes: Vec<(u8, Time)>,
}

/// Times of a CTA, likewise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CtaTimes {
    all: Time,
    /// By warp, each beyond `all` somewhere.
    warps: Vec<(u32, WarpTimes)>,
}

impl WarpTimes {
    fn get(&self, lane: u32) -> Time {
        let found = self.lanes.iter().find(|&&(of, _)| u32::from(of) == lane);
        found.map_or(self.all, |&(_, time)| time.max(self.all))
    }

    fn raise_all(&mut self, time: Time) {
        if time > self.all {
            self.all = time;
            self.lanes.retain(|&(_, of)| of > time);
        }
    }

    fn raise(&mut self, lane: u32, time: Time) {
        if time <= self.get(lane) {
            return;
        }
        let lane = lane as u8;
        match self.lanes.binary_search_by_key(&lane, |&(of, _)| of) {
            Ok(at) => self.lanes[at].1 = time,
            Err(at) => self.lanes.insert(at, (lane, time)),
        }
    }

    fn join(&mut self, other: &Self) {
        self.raise_all(other.all);
        for &(lane, time) in &other.lanes {
            self.raise(u32::from(lane), time);
        }
    }
}

impl CtaTimes {
    fn get(&self, warp: u32, lane: u32) -> Time {
        match self.warps.binary_search_by_key(&warp, |&(of, _)| of) {
            Ok(at) => self.warps[at].1.get(lane).max(self.all),
            Err(_) => self.all,
        }
    }

    fn warp(&mut self, warp: u32) -> &mut WarpTimes {
        let at = match self.warps.binary_search_by_key(&warp, |&(of, _)| of) {
            Ok(at) => at,
            Err(at) => {
                self.warps.insert(at, (warp, WarpTimes::default()));
                at
            }
        };
        &mut self.warps[at].1
    }

    fn join(&mut self, other: &Self) {
        self.all = self.all.max(other.all);
        for (warp, times) in &other.warps {
            self.warp(*warp).join(times);
        }
        self.tidy();
    }

    /// Drops what `all` says already, so that equal knowledge is equal.
    fn tidy(&mut self) {
        let all = self.all;
        for (_, times) in &mut self.warps {
            times.lanes.retain(|&(_, time)| time > all);
        }
        self.warps
            .retain(|(_, times)| times.all > all || !times.lanes.is_empty());
        for (_, times) in &mut self.warps {
            times.all = times.all.max(all);
        }
    }
}

/// Times of any threads. Cheap to clone; clones share what they do not change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sparse(Option<Arc<RedBlackTreeMapSync<u64, CtaTimes>>>);

impl PartialEq for Sparse {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || (a.size() == b.size() && a == b),
            _ => false,
        }
    }
}

impl Eq for Sparse {}

impl Sparse {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn get(&self, of: Thread) -> Time {
        let times = self.0.as_ref().and_then(|map| map.get(&of.cta));
        times.map_or(0, |times| times.get(of.warp, of.lane))
    }

    fn change(&mut self, cta: u64, change: impl FnOnce(&mut CtaTimes)) {
        let map = Arc::make_mut(self.0.get_or_insert_default());
        let mut times = map.get(&cta).cloned().unwrap_or_default();
        change(&mut times);
        times.tidy();
        map.insert_mut(cta, times);
    }

    fn of(&self, cta: u64) -> Option<&CtaTimes> {
        self.0.as_ref()?.get(&cta)
    }

    /// All threads of a CTA are known up to `time`.
    pub(crate) fn raise_cta(&mut self, cta: u64, time: Time) {
        if time > self.of(cta).map_or(0, |times| times.all) {
            self.change(cta, |times| times.all = time);
        }
    }

    /// All lanes of a warp are known up to `time`.
    pub(crate) fn raise_warp(&mut self, cta: u64, warp: u32, time: Time) {
        let known = self.of(cta).map_or(0, |times| {
            let at = times.warps.binary_search_by_key(&warp, |&(of, _)| of);
            at.map_or(times.all, |at| times.warps[at].1.all)
        });
        if time > known {
            self.change(cta, |times| times.warp(warp).raise_all(time));
        }
    }

    /// One thread is known up to `time`.
    pub(crate) fn raise(&mut self, of: Thread, time: Time) {
        if time > self.get(of) {
            self.change(of.cta, |times| times.warp(of.warp).raise(of.lane, time));
        }
    }

    /// Knows what `other` knows as well.
    pub(crate) fn join(&mut self, other: &Self) {
        let Some(theirs) = &other.0 else {
            return;
        };
        let Some(mine) = &mut self.0 else {
            self.0 = Some(Arc::clone(theirs));
            return;
        };
        if Arc::ptr_eq(mine, theirs) {
            return;
        }
        // The smaller one goes into the larger one.
        let smaller = if mine.size() < theirs.size() {
            core::mem::replace(mine, Arc::clone(theirs))
        } else {
            Arc::clone(theirs)
        };
        for (&cta, times) in smaller.iter() {
            let known = mine.get(&cta);
            if known == Some(times) {
                continue;
            }
            let mut joined = known.cloned().unwrap_or_default();
            joined.join(times);
            if known != Some(&joined) {
                Arc::make_mut(mine).insert_mut(cta, joined);
            }
        }
    }

    /// Forgets a CTA, of which its owner keeps track otherwise.
    pub(crate) fn forget(&mut self, cta: u64) {
        if self.of(cta).is_none() {
            return;
        }
        if let Some(map) = &mut self.0 {
            Arc::make_mut(map).remove_mut(&cta);
            if map.is_empty() {
                self.0 = None;
            }
        }
    }
}

/// A thread's clock, without saying whose: lanes that have done the same things have equal ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// The thread's own time.
    pub(crate) own: Time,
    /// What it knows of every other lane of its warp.
    pub(crate) warp: Time,
    /// What it knows of every other thread of its CTA.
    pub(crate) cta: Time,
    /// What else it knows.
    pub(crate) rest: Sparse,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            own: 1,
            warp: 0,
            cta: 0,
            rest: Sparse::default(),
        }
    }
}

impl Times {
    /// The time of `other` up to which the owner, `me`, is ordered after it.
    pub(crate) fn get(&self, me: Thread, other: Thread) -> Time {
        if me == other {
            return self.own;
        }
        let mut time = 0;
        if me.cta == other.cta {
            time = self.cta;
            if me.warp == other.warp {
                time = time.max(self.warp);
            }
        }
        if self.rest.is_empty() {
            return time;
        }
        time.max(self.rest.get(other))
    }

    /// The owner, `me`, learns what `other` knew at a time that `theirs` describes.
    pub(crate) fn learn(&mut self, me: Thread, other: Thread, theirs: &Times) {
        if me == other {
            // What a thread released itself, it knows.
            return;
        }
        if me.cta == other.cta {
            self.cta = self.cta.max(theirs.cta);
            if me.warp == other.warp {
                self.warp = self.warp.max(theirs.warp);
            } else if theirs.warp > self.cta {
                self.rest.raise_warp(other.cta, other.warp, theirs.warp);
            }
        } else {
            if theirs.cta > 0 {
                self.rest.raise_cta(other.cta, theirs.cta);
            }
            if theirs.warp > theirs.cta {
                self.rest.raise_warp(other.cta, other.warp, theirs.warp);
            }
        }
        if theirs.own > self.get(me, other) {
            self.rest.raise(other, theirs.own);
        }
        self.rest.join(&theirs.rest);
    }

    /// Adds what the threads `lanes` of a warp know to `into`. `whole` says that these are all the
    /// lanes the warp has, so that their time may be given for the warp as a whole; all of them
    /// must go beyond that time at once.
    pub(crate) fn publish(&self, into: &mut Sparse, of: super::Warp, lanes: u32, whole: bool) {
        if self.cta > 0 {
            into.raise_cta(of.cta, self.cta);
        }
        if self.warp > self.cta {
            into.raise_warp(of.cta, of.warp, self.warp);
        }
        if whole {
            into.raise_warp(of.cta, of.warp, self.own);
        } else {
            for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
                into.raise(of.lane(lane), self.own);
            }
        }
        into.join(&self.rest);
    }
}
