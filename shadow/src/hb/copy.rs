//! Asynchronous copies: under way from their issue until a thread has waited for them.
//!
//! PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy". Nothing orders a copy
//! with other accesses while it is under way, not even those of its own thread.
//!
//! A copy that ends with a group becomes its thread's own when that waits for the group. A copy that
//! ends with an asynchronous barrier is made by another thread from the start, which none knows but
//! by that barrier.

use alloc::vec::Vec;
use core::ops::RangeInclusive;
use events::Scope;

use hashbrown::HashMap;

use super::access::Weak;
use super::clock::Sparse;
use super::history::{LINE, WORD};
use super::mbarrier::MBARRIER;
use super::row::Run;
use super::thread::{Epoch, Id, Thread, Warp};
use super::{Access, Engine, Location, MemoryOrder, OpKind, Race, Span, all, barrier};

/// How a copy ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// With a group of its thread: `cp.async`, and bulk copies out of shared memory.
    Group,
    /// With a phase of an asynchronous barrier.
    Mbarrier(Location),
}

/// What a thread issues.
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    /// Which instruction.
    pub site: u32,
    /// How it ends.
    pub ends: Completion,
    /// It is made by the async proxy.
    pub bulk: bool,
    /// What `red.async` or `cp.reduce.async.bulk` does to each element of the target, which others may do at the same
    /// time.
    pub reduces: Option<Access>,
}

/// What lanes wait for: `cp.async.wait_group`, `cp.async.wait_all`, `cp.async.bulk.wait_group`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// Until at most so many groups are under way; none for all copies, in groups or not.
    pub left: Option<u32>,
    /// For bulk copies; these have groups of their own.
    pub bulk: bool,
    /// Only until they have read their sources (`.read`).
    pub reads: bool,
}

/// A copy that ends with a group.
#[derive(Clone, Debug)]
struct Copy {
    number: u32,
    /// The words it reads, and those it writes, until a thread has waited for that.
    words: [Option<RangeInclusive<u64>>; 2],
    /// Who makes it and when, if it ends with an asynchronous barrier too.
    maker: Option<Epoch>,
    /// The stand-in that reduces into the target, and when, if the copy reduces.
    reducer: Option<Epoch>,
}

/// What one copy reads, or what it writes.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) issuer: Thread,
    /// The number of the copy.
    pub(crate) copy: u32,
    pub(crate) writes: bool,
}

/// Copies of a thread that end with groups.
#[derive(Clone, Debug, Default)]
struct Groups {
    /// Those not in a group yet.
    open: Vec<Copy>,
    /// Oldest first.
    closed: Vec<Vec<Copy>>,
}

/// The first CTA that the launch does not have.
pub(crate) const MAKERS: u64 = 1 << 47;

/// What a stand-in does for the threads of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// It makes the copies that end with the asynchronous barrier of that key; those with `groups` end with groups too.
    Copies { barrier: u64, groups: bool },
    /// It makes the reductions that end with groups.
    Reductions,
    /// It makes memory asynchronous barriers.
    Inits,
    /// It stands for what has come before the issue of copies that have arrived.
    Issues,
}

/// Stand-ins: CTAs that the launch does not have, with a thread for each thread that they stand for. Other threads can be
/// ordered behind what a stand-in does without being ordered behind the thread itself.
#[derive(Clone, Debug, Default)]
struct Makers {
    /// By role and CTA.
    numbers: HashMap<(Role, u64), u64>,
    /// For which CTA, by number.
    ctas: Vec<u64>,
}

/// All copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    count: u32,
    /// Who issued the last one, by which instruction: the lanes of a warp share a number.
    last: Option<(Thread, u32)>,
    /// By thread, bulk copies apart.
    groups: HashMap<(Thread, bool), Groups>,
    makers: Makers,
}

impl Id {
    /// True when it makes copies for warps of the launch.
    pub(crate) fn makes_copies(self) -> bool {
        self.warp().cta >= MAKERS
    }
}

impl Makers {
    /// The stand-in of a thread.
    fn of(&mut self, me: Thread, role: Role) -> Thread {
        let Self { numbers, ctas } = self;
        let number = *numbers.entry((role, me.cta)).or_insert_with(|| {
            ctas.push(me.cta);
            ctas.len() as u64 - 1
        });
        let cta = MAKERS + number;
        Thread { cta, ..me }
    }
}

impl Copies {
    /// The stand-in that makes memory an asynchronous barrier for a thread, and when.
    pub(crate) fn init(&mut self, me: Thread) -> Epoch {
        self.count += 1;
        self.last = None;
        Epoch {
            thread: self.makers.of(me, Role::Inits),
            time: self.count,
        }
    }

    /// The stand-in of a thread, or of one that ends phases, for what has come before copies were issued that have arrived.
    /// That is no order of accesses.
    fn issues(&mut self, me: Thread) -> Thread {
        self.makers.of(me, Role::Issues)
    }

    /// The same, if there is one.
    pub(crate) fn issued(&self, me: Thread) -> Option<Thread> {
        let number = self.makers.numbers.get(&(Role::Issues, me.cta))?;
        let cta = MAKERS + number;
        Some(Thread { cta, ..me })
    }

    /// Who ends the phases of an asynchronous barrier that has just been made: a new thread, so that nothing is
    /// known of these phases.
    pub(crate) fn ends(&mut self, at: Location) -> Thread {
        let owner = match at {
            Location::Shared { cta, .. } => cta,
            Location::Global(_) => 0,
        };
        self.makers.ctas.push(owner);
        Thread {
            cta: MAKERS + self.makers.ctas.len() as u64 - 1,
            warp: 0,
            lane: 0,
        }
    }

    fn number(&mut self, me: Thread, site: u32) -> u32 {
        let together = self.last.is_some_and(|(last, of)| {
            (last.warp(), of) == (me.warp(), site) && last.lane < me.lane
        });
        self.count += u32::from(!together);
        self.last = Some((me, site));
        self.count
    }

    /// No thread waits any more for the groups of threads that end.
    pub(crate) fn exit(&mut self, warp: Warp, lanes: u32) {
        if self.groups.is_empty() {
            return;
        }
        for me in barrier::threads(warp, lanes) {
            self.groups.remove(&(me, false));
            self.groups.remove(&(me, true));
        }
    }

    /// Some asynchronous barriers are gone.
    pub(crate) fn forget_mbarriers(&mut self, gone: impl Fn(u64) -> bool) {
        let of_gone = |role| matches!(role, Role::Copies { barrier, .. } if gone(barrier));
        self.makers.numbers.retain(|&(role, _), _| !of_gone(role));
    }

    /// The thread of the launch that has issued what `by` has made; `by` itself if that is one.
    pub(crate) fn issuer(&self, by: Thread) -> Thread {
        let number = by.cta.checked_sub(MAKERS);
        let cta = number.and_then(|number| self.makers.ctas.get(number as usize));
        Thread {
            cta: cta.copied().unwrap_or(by.cta),
            ..by
        }
    }
}

impl Engine {
    /// A thread issues a copy of bytes. Bulk copies are made by the async proxy.
    pub fn copy(
        &mut self,
        me: Thread,
        from: Span,
        to: Span,
        issue: Issue,
        found: impl FnMut(Race),
    ) {
        let mut found = all(found);
        let Issue {
            site, ends, bulk, ..
        } = issue;
        self.stats.accesses += 1;
        let number = self.copies.number(me, site);
        self.enter(me.warp());
        if bulk {
            self.proxied(me, from, site, &mut found);
        }
        let maker = match ends {
            Completion::Group => None,
            Completion::Mbarrier(at) => Some(Epoch {
                thread: self.copies.makers.of(
                    me,
                    Role::Copies {
                        barrier: at.key(),
                        groups: false,
                    },
                ),
                time: number,
            }),
        };
        if let Completion::Mbarrier(at) = ends {
            // That the bytes have come is an operation on the barrier, made with the copy.
            let access = Access {
                kind: OpKind::Reduction,
                order: MemoryOrder::Relaxed(Scope::Sys),
                bytes: MBARRIER as u32,
                elements: 1,
                site,
            };
            self.check(me, &access, maker, at.key(), &mut found);
        }
        let reducer = (issue.reduces.is_some() && maker.is_none()).then(|| Epoch {
            thread: self.copies.makers.of(me, Role::Reductions),
            time: number,
        });
        let mut words = [None, None];
        for (side, (writes, span)) in [(false, from), (true, to)].into_iter().enumerate() {
            let mut key = span.location.key();
            let end = key + u64::from(span.bytes);
            let reduced = issue.reduces.filter(|_| writes);
            words[side] =
                (span.bytes > 0 && reduced.is_none()).then(|| key / WORD..=(end - 1) / WORD);
            let weak = Weak {
                writes,
                read_only: false,
                site,
                copy: if maker.is_none() { number } else { 0 },
                maker,
            };
            if let Some(access) = &reduced {
                while key < end {
                    self.check(me, access, maker.or(reducer), key, &mut found);
                    key += u64::from(access.bytes.max(1));
                }
            }
            let mut found = |race| {
                found(Race {
                    proxies: bulk && !writes,
                    ..race
                })
            };
            while key < end {
                let part = (LINE - key % LINE).min(end - key);
                self.weak(me.warp(), Run::one(me.lane, key, part), weak, &mut found);
                key += part;
            }
        }
        match (ends, maker) {
            (Completion::Mbarrier(at), Some(maker)) => {
                // It comes after all that its issuer knows, and before the end of the phase, which does
                // not make known what the issuer knows (PTX ISA, "Asynchronous Operations"). Of
                // `st.async` and `red.async` the ISA does not say so.
                if !bulk {
                    self.arrive_at(me, at, Scope::Cluster);
                }
                let mut known = Sparse::default();
                known.raise(maker.thread, maker.time);
                self.copies_at(me, at, Scope::Cluster, &known);
            }
            _ => {
                let groups = self.copies.groups.entry((me, bulk)).or_default();
                groups.open.push(Copy {
                    number,
                    words,
                    maker: None,
                    reducer,
                });
            }
        }
    }

    /// Lanes close a group of copies: bulk copies, or others.
    pub fn commit(&mut self, warp: Warp, lanes: u32, bulk: bool) {
        for me in barrier::threads(warp, lanes) {
            let groups = self.copies.groups.entry((me, bulk)).or_default();
            groups.closed.push(core::mem::take(&mut groups.open));
        }
    }

    /// Lanes wait for copies of their own.
    pub fn wait(&mut self, warp: Warp, lanes: u32, waited: Waited) {
        let Waited { left, bulk, reads } = waited;
        for me in barrier::threads(warp, lanes) {
            let mut done = Vec::new();
            if let Some(groups) = self.copies.groups.get_mut(&(me, bulk)) {
                let over = groups
                    .closed
                    .len()
                    .saturating_sub(left.unwrap_or(0) as usize);
                if reads {
                    let over = groups.closed.iter_mut().take(over).flatten();
                    done.extend(over.map(Copy::take_reads));
                } else {
                    done.extend(groups.closed.drain(..over).flatten());
                }
                if left.is_none() {
                    done.append(&mut groups.open);
                }
            }
            let now = Epoch {
                thread: me,
                time: self.knows(me, me),
            };
            let mut learned = Sparse::default();
            for copy in done {
                match copy.maker {
                    Some(by) => learned.raise(by.thread, by.time),
                    None => self.finish(me, &copy, now),
                }
                if let Some(by) = copy.reducer {
                    learned.raise(by.thread, by.time);
                }
            }
            if let (false, Some(cta)) = (learned.is_empty(), self.ctas.get_mut(&me.cta)) {
                let lanes = cta.lanes(me.warp);
                lanes.update(1 << me.lane, |view, _| view.times.rest.join(&learned));
                self.classify(me.warp());
            }
        }
    }

    /// The copies of a thread that end with its groups make it arrive at an asynchronous barrier
    /// when they are complete (`cp.async.mbarrier.arrive`). `completes` when that ends the phase.
    ///
    /// This arrival is ordered behind these copies and behind nothing else that the thread has done
    /// (PTX ISA, "Asynchronous Operations").
    pub fn copies_arrive(&mut self, me: Thread, at: Location, completes: bool) {
        self.enter(me.warp());
        let Copies {
            groups,
            makers,
            count,
            last,
        } = &mut self.copies;
        let mut known = Sparse::default();
        let mut pending = Vec::new();
        if let Some(Groups { open, closed }) = groups.get_mut(&(me, false)) {
            *count += 1;
            *last = None;
            let maker = Epoch {
                thread: makers.of(
                    me,
                    Role::Copies {
                        barrier: at.key(),
                        groups: true,
                    },
                ),
                time: *count,
            };
            for copy in closed.iter_mut().flatten().chain(open) {
                match copy.maker {
                    // It is known by the barrier that it ended with first, too.
                    Some(by) => known.raise(by.thread, by.time),
                    None => {
                        copy.maker = Some(maker);
                        known.raise(maker.thread, maker.time);
                        pending.push(copy.clone());
                    }
                }
            }
        }
        for copy in &pending {
            if let Some(maker) = copy.maker {
                self.finish(me, copy, maker);
            }
        }
        if self.follows_phases
            && let Some(cta) = self.ctas.get_mut(&me.cta)
        {
            let clocks = cta.lanes(me.warp);
            clocks.raise(1 << me.lane, self.now);
            let times = &clocks.view(me.lane).times;
            known.raise(self.copies.issues(me), times.own);
            let of_cta = |key: u64| matches!(Location::of(key), Location::Shared { cta, .. } if cta == me.cta);
            let mbarriers = self.mbarriers.iter().filter(|&(&key, _)| of_cta(key));
            for ends in mbarriers.filter_map(|(_, phases)| phases.ends) {
                let over = times.get(me, ends);
                if over > 0 {
                    known.raise(self.copies.issues(ends), over);
                }
            }
            clocks.update(1 << me.lane, |view, _| view.times.own += 1);
            self.classify(me.warp());
        }
        self.copies_at(me, at, Scope::Cta, &known);
        if completes {
            self.mbarrier_complete(at);
        }
    }

    /// From now on a copy's accesses are those of a thread, at a time.
    fn finish(&mut self, issuer: Thread, copy: &Copy, by: Epoch) {
        for (words, writes) in copy.words.iter().zip([false, true]) {
            let Some(words) = words else { continue };
            let part = Part {
                issuer,
                copy: copy.number,
                writes,
            };
            let history = self.memory.of(Location::of(words.start() * WORD));
            history.complete(words.clone(), part, by);
        }
    }
}

impl Copy {
    /// The part of it that has read its source.
    fn take_reads(&mut self) -> Self {
        Self {
            number: self.number,
            words: [self.words[0].take(), None],
            maker: self.maker,
            reducer: None,
        }
    }
}
