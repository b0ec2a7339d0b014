//! The interpreter's loop, and which split of a warp runs.
//!
//! Policy: of the splits that can run, the one deepest in calls, then the one at the lowest op,
//! runs until it reaches the place of another one. Since compilers lay out code in topological
//! order, that is where the lanes meet again. A split that keeps the others waiting runs out of
//! patience, sooner when it spins ([`super::spin`]); then the others get a turn, so that a lock
//! that a waiting lane holds is released. A split that sleeps (`nanosleep`) leaves out turns of its warp;
//! one that sleeps for no time ends its warp's turn.

use events::{Executing, Misuse};

use super::address::lanes;
use super::barriers::{Arrival, Barriers, Exit};
use super::cta::CtaId;
use super::fault::{self, Fault, FaultKind};
use super::listener::Listener;
use super::machine::Machine;
use super::split_scheduler::{MAX_WAIT, SplitScheduler};
use super::warp::{Split, State, Warp};
use crate::code::{BarrierKind, Kind, MbarrierKind};
use crate::config::Schedule;
use crate::error::LaunchError;
use crate::lanes::only;
use random::Random;

/// As how many ops one that spins ([`super::spin`]) counts among the splits of a warp.
const SPIN: u64 = 512;
/// The same among warps: a warp that waits for another one should not use up whole turns.
const SPIN_FUEL: u64 = 128;

/// Ops between two looks at whether the launch is to end.
const LOOKS: u64 = 256;

/// As how many nanoseconds a turn of a warp counts for those that sleep.
const SLEEP_TURN: u64 = 128;
/// Turns that are slept on, at most.
const MOST_SLEEP: u64 = 64;

/// What a warp's time was spent on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ran {
    /// Ops executed.
    pub(crate) ops: u64,
    /// True when other warps of the CTA may have become able to run.
    pub(crate) wake: bool,
    /// True when other CTAs of the cluster may have.
    pub(crate) wake_cluster: bool,
}

/// Why a split stopped.
pub(super) enum Stop {
    /// Out of fuel or patience, or at the place of another split.
    Pause,
    /// Lets other warps go first.
    Yield,
    /// Waits, as its state says; or its op needs lanes that are elsewhere.
    Blocked,
    /// All its lanes have exited.
    Gone,
}

/// How long a split may run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Ops that it may execute.
    pub(super) fuel: u64,
    /// What it has taken of its turn.
    pub(super) spent: u64,
}

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// Runs a warp for at most `fuel` ops.
    pub(crate) fn run_warp(
        &mut self,
        cta: &CtaId,
        barriers: &mut Barriers,
        warp: &mut Warp,
        fuel: u64,
        random: &mut Option<Random>,
    ) -> Result<Ran, Box<LaunchError>> {
        let mut ran = Ran::default();
        for split in &mut warp.splits {
            split.asleep = split.asleep.saturating_sub(1);
        }
        let mut left = fuel;
        while left > 0 {
            let Some(index) = self.pick(cta, barriers, warp, random) else {
                // Time goes by for those that sleep.
                let sleeps = warp.splits.iter().any(|split| split.asleep > 0);
                warp.blocked = !sleeps;
                ran.ops += u64::from(sleeps);
                break;
            };
            let mut split = warp.splits.swap_remove(index);
            let mut budget = Budget {
                fuel: left,
                spent: 0,
            };
            let stop = self.run_split(cta, barriers, warp, &mut split, &mut budget, &mut ran);
            ran.ops += left - budget.fuel;
            left = budget.fuel;
            warp.clock += budget.spent;
            split.turn = warp.clock;
            match stop {
                Ok(Stop::Gone) => {}
                Ok(Stop::Pause | Stop::Blocked) => warp.splits.push(split),
                Ok(Stop::Yield) => {
                    warp.splits.push(split);
                    break;
                }
                Err(fault) => return Err(self.failed(cta, warp, split.pc, *fault)),
            }
        }
        Ok(ran)
    }

    #[cold]
    fn failed(&self, cta: &CtaId, warp: &Warp, pc: u32, fault: Fault) -> Box<LaunchError> {
        let setup = &self.setup;
        let lane = fault.lane;
        let at = fault::place(
            setup.module,
            setup.program,
            setup.kernel,
            pc,
            cta,
            warp,
            lane,
        );
        Box::new(fault::error(fault, at))
    }

    /// The split to run next, after letting those go on that have waited long enough.
    pub(super) fn pick(
        &mut self,
        cta: &CtaId,
        barriers: &Barriers,
        warp: &mut Warp,
        random: &mut Option<Random>,
    ) -> Option<usize> {
        for index in 0..warp.splits.len() {
            self.resume(cta, barriers, warp, index);
        }
        if warp.splits.len() > 1 {
            warp.join();
        }
        let first = warp.splits.first()?;
        if warp.splits.len() == 1 && first.is_ready() {
            return Some(0);
        }
        if warp.splits.iter().any(|split| split.state == State::Warp) {
            self.exchange_waiting(cta, warp);
        }
        let candidates = || {
            let all = warp.splits.iter().enumerate();
            all.filter(|(_, split)| split.is_ready())
        };
        let count = candidates().count();
        let drawn = random.as_mut().filter(|_| count > 1).and_then(|random| {
            let lucky = random.index(8) == 0;
            lucky.then(|| random.index(count))
        });
        let chosen = match drawn {
            Some(drawn) => candidates().nth(drawn),
            None => {
                let oldest = candidates().min_by_key(|(_, split)| (split.turn, split.pc));
                let starves = |(_, split): &(usize, &Split)| warp.clock - split.turn >= MAX_WAIT;
                oldest.filter(starves).or_else(|| {
                    candidates()
                        .min_by_key(|(_, split)| (std::cmp::Reverse(split.callers.len()), split.pc))
                })
            }
        };
        chosen.map(|(index, _)| index)
    }

    /// Lets a split go on when what it waited for has happened.
    pub(super) fn resume(
        &mut self,
        cta: &CtaId,
        barriers: &Barriers,
        warp: &mut Warp,
        index: usize,
    ) {
        let program = self.setup.program;
        let clock = warp.clock;
        let split = &mut warp.splits[index];
        match split.state {
            State::Ready | State::Warp => {}
            State::Cluster { phase } => {
                if self.clusters[cta.first_slot as usize].phase > phase {
                    split.state = State::Ready;
                    split.turn = clock;
                    split.pc += 1;
                    let (pc, lanes) = (split.pc - 1, split.mask);
                    warp.cluster_arrived &= !lanes;
                    let threads = self.executing(cta, warp.index, pc, lanes);
                    self.observer.cluster_wait(threads, phase);
                }
            }
            State::Cta { id, generation } => {
                if !barriers.is_over(id, generation) {
                    return;
                }
                if self.follows_values() {
                    self.follow_result(cta, warp, index);
                }
                let split = &mut warp.splits[index];
                split.state = State::Ready;
                split.turn = clock;
                let op = &program.ops[split.pc as usize];
                split.pc += 1;
                let Kind::Barrier(barrier) = &op.kind else {
                    return;
                };
                let (frame, mask) = (split.frame, split.mask);
                let found = barriers.result(id, generation);
                let holds = match barrier.kind {
                    BarrierKind::Sync | BarrierKind::Arrive => return,
                    BarrierKind::Popc => {
                        let mut rows = warp.rows(&frame, &program.consts);
                        rows.splat(barrier.d, mask, u64::from(found.holds));
                        return;
                    }
                    BarrierKind::And => found.holds == found.threads,
                    BarrierKind::Or => found.holds > 0,
                };
                let mut rows = warp.rows(&frame, &program.consts);
                rows.put_pred(barrier.d, mask, if holds { u32::MAX } else { 0 });
            }
        }
    }

    /// Runs a split, which has been taken out of its warp.
    pub(super) fn run_split(
        &mut self,
        cta: &CtaId,
        barriers: &mut Barriers,
        warp: &mut Warp,
        split: &mut Split,
        budget: &mut Budget,
        ran: &mut Ran,
    ) -> Result<Stop, Box<Fault>> {
        let program = self.setup.program;
        // Under a seed all strong accesses and fences count as if they did, so that turns end behind them, and orders vary.
        let spins = self.setup.launch.schedule != Schedule::RoundRobin;
        // Recomputed whenever the other splits change.
        let mut scheduler = SplitScheduler::new(warp, split);
        loop {
            if budget.fuel == 0 {
                return Ok(Stop::Pause);
            }
            if scheduler.contested {
                if scheduler.reached(warp, split) {
                    return Ok(Stop::Pause);
                }
                if budget.spent >= scheduler.time_slice {
                    return Ok(Stop::Pause);
                }
            }
            budget.fuel -= 1;
            budget.spent += 1;
            // An op may take long where somebody listens.
            if budget.fuel.is_multiple_of(LOOKS) && self.over().is_some() {
                budget.fuel = 0;
                return Ok(Stop::Pause);
            }
            let op = &program.ops[split.pc as usize];
            let exec = split.mask & warp.pred(&split.frame, op.guard);
            if op.counts {
                self.stats.warp_instructions += 1;
                self.stats.thread_instructions += match exec {
                    u32::MAX => 32,
                    one if only(one).is_some() => 1,
                    some => u64::from(some.count_ones()),
                };
            }
            if self.follows_values() {
                self.follow(cta, warp, split, op, exec);
            }
            if exec == 0 {
                split.pc += 1;
                continue;
            }
            match &op.kind {
                Kind::Alu(f, args) => {
                    // Lanes that no longer exist, or never did, may be overwritten.
                    let all = exec == warp.live && only(exec).is_none();
                    let mask = if all { u32::MAX } else { exec };
                    f(&mut warp.rows(&split.frame, &program.consts), args, mask);
                }
                Kind::Load(access) if access.strong => {
                    self.tally.add(split.pc, exec);
                    self.stats.device_fences += u64::from(op.fences);
                    let at = warp.digest(split, access.address.base, &program.consts, exec);
                    self.load(cta, warp, split, access, exec)?;
                    if warp.repeats(split, exec, at, &access.rows) || spins {
                        budget.spin();
                    }
                }
                Kind::Load(access) => {
                    self.tally.add(split.pc, exec);
                    self.load(cta, warp, split, access, exec)?;
                }
                Kind::Store(access) => {
                    self.tally.add(split.pc, exec);
                    self.stats.device_fences += u64::from(op.fences);
                    self.store(cta, warp, split, access, exec)?;
                    if access.strong && spins {
                        budget.spin();
                    }
                }
                Kind::Branch(target) => {
                    if O::LISTENS {
                        let threads = self.executing(cta, warp.index, split.pc, exec);
                        self.observer.jump(threads);
                    }
                    if exec == split.mask {
                        split.pc = *target;
                        split.came = *target;
                    } else {
                        let mut other = split.clone();
                        split.mask &= !exec;
                        split.pc += 1;
                        other.mask = exec;
                        other.pc = *target;
                        other.came = *target;
                        other.turn = warp.clock + budget.spent;
                        warp.splits.push(other);
                        return Ok(Stop::Pause);
                    }
                    continue;
                }
                Kind::Param { d, offset, load } => {
                    let raw = self.parameter(*offset, load.bytes);
                    warp.rows(&split.frame, &program.consts)
                        .splat(*d, exec, load.extend(raw));
                }
                Kind::Special(d, special) => {
                    let row = (split.frame.rows + d) as usize;
                    self.special(*special, cta, warp, row, exec);
                }
                Kind::FrameAddress { d, offset } => {
                    let value = u64::from(split.frame.local + offset);
                    warp.rows(&split.frame, &program.consts)
                        .splat(*d, exec, value);
                }
                Kind::Atomic(atomic) => {
                    self.tally.add(split.pc, exec);
                    self.stats.device_fences += u64::from(op.fences);
                    let at = warp.digest(split, atomic.address.base, &program.consts, exec);
                    self.atomic(cta, warp, split, atomic, exec)?;
                    let looks = !atomic.results.is_empty();
                    if looks && warp.repeats(split, exec, at, &atomic.results) || spins {
                        budget.spin();
                    }
                }
                Kind::Copy(copy) => {
                    self.tally.add(split.pc, exec);
                    self.copy(cta, warp, split, copy, exec)?;
                }
                Kind::AsyncStore(store) => {
                    self.tally.add(split.pc, exec);
                    self.async_store(cta, warp, split, store, exec)?;
                }
                Kind::Texture(texture) => {
                    self.tally.add(split.pc, exec);
                    self.texture(cta, warp, split, texture, exec)?;
                }
                Kind::Surface(surface) => {
                    self.tally.add(split.pc, exec);
                    self.surface(cta, warp, split, surface, exec)?;
                }
                Kind::Matrix(matrix) => {
                    self.tally.add(split.pc, exec);
                    self.matrix(cta, warp, split, matrix, exec)?;
                }
                Kind::Mbarrier(mbarrier) => {
                    self.mbarrier(cta, warp, split, mbarrier, exec)?;
                    let result = match mbarrier.kind {
                        MbarrierKind::TestWait { .. } => mbarrier.d,
                        _ => None,
                    };
                    let repeats = result.is_some_and(|d| {
                        let row = mbarrier.address.base;
                        let at = warp.digest(split, row, &program.consts, exec);
                        let holds = warp.pred(&split.frame, 2 * d) & exec;
                        holds != exec && warp.repeats(split, exec, at ^ u64::from(holds), &[])
                    });
                    if repeats || spins {
                        budget.spin();
                    }
                }
                Kind::IsSpace { d, address, space } => {
                    self.is_space(warp, split, *d, *address, *space, exec);
                }
                Kind::Map(map) => self.map(warp, split, map, exec),
                Kind::Rank(rank) => self.rank(cta, warp, split, rank, exec),
                Kind::ActiveMask(d) => {
                    warp.rows(&split.frame, &program.consts)
                        .splat(*d, exec, u64::from(exec));
                }
                Kind::Fence => {
                    self.stats.device_fences += u64::from(op.fences);
                    if self.memory.locks().is_some() {
                        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                    }
                    let threads = self.executing(cta, warp.index, split.pc, exec);
                    self.observer.fence(threads);
                    if spins {
                        budget.spin();
                    }
                }
                Kind::Copies => {
                    let threads = self.executing(cta, warp.index, split.pc, exec);
                    self.observer.copies(threads);
                }
                Kind::Dependency => {
                    let threads = self.executing(cta, warp.index, split.pc, exec);
                    self.observer.dependency(threads);
                }
                Kind::Nop => {}
                Kind::Sleep(time) => {
                    let times = warp.read(&split.frame, *time, &program.consts);
                    let longest = lanes(exec).map(|lane| times[lane]).max().unwrap_or(0);
                    split.pc += 1;
                    if longest == 0 {
                        return Ok(Stop::Yield);
                    }
                    split.asleep = (longest / SLEEP_TURN).min(MOST_SLEEP) as u32 + 1;
                    return Ok(Stop::Pause);
                }
                // What follows acts on whole splits: lanes whose guard fails go their own way.
                _ if exec != split.mask => {
                    let mut other = split.clone();
                    other.mask = split.mask & !exec;
                    other.pc += 1;
                    other.turn = warp.clock + budget.spent;
                    split.mask = exec;
                    warp.splits.push(other);
                    // Counted again, and executed, with the mask it has now.
                    budget.fuel += 1;
                    if op.counts {
                        self.stats.warp_instructions -= 1;
                        self.stats.thread_instructions -= u64::from(exec.count_ones());
                    }
                    scheduler = scheduler.again(warp, split);
                    continue;
                }
                Kind::Allocate { d, bytes, align } => {
                    self.allocate(warp, split, *d, *bytes, *align)?;
                }
                Kind::StackSave(d) => self.save_stack(warp, split, *d),
                Kind::StackRestore(a) => self.restore_stack(warp, split, *a),
                Kind::BranchIndexed { index, targets } => {
                    self.branch_indexed(warp, split, *index, targets)?;
                    scheduler = scheduler.again(warp, split);
                    continue;
                }
                Kind::Call(call) => {
                    self.call(cta, warp, split, call)?;
                    scheduler = scheduler.again(warp, split);
                    continue;
                }
                Kind::Return if !split.callers.is_empty() => {
                    self.return_from(warp, split);
                    scheduler = scheduler.again(warp, split);
                    continue;
                }
                Kind::Return | Kind::Exit => {
                    self.exit(cta, barriers, warp, split, ran);
                    return Ok(Stop::Gone);
                }
                Kind::Trap => {
                    return Err(Fault::new(split.mask.trailing_zeros(), FaultKind::Trap));
                }
                Kind::Unsupported(what) => {
                    let lane = split.mask.trailing_zeros();
                    return Err(Fault::new(lane, FaultKind::Unsupported(what.to_string())));
                }
                Kind::Exchange(exchange) => {
                    if self.is_complete(warp, split, exchange) {
                        self.exchange_alone(cta, warp, split, exchange);
                    } else {
                        split.state = State::Warp;
                        return Ok(Stop::Blocked);
                    }
                }
                Kind::Barrier(barrier) => {
                    if !self.arrive(cta, barriers, warp, split, barrier, ran)? {
                        return Ok(Stop::Blocked);
                    }
                    scheduler = scheduler.again(warp, split);
                    continue;
                }
                Kind::ClusterBarrier { arrive } => {
                    let barrier = &mut self.clusters[cta.first_slot as usize];
                    let first = split.mask.trailing_zeros() as usize;
                    if *arrive {
                        let phase = barrier.phase;
                        barrier.arrived += split.mask.count_ones();
                        barrier.settle();
                        ran.wake_cluster |= barrier.phase > phase;
                        for lane in (0..32).filter(|lane| split.mask >> lane & 1 == 1) {
                            warp.cluster_phase[lane] = phase;
                        }
                        let again = warp.cluster_arrived & split.mask;
                        warp.cluster_arrived |= split.mask;
                        let threads = self.executing(cta, warp.index, split.pc, split.mask);
                        self.observer.cluster_arrive(threads, phase);
                        if again != 0 {
                            let threads = Executing {
                                lanes: again,
                                ..threads
                            };
                            self.observer.misuse(threads, Misuse::Again, threads.offset);
                        }
                    } else {
                        let phase = warp.cluster_phase[first];
                        let over = barrier.phase > phase;
                        // Lanes that have met here may have arrived in different phases.
                        let later = (0..32).filter(|&lane| warp.cluster_phase[lane] != phase);
                        let later = split.mask & later.fold(0, |lanes, lane| lanes | 1 << lane);
                        if later != 0 {
                            let mut other = split.clone();
                            other.mask = later;
                            other.turn = warp.clock + budget.spent;
                            split.mask &= !later;
                            warp.splits.push(other);
                            scheduler = scheduler.again(warp, split);
                        }
                        if !over {
                            split.state = State::Cluster { phase };
                            return Ok(Stop::Blocked);
                        }
                        warp.cluster_arrived &= !split.mask;
                        let threads = self.executing(cta, warp.index, split.pc, split.mask);
                        self.observer.cluster_wait(threads, phase);
                    }
                }
            }
            split.pc += 1;
        }
    }

    /// Arrives at a CTA barrier. False when the split has to wait.
    fn arrive(
        &mut self,
        cta: &CtaId,
        barriers: &mut Barriers,
        warp: &mut Warp,
        split: &mut Split,
        barrier: &crate::code::Barrier,
        ran: &mut Ran,
    ) -> Result<bool, Box<Fault>> {
        let consts = &self.setup.program.consts;
        let lane = split.mask.trailing_zeros();
        let ids = warp.read(&split.frame, barrier.id, consts);
        let id = ids[lane as usize];
        // Lanes with another number arrive there on their own.
        let same = (0..32).filter(|&other| ids[other] == id);
        let lanes = split.mask & same.fold(0, |lanes, other| lanes | 1 << other);
        if lanes != split.mask {
            let mut other = split.clone();
            other.mask = split.mask & !lanes;
            split.mask = lanes;
            warp.splits.push(other);
        }
        if id >= 16 {
            let what = format!("barrier number {id}");
            return Err(Fault::new(lane, FaultKind::Unsupported(what)));
        }
        let count = barrier
            .count
            .map(|count| warp.read(&split.frame, count, consts)[lane as usize]);
        let id = id as u8;
        let generation = barriers.generation(id);
        let waits = barrier.kind != BarrierKind::Arrive;
        let threads = self.executing(cta, warp.index, split.pc, lanes);
        self.observer.arrive(threads, u32::from(id), waits);
        let arrival = Arrival {
            id,
            warp: warp.index,
            lanes,
            count: count.map(|count| count as u32),
            holds: warp.pred(&split.frame, barrier.predicate),
            aligned_at: barrier.aligned.then_some(split.pc),
            at: split.pc,
        };
        if let Some((misuse, at)) = barriers.misuse(&arrival) {
            let offset = self.executing(cta, warp.index, at, lanes).offset;
            self.observer.misuse(threads, misuse, offset);
        }
        let done = barriers.arrive(arrival);
        if done {
            self.completes(cta, barriers, id);
            ran.wake = true;
        }
        if waits {
            split.state = State::Cta { id, generation };
            return Ok(false);
        }
        split.pc += 1;
        Ok(true)
    }

    /// A barrier completes, perhaps without threads that have exited.
    fn completes(&mut self, cta: &CtaId, barriers: &Barriers, id: u8) {
        if let Some(came) = barriers.lacked_threads(id) {
            let threads = self.executing(cta, came.warp, came.at, came.lanes);
            let misuse = self.without_threads(barriers, came.at);
            self.observer.misuse(threads, misuse, threads.offset);
        }
        self.observer.complete(cta.linear, u32::from(id));
    }

    /// The lanes of a split end.
    fn exit(
        &mut self,
        cta: &CtaId,
        barriers: &mut Barriers,
        warp: &mut Warp,
        split: &Split,
        ran: &mut Ran,
    ) {
        let threads = self.executing(cta, warp.index, split.pc, split.mask);
        self.observer.exit(threads);
        warp.live &= !split.mask;
        let way = Exit {
            came: split.came,
            pc: split.pc,
        };
        for id in barriers.exit(warp.index, split.mask, way) {
            self.completes(cta, barriers, id);
        }
        let cluster = &mut self.clusters[cta.first_slot as usize];
        cluster.live -= split.mask.count_ones().min(cluster.live);
        cluster.settle();
        ran.wake = true;
        ran.wake_cluster = true;
    }
}

impl Budget {
    /// Counts an op that spins as several.
    fn spin(&mut self) {
        self.spent += SPIN;
        self.fuel = self.fuel.saturating_sub(SPIN_FUEL);
    }
}
