//! What is known about the times of other threads, compressed along the thread hierarchy.
//!
//! A thread's own time goes up whenever it lets others know what it has done. A clock that holds
//! time `t` for a thread is ordered after all that the thread did at times up to `t`.
//! After Peng et al., "BARRACUDA: Binary-level Analysis of Runtime RAces in CUDA programs" (PLDI
//! 2017): their formats, for lanes that are not in lockstep.

pub(crate) use super::sparse::Sparse;
use super::thread::{Thread, Warp};

/// A time of one thread, from 1.
pub type Time = u32;

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

    /// The lanes of a warp that the owner, of the warp `me`, is not ordered after at a time; the
    /// owner itself may be among them.
    pub(crate) fn unordered(&self, me: Warp, of: Warp, lanes: u32, time: Time) -> u32 {
        if me.cta == of.cta && (time <= self.cta || me.warp == of.warp && time <= self.warp) {
            return 0;
        }
        self.rest.behind(of, lanes, time)
    }

    /// The owner, `me`, learns what `other` knew at a time that `theirs` describes.
    pub(crate) fn join(&mut self, me: Thread, other: Thread, theirs: &Times) {
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
    pub(crate) fn publish(&self, into: &mut Sparse, of: Warp, lanes: u32, whole: bool) {
        if self.cta > 0 {
            into.raise_cta(of.cta, self.cta);
        }
        if self.warp > self.cta {
            into.raise_warp(of.cta, of.warp, self.warp);
        }
        if whole {
            into.raise_warp(of.cta, of.warp, self.own);
        } else {
            into.raise_lanes(of.cta, of.warp, lanes, self.own);
        }
        into.join(&self.rest);
    }
}
