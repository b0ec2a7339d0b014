//! The CTAs of a launch on several threads of the host.
//!
//! Each thread has a machine of its own, with its own resident CTAs and their shared memory, and takes
//! CTAs from a queue. What a CTA does depends on no other CTA then, so neither does it depend on the
//! number of threads. They share the device's memory ([`super::sharing`]).
//!
//! The first thread runs alone until it is likely that others are worth waking ([`super::workers`]).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use events::Unobserved;

use super::deadlock::{MAX_WAITING, Rounds, Staying};
use super::grid::{self, Grid};
use super::machine::Setup;
use super::queue::Queue;
use super::sharing::{Held, Locks};
use super::stuck::Effort;
use super::worker_pool::WorkerPool;
use crate::code::CtaOrder;
use crate::config::{LaunchStats, Schedule};
use crate::error::LaunchError;
use crate::memory::Memory;

/// How early one thread alone would come to something: CTAs run to their ends one after the other,
/// but have shares of time, which are counted in rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) round: u64,
    pub(crate) cta: u64,
}

impl Rank {
    /// Before everything else.
    const FIRST: Self = Self { round: 0, cta: 0 };
}

/// The failure that one thread alone would have come to first.
#[derive(Default)]
pub(crate) struct Failed {
    any: AtomicBool,
    first: Mutex<Option<(Rank, Box<LaunchError>)>>,
}

impl Failed {
    /// Whether the launch has ended before something of that rank.
    #[inline(always)]
    pub(crate) fn is_before(&self, rank: Rank) -> bool {
        self.any.load(Relaxed) && self.ended_before(rank)
    }

    #[cold]
    fn ended_before(&self, rank: Rank) -> bool {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.as_ref().is_some_and(|(first, _)| *first <= rank)
    }

    fn add(&self, rank: Rank, error: Box<LaunchError>) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(first, _)| rank < *first) {
            *first = Some((rank, error));
        }
        self.any.store(true, Relaxed);
    }
}

/// Runs a launch that nobody observes to its end, on several threads where it may.
pub(crate) fn run_unobserved(
    setup: Setup<'_>,
    memory: &mut Memory,
    workers: &mut WorkerPool,
) -> Result<LaunchStats, LaunchError> {
    match may_run(&setup) {
        true => run(setup, memory, workers),
        false => grid::run(setup, memory, &mut Unobserved),
    }
}

/// Whether several threads come to the same as one.
fn may_run(setup: &Setup<'_>) -> bool {
    let launch = setup.launch;
    let ordered = match setup.program.order {
        CtaOrder::Free => false,
        CtaOrder::Communicating => !launch.threads.unordered,
        CtaOrder::Fixed => true,
    };
    launch.threads.most > 1
        && !ordered
        && !launch.cooperative
        && setup.cluster == [1; 3]
        && launch.schedule == Schedule::RoundRobin
        // Which CTA a limit of instructions stops depends on what all have run before.
        && launch.limits.max_warp_instructions.is_none()
}

/// What all threads of a launch share.
struct Team<'a> {
    setup: Setup<'a>,
    memory: &'a Memory,
    locks: Locks,
    queue: Queue,
    failed: Failed,
    /// Resident CTAs, of all threads together.
    resident: u64,
}

/// The CTAs of a thread that has come to the end of what it can do, and whether some of them wait for ever.
type Left<'a> = (Grid<'a, Unobserved>, bool);

fn run(
    setup: Setup<'_>,
    memory: &Memory,
    workers: &mut WorkerPool,
) -> Result<LaunchStats, LaunchError> {
    let team = Team {
        setup,
        memory,
        locks: Locks::new(),
        queue: Queue::new(
            grid::total(setup.launch),
            setup.launch.threads.most as usize,
        ),
        failed: Failed::default(),
        resident: grid::resident(&setup),
    };
    let mut observers = vec![Unobserved; setup.launch.threads.most as usize];
    let mut left = team.run(&mut observers, workers);
    let rounds = team.settle(&mut left);
    let mut stats = LaunchStats {
        resident_ctas: team.resident,
        ..LaunchStats::default()
    };
    let mut waiting = Vec::new();
    let mut staying = Staying::default();
    for ((grid, waits), rounds) in left.iter().zip(&rounds) {
        let part = grid.machine.stats;
        stats.warp_instructions += part.warp_instructions;
        stats.thread_instructions += part.thread_instructions;
        stats.global_sectors += part.global_sectors;
        stats.device_fences += part.device_fences;
        if *waits {
            waiting.extend(grid.waiting(rounds));
        }
        let part = grid.staying();
        staying.ctas.extend(part.ctas);
        staying.exited += part.exited;
    }
    let failed = team.failed.first.lock();
    if let Some((_, error)) = &mut *failed.unwrap_or_else(PoisonError::into_inner) {
        if let LaunchError::Timeout {
            warp_instructions, ..
        } = &mut **error
        {
            *warp_instructions = stats.warp_instructions;
        }
        return Err(*error.clone());
    }
    let Some((grid, _)) = left.first().filter(|_| !waiting.is_empty()) else {
        return Ok(stats);
    };
    waiting.sort_by_key(|&(cta, _)| cta);
    waiting.truncate(MAX_WAITING);
    Err(LaunchError::Deadlock {
        kernel: setup.kernel.to_owned(),
        waiting: waiting.into_iter().map(|(_, group)| group).collect(),
        absent: grid.absent(staying),
    })
}

impl Team<'_> {
    fn run<'a>(
        &'a self,
        observers: &'a mut [Unobserved],
        workers: &mut WorkerPool,
    ) -> Vec<Left<'a>> {
        let threads = self.setup.launch.threads;
        let mut observers = observers.iter_mut();
        let mut next = |thread| Some(self.grid(observers.next()?, thread));
        let Some(mut first) = next(0) else {
            return Vec::new();
        };
        let mut waits = false;
        while !waits && self.queue.left() > 0 && !self.is_long(&first) {
            let executed = first.machine.stats.warp_instructions;
            first.pause_after = executed.saturating_add(threads.after);
            waits = self.work(&mut first);
        }
        first.pause_after = u64::MAX;
        if !self.setup.program.waits {
            // Where CTAs may wait for ever, a deadlock is reported for those that start first.
            self.queue.divide();
        }
        let left = Mutex::new(Vec::new());
        let finish = |mut grid: Grid<'a, _>| {
            let waits = self.work(&mut grid);
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            left.push((grid, waits));
        };
        let finish = &finish;
        // Others for what is left, this thread for what it has begun, also if all of that waits: others
        // have room for more.
        let others = u64::from(threads.most - 1).min(self.queue.left()) as usize;
        let pool = match others {
            0 => None,
            others => workers.threads(others),
        };
        match pool {
            Some(pool) => pool.in_place_scope(|scope| {
                let threads = 1..=others.min(pool.current_num_threads());
                for grid in threads.map_while(&mut next) {
                    scope.spawn(move |_| finish(grid));
                }
                finish(first);
            }),
            None => finish(first),
        }
        left.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// When all threads have come to the end of what they can do: lets those go on whose CTAs do not wait for ever
    /// after all, because others have changed what they look at. Returns, for each thread, lanes that go round.
    fn settle(&self, left: &mut [Left<'_>]) -> Vec<Rounds> {
        let mut rounds = vec![Rounds::new(); left.len()];
        let mut goes_on = true;
        while goes_on && !self.failed.any.load(Relaxed) {
            goes_on = false;
            for ((grid, waits), rounds) in left.iter_mut().zip(&mut rounds) {
                if !*waits {
                    continue;
                }
                match grid.rounds(&mut Effort::full()) {
                    Some(found) => *rounds = found,
                    None => {
                        let before = grid.machine.stats.warp_instructions;
                        *waits = self.work(grid);
                        goes_on |= grid.machine.stats.warp_instructions > before;
                    }
                }
            }
        }
        rounds
    }

    /// Whether others are worth waking for what is left, if it goes on as it has begun.
    fn is_long(&self, first: &Grid<'_, Unobserved>) -> bool {
        let executed = u128::from(first.machine.stats.warp_instructions);
        let after = u128::from(self.setup.launch.threads.after);
        let [left, taken] = [self.queue.left(), self.queue.taken()].map(u128::from);
        executed >= after && executed * left >= after * taken
    }

    fn grid<'a>(&'a self, observer: &'a mut Unobserved, thread: usize) -> Grid<'a, Unobserved> {
        let memory = Held::Shared(self.memory, &self.locks);
        let slots = (self.resident / u64::from(self.setup.launch.threads.most)).max(1);
        let mut grid = Grid::new(self.setup, memory, observer, slots, &self.queue, thread);
        grid.failed = Some(&self.failed);
        grid
    }

    /// Runs CTAs until none is left, or until it is time for a pause. Returns whether that is because those that are
    /// left wait for ever.
    fn work(&self, grid: &mut Grid<'_, Unobserved>) -> bool {
        while let Err(error) = grid.run() {
            if let LaunchError::Deadlock { .. } = *error {
                return true;
            }
            // What no CTA has done, such as running out of time, ends it for all.
            let rank = grid.faulted().unwrap_or(Rank::FIRST);
            // Who comes behind it need not start: of those not started, only the resident ones would
            // have come to any round before it.
            self.queue.cut(match rank.round {
                0 => rank.cta,
                _ => self.resident,
            });
            self.failed.add(rank, error);
        }
        false
    }
}
