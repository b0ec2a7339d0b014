//! Happens-before with one number per pair of threads and every event that ever happened.

use std::collections::{BTreeSet, HashMap};

use shadow::hb::{Access, FenceKind, LANES, MemoryOrder, OpKind, Scope, Strength, Thread, Warp};

use super::{PER_CTA, SHAPE, THREADS};

/// A release pattern or a fence: who, in which scope, and what was known.
#[derive(Clone)]
pub(crate) struct Head {
    pub(crate) thread: usize,
    pub(crate) scope: Scope,
    pub(crate) clock: Vec<u32>,
    /// Address and bytes of a release operation.
    pub(crate) operation: Option<(u64, u32)>,
}

impl Head {
    pub(crate) fn party(&self) -> Party {
        party(self.thread, self.scope)
    }
}

/// Who does something strong, in which scope.
#[derive(Clone, Copy)]
pub(crate) struct Party {
    pub(crate) thread: usize,
    pub(crate) scope: Scope,
}

fn party(thread: usize, scope: Scope) -> Party {
    Party { thread, scope }
}

struct Done {
    pub(crate) thread: usize,
    time: u32,
    access: Access,
    address: u64,
    heads: Vec<Head>,
    /// What came before its thread by program order and barriers alone.
    near: Vec<u32>,
    /// The writes that come before it in observation order; they come before whatever it comes
    /// before.
    pub(crate) observed: Vec<usize>,
}

pub(crate) struct Judge {
    pub(crate) clocks: Vec<Vec<u32>>,
    done: Vec<Done>,
    /// Releases of each thread: fences and operations.
    pub(crate) released: Vec<Vec<Head>>,
    /// What strong reads of each thread have observed: address and heads.
    pub(crate) observed: Vec<Vec<(u64, Vec<Head>)>>,
    sc: Vec<Head>,
    /// What comes before a thread by program order and barriers alone.
    near: Vec<Vec<u32>>,
    /// The fences of kind `ScForced`.
    forced: Vec<Head>,
    pub(crate) exited: Vec<bool>,
    /// By write: the threads whose loads have observed it, and when.
    seen: HashMap<usize, Vec<(usize, u32)>>,
    /// Arrivals of the current phase, and of those before.
    pub(crate) arrivals: [Vec<Head>; 2],
}

pub(crate) fn index(thread: Thread) -> usize {
    thread.cta as usize * PER_CTA + (thread.warp * LANES + thread.lane) as usize
}

pub(crate) fn thread(index: usize) -> Thread {
    let inside = (index % PER_CTA) as u32;
    Thread {
        cta: (index / PER_CTA) as u64,
        warp: inside / LANES,
        lane: inside % LANES,
    }
}

pub(crate) fn mutual(a: Party, b: Party) -> bool {
    let includes = |scope, of: usize, other: usize| match scope {
        Scope::Cta => of / PER_CTA == other / PER_CTA,
        Scope::Cluster => of / PER_CTA / 2 == other / PER_CTA / 2,
        Scope::Gpu | Scope::Sys => true,
    };
    includes(a.scope, a.thread, b.thread) && includes(b.scope, b.thread, a.thread)
}

fn strength(order: MemoryOrder) -> Strength {
    match order {
        MemoryOrder::Weak => Strength::Weak,
        MemoryOrder::ReadOnly => Strength::ReadOnly,
        MemoryOrder::Relaxed(scope)
        | MemoryOrder::Acquire(scope)
        | MemoryOrder::Release(scope)
        | MemoryOrder::AcqRel(scope) => Strength::Strong(scope),
    }
}

fn join(into: &mut [u32], from: &[u32]) {
    into.iter_mut()
        .zip(from)
        .for_each(|(a, b)| *a = (*a).max(*b));
}

pub(crate) fn members(warp: Warp, lanes: u32) -> Vec<usize> {
    (0..SHAPE.threads)
        .map(|number| Thread {
            cta: warp.cta,
            warp: number / LANES,
            lane: number % LANES,
        })
        .filter(|thread| thread.warp == warp.warp && lanes >> thread.lane & 1 == 1)
        .map(index)
        .collect()
}

impl Judge {
    pub(crate) fn new() -> Self {
        Self {
            clocks: vec![vec![0; THREADS]; THREADS],
            done: Vec::new(),
            released: vec![Vec::new(); THREADS],
            observed: vec![Vec::new(); THREADS],
            sc: Vec::new(),
            near: vec![vec![0; THREADS]; THREADS],
            forced: Vec::new(),
            exited: vec![false; THREADS],
            seen: HashMap::new(),
            arrivals: Default::default(),
        }
    }

    /// Words of the access that race with an earlier access.
    pub(crate) fn access(&mut self, me: usize, access: &Access, address: u64) -> Vec<u64> {
        self.tick(me);
        let mut racy: Vec<u64> = Vec::new();
        let end = address + u64::from(access.bytes);
        for (number, old) in self.done.iter().enumerate() {
            let old_end = old.address + u64::from(old.access.bytes);
            let shared: Vec<u64> = (address.max(old.address)..end.min(old_end)).collect();
            let writes = |access: &Access| access.kind != OpKind::Load;
            if shared.is_empty() || !(writes(access) || writes(&old.access)) {
                continue;
            }
            let read_only =
                access.order == MemoryOrder::ReadOnly || old.access.order == MemoryOrder::ReadOnly;
            if !read_only {
                if old.thread == me || old.time <= self.clocks[me][old.thread] {
                    continue;
                }
                if let (Strength::Strong(a), Strength::Strong(b)) =
                    (strength(access.order), strength(old.access.order))
                    && (address, access.bytes) == (old.address, old.access.bytes)
                    && mutual(party(me, a), party(old.thread, b))
                {
                    continue;
                }
                let mut seen = self.seen.get(&number).into_iter().flatten();
                if seen.any(|&(by, time)| by == me || time <= self.clocks[me][by]) {
                    continue;
                }
            }
            racy.extend(shared.iter().map(|byte| byte / 4));
        }
        racy.sort_unstable();
        racy.dedup();
        let before = self.observes(me, access, address);
        let heads = self.order(me, access, address);
        let mut observed = Vec::new();
        if let Some(write) = before.filter(|_| access.kind != OpKind::Store) {
            observed.push(write);
            if matches!(
                self.done[write].access.kind,
                OpKind::Rmw | OpKind::Reduction
            ) {
                observed.extend(&self.done[write].observed);
            }
            if access.kind != OpKind::Reduction {
                for &write in &observed {
                    let seen = self.seen.entry(write).or_default();
                    seen.push((me, self.clocks[me][me]));
                }
            }
        }
        self.done.push(Done {
            observed,
            thread: me,
            time: self.clocks[me][me],
            access: *access,
            address,
            heads,
            near: self.near[me].clone(),
        });
        racy
    }

    /// The thread's own time goes up.
    fn tick(&mut self, me: usize) {
        self.clocks[me][me] += 1;
        self.near[me][me] = self.clocks[me][me];
    }

    /// The clocks of the fences that come before a thread's next one in every run: a read that comes before it by
    /// barriers has observed a write that comes after them by barriers.
    fn before_fence(&self, me: usize) -> Vec<Vec<u32>> {
        let near = &self.near[me];
        let reads = self.done.iter().filter(|read| {
            matches!(read.access.kind, OpKind::Load | OpKind::Rmw) && read.time <= near[read.thread]
        });
        let writes: BTreeSet<usize> = reads.flat_map(|read| read.observed.clone()).collect();
        let seen = |fence: &&Head| {
            let time = fence.clock[fence.thread];
            let mut writes = writes.iter();
            writes.any(|&write| self.done[write].near[fence.thread] >= time)
        };
        let fences = self.forced.iter().filter(seen);
        fences.map(|fence| fence.clock.clone()).collect()
    }

    /// The write that the access observes, if it is morally strong with it.
    pub(crate) fn observes(&self, me: usize, access: &Access, address: u64) -> Option<usize> {
        let Strength::Strong(scope) = strength(access.order) else {
            return None;
        };
        let last = |byte: u64| {
            self.done.iter().rposition(|old| {
                old.access.kind != OpKind::Load
                    && (old.address..old.address + u64::from(old.access.bytes)).contains(&byte)
            })
        };
        let first = last(address)?;
        let old = &self.done[first];
        let whole = (address..address + u64::from(access.bytes)).all(|b| last(b) == Some(first));
        let same = (old.address, old.access.bytes) == (address, access.bytes);
        let Strength::Strong(theirs) = strength(old.access.order) else {
            return None;
        };
        let strong = old.thread == me || mutual(party(old.thread, theirs), party(me, scope));
        (whole && same && strong).then_some(first)
    }

    pub(crate) fn join_releases(&mut self, me: usize, scope: Scope, heads: &[Head]) {
        for head in heads {
            if mutual(head.party(), party(me, scope)) {
                join(&mut self.clocks[me], &head.clock);
            }
        }
    }

    pub(crate) fn order(&mut self, me: usize, access: &Access, address: u64) -> Vec<Head> {
        let (scope, acquires, releases) = match access.order {
            MemoryOrder::Weak | MemoryOrder::ReadOnly => return Vec::new(),
            MemoryOrder::Relaxed(scope) => (scope, false, false),
            MemoryOrder::Acquire(scope) => (scope, true, false),
            MemoryOrder::Release(scope) => (scope, false, true),
            MemoryOrder::AcqRel(scope) => (scope, true, true),
        };
        let mut heads = Vec::new();
        let observed = self.observes(me, access, address);
        if matches!(access.kind, OpKind::Load | OpKind::Rmw) {
            if let Some(old) = observed {
                let heads = self.done[old].heads.clone();
                self.observed[me].push((address, heads));
            }
            if acquires {
                let all = self.observed[me].clone();
                for (_, heads) in all.iter().filter(|(at, _)| *at == address) {
                    self.join_releases(me, scope, heads);
                }
            }
        }
        if access.kind != OpKind::Load {
            if let Some(old) = observed.filter(|_| access.kind != OpKind::Store) {
                heads.extend(self.done[old].heads.iter().cloned());
            }
            if releases {
                let clock = self.clocks[me].clone();
                self.released[me].push(Head {
                    thread: me,
                    scope,
                    clock,
                    operation: Some((address, access.bytes)),
                });
            }
            let here = (address, access.bytes);
            let mine = self.released[me].iter();
            heads.extend(
                mine.filter(|head| head.operation.is_none_or(|at| at == here))
                    .cloned(),
            );
        }
        heads
    }

    pub(crate) fn fence(&mut self, lanes: &[usize], kind: FenceKind, scope: Scope) {
        for &me in lanes {
            self.tick(me);
            if kind != FenceKind::Release {
                for (_, heads) in self.observed[me].clone() {
                    self.join_releases(me, scope, &heads);
                }
            }
            if kind == FenceKind::Sc {
                let sc = self.sc.clone();
                self.join_releases(me, scope, &sc);
            }
            if kind == FenceKind::ScForced && scope >= Scope::Gpu {
                for clock in self.before_fence(me) {
                    join(&mut self.clocks[me], &clock);
                }
            }
        }
        for &me in lanes {
            let head = Head {
                thread: me,
                scope,
                clock: self.clocks[me].clone(),
                operation: None,
            };
            if kind == FenceKind::Sc {
                self.sc.push(head.clone());
            }
            if kind == FenceKind::ScForced && scope >= Scope::Gpu {
                self.forced.push(head.clone());
            }
            if kind != FenceKind::Acquire {
                self.released[me].push(head);
            }
        }
    }

    /// What an arrival at an asynchronous barrier, or at that of a cluster, publishes. The threads that its
    /// scope includes may be in its CTA, or anywhere in its cluster.
    pub(crate) fn arrive(&mut self, me: usize, order: MemoryOrder) -> Vec<Head> {
        let MemoryOrder::Relaxed(scope) = order else {
            self.tick(me);
            return vec![Head {
                thread: me,
                scope: order.scope().expect("a release has one"),
                clock: self.clocks[me].clone(),
                operation: None,
            }];
        };
        let fences = self.released[me].iter();
        fences
            .filter(|head| head.operation.is_none())
            .map(|head| Head {
                scope: scope.min(head.scope),
                ..head.clone()
            })
            .collect()
    }

    /// All of `from` is ordered before all of `to`.
    pub(crate) fn barrier(&mut self, from: &[usize], to: &[usize]) {
        let (mut all, mut near) = (vec![0; THREADS], vec![0; THREADS]);
        for &thread in from {
            self.tick(thread);
            join(&mut all, &self.clocks[thread]);
            join(&mut near, &self.near[thread]);
        }
        for &me in to {
            join(&mut self.clocks[me], &all);
            join(&mut self.near[me], &near);
        }
    }

    /// What comes before a thread by program order and barriers alone.
    pub(crate) fn near(&self, me: usize) -> Vec<u32> {
        self.near[me].clone()
    }

    /// A thread has waited at a barrier of its cluster for threads with these clocks.
    pub(crate) fn meet(&mut self, me: usize, near: &[Vec<u32>]) {
        near.iter().for_each(|near| join(&mut self.near[me], near));
    }
}
