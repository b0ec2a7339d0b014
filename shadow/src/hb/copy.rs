//! Asynchronous copies: under way from their issue until somebody has waited for them.
//!
//! PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy". Nothing orders a copy
//! with other accesses while it is under way, not even those of its own thread.

use alloc::vec::Vec;

use hashbrown::HashMap;

use super::access::Weak;
use super::clock::Time;
use super::history::{LINE, WORD};
use super::place::{Thread, Warp};
use super::row::Run;
use super::{Engine, Place, Race, barrier, each};

/// How a copy ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// With a group of its thread: `cp.async`, and bulk copies out of shared memory.
    Group,
    /// With a phase of an asynchronous barrier.
    Mbarrier(Place),
}

/// Words that a copy accesses.
#[derive(Clone, Debug)]
struct Copy {
    number: u32,
    thread: Thread,
    /// Its thread's time when it was issued; nothing else has that when it ends with a barrier.
    time: Time,
    words: [Option<(u64, u64)>; 2],
}

/// Copies under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    count: u32,
    /// Who issued the last one, by which instruction: the lanes of a warp share a number.
    last: Option<(Thread, u32)>,
    /// By thread: those not in a group yet, then the groups, oldest first.
    open: HashMap<Thread, Vec<Copy>>,
    groups: HashMap<Thread, Vec<Vec<Copy>>>,
    /// By key of the barrier.
    mbarriers: HashMap<u64, Vec<Copy>>,
}

impl Copies {
    fn number(&mut self, me: Thread, site: u32) -> u32 {
        let together = self.last.is_some_and(|(last, of)| {
            (last.warp(), of) == (me.warp(), site) && last.lane < me.lane
        });
        self.count += u32::from(!together);
        self.last = Some((me, site));
        self.count
    }

    /// Nobody waits any more for the groups of threads that end.
    pub(crate) fn exit(&mut self, warp: Warp, lanes: u32) {
        if self.open.is_empty() && self.groups.is_empty() {
            return;
        }
        for me in barrier::threads(warp, lanes) {
            self.open.remove(&me);
            self.groups.remove(&me);
        }
    }
}

impl Engine {
    /// A thread issues a copy of bytes: `read` from, `written` to. Bulk copies are made by the async
    /// proxy.
    pub fn copy(
        &mut self,
        me: Thread,
        (from, read): (Place, u32),
        (to, written): (Place, u32),
        (site, ends, bulk): (u32, Completion, bool),
        mut found: impl FnMut(Race),
    ) {
        self.stats.accesses += 1;
        let number = self.copies.number(me, site);
        self.enter(me.warp());
        let mut time = self.knows(me, me);
        let alone = ends != Completion::Group;
        if alone {
            time = (time + 1).max(self.now);
            self.advance(me, time);
        }
        if bulk {
            self.proxied(me, (from, read), site, &mut found);
        }
        let mut words = [None; 2];
        let sides = [(false, from, read), (true, to, written)];
        for (side, (writes, place, bytes)) in sides.into_iter().enumerate() {
            let (mut key, end) = (place.key(), place.key() + u64::from(bytes));
            words[side] = (bytes > 0).then(|| (key / WORD, (end - 1) / WORD));
            let weak = Weak {
                writes,
                read_only: false,
                site,
                copy: number,
            };
            while key < end {
                let part = (LINE - key % LINE).min(end - key);
                self.weak(me.warp(), Run::one(me.lane, key, part), weak, &mut found);
                key += part;
            }
        }
        if alone {
            self.advance(me, time + 1);
        }
        let copy = Copy {
            number,
            thread: me,
            time,
            words,
        };
        match ends {
            Completion::Group => self.copies.open.entry(me).or_default().push(copy),
            Completion::Mbarrier(at) => {
                let of = self.copies.mbarriers.entry(at.key()).or_default();
                of.push(copy);
            }
        }
    }

    /// Lanes close a group of copies.
    pub fn commit(&mut self, warp: Warp, lanes: u32) {
        for me in barrier::threads(warp, lanes) {
            let open = self.copies.open.remove(&me).unwrap_or_default();
            let groups = self.copies.groups.entry(me).or_default();
            groups.push(open);
        }
    }

    /// Lanes wait until at most `left` of their groups are under way; none for all copies, in
    /// groups or not.
    pub fn wait(&mut self, warp: Warp, lanes: u32, left: Option<u32>) {
        for lane in each(lanes) {
            let me = warp.lane(lane);
            let mut done = Vec::new();
            if let Some(groups) = self.copies.groups.get_mut(&me) {
                let over = groups.len().saturating_sub(left.unwrap_or(0) as usize);
                done.extend(groups.drain(..over).flatten());
            }
            if left.is_none() {
                done.extend(self.copies.open.remove(&me).unwrap_or_default());
            }
            let now = self.knows(me, me);
            done.iter().for_each(|copy| self.finish(copy, now));
        }
    }

    /// The copies of an asynchronous barrier whose phase ends are complete. Gives their threads and
    /// times.
    pub(crate) fn land(&mut self, key: u64) -> Vec<(Thread, Time)> {
        let done = self.copies.mbarriers.remove(&key).unwrap_or_default();
        done.iter().for_each(|copy| self.finish(copy, copy.time));
        done.iter().map(|copy| (copy.thread, copy.time)).collect()
    }

    /// From now on the copy's accesses are its thread's own, at `time`.
    fn finish(&mut self, copy: &Copy, time: Time) {
        for words in copy.words.into_iter().flatten() {
            let history = self.memory.of(Place::of(words.0 * WORD));
            history.complete(words, copy.thread, copy.number, time);
        }
    }

    /// A thread's own time becomes `time`.
    fn advance(&mut self, me: Thread, time: Time) {
        if let Some(cta) = self.ctas.get_mut(&me.cta) {
            let lanes = cta.lanes(me.warp);
            lanes.update(1 << me.lane, |view, _| view.times.own = time);
        }
        self.classify(me.warp());
    }
}
