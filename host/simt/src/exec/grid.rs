//! A whole launch: which CTAs are resident, and whose turn it is.

use super::cta::{Cta, CtaId};
use super::deadlock::{MAX_WAITING, Watch};
use super::listener::Listener;
use super::machine::{ClusterBarrier, Machine, Over, Setup};
use super::queue::Queue;
use super::sharing::Held;
use super::step::Ran;
use super::threads::{Failed, Rank};
use super::warp::State;
use crate::code::Program;
use crate::config::{DeviceConfig, Launch, LaunchStats, Progress, Schedule};
use crate::error::{LaunchError, Waiting};
use crate::memory::Memory;
use random::Random;

/// Ops a warp may run before it is the next one's turn.
const QUANTUM: u64 = 8192;
/// Turns that the warps of a CTA have before it is the next one's, where CTAs do not keep pace.
pub(crate) const TURNS_ALONE: u64 = 256;
/// Turns after which it is found out first whether it is stuck.
const STUCK_TURNS: u64 = 4;
/// Longest random turn, as a power of two.
const RANDOM_QUANTUM_LOG2: usize = 10;
/// Threads, CTAs and registers of a multiprocessor.
const SM_THREADS: u32 = 2048;
const SM_CTAS: u32 = 32;
const SM_REGISTERS: u32 = 65536;
/// Bytes of interpreter registers that the resident CTAs of a launch may take, unless all have to
/// be resident.
const REGISTER_BUDGET: u64 = 512 << 20;

/// Runs a launch to its end, on one thread.
pub(crate) fn run<O: Listener + ?Sized>(
    setup: Setup<'_>,
    memory: &mut Memory,
    observer: &mut O,
) -> Result<LaunchStats, LaunchError> {
    let launch = setup.launch;
    let total = total(launch);
    let slots = resident(&setup);
    let cooperative_limit = occupancy(setup.config, setup.program, launch);
    if launch.cooperative && total > cooperative_limit {
        return Err(LaunchError::CooperativeTooLarge(format!(
            "a cooperative launch of {total} blocks, of which {cooperative_limit} fit on the device"
        )));
    }
    let queue = Queue::new(total, 1);
    let mut grid = Grid::new(setup, Held::Alone(memory), observer, slots, &queue, 0);
    if grid.keeps_pace() {
        let cluster: u32 = setup.cluster.iter().product();
        for first in (0..slots as usize).step_by(cluster as usize) {
            grid.admit(first);
        }
    }
    grid.run().map_err(|error| *error)?;
    grid.machine.end();
    let resident_ctas = slots;
    Ok(LaunchStats {
        resident_ctas,
        ..grid.machine.stats
    })
}

/// CTAs of a launch.
pub(crate) fn total(launch: &Launch) -> u64 {
    launch.grid.iter().map(|&n| u64::from(n)).product()
}

/// CTAs of a kernel that a real device could hold at once.
pub(crate) fn occupancy(config: &DeviceConfig, program: &Program, launch: &Launch) -> u64 {
    let threads: u32 = launch
        .block
        .iter()
        .product::<u32>()
        .max(1)
        .next_multiple_of(32);
    let shared = program.static_shared.saturating_add(launch.dynamic_shared);
    let by_threads = SM_THREADS / threads.min(SM_THREADS);
    let by_registers =
        SM_REGISTERS / (threads * program.info.registers.max(1)).clamp(1, SM_REGISTERS);
    // A kilobyte of every CTA's shared memory is the system's.
    let by_shared = config.shared_per_sm
        / shared
            .saturating_add(1024)
            .clamp(1, config.shared_per_sm.max(1));
    let per_sm = by_threads
        .min(by_registers)
        .min(by_shared)
        .clamp(1, SM_CTAS);
    u64::from(per_sm) * u64::from(config.sm_count.max(1))
}

/// How many CTAs are resident, a whole number of clusters.
pub(crate) fn resident(setup: &Setup<'_>) -> u64 {
    let total = total(setup.launch);
    if setup.launch.cooperative {
        return total;
    }
    let threads: u32 = setup.launch.block.iter().product();
    let rows = setup
        .program
        .functions
        .first()
        .map_or(1, |kernel| kernel.rows);
    let bytes = u64::from(threads.div_ceil(32)) * u64::from(rows) * 256;
    let affordable = (REGISTER_BUDGET / bytes.max(1)).max(1);
    let slots = occupancy(setup.config, setup.program, setup.launch)
        .min(affordable)
        .min(total);
    let cluster: u64 = setup.cluster.iter().map(|&n| u64::from(n)).product();
    (slots / cluster).max(1) * cluster
}

/// The resident CTAs of a launch, or those that one of several threads runs.
pub(crate) struct Grid<'a, O: ?Sized> {
    pub(crate) machine: Machine<'a, O>,
    /// Resident CTAs; a slot is empty when the grid is running out.
    pub(super) ctas: Vec<Cta>,
    pub(super) queue: &'a Queue,
    /// Whose piece of the queue comes first.
    thread: usize,
    /// CTAs that have been started and have not ended.
    active: u64,
    /// The CTA that failed last.
    faulted: Option<Rank>,
    random: Option<Random>,
    /// Where several threads run the launch: says which CTAs need not go on.
    pub(crate) failed: Option<&'a Failed>,
    /// Warp instructions after which to come back.
    pub(crate) pause_after: u64,
    /// When to look next for loops without end, and who was not in one the last time.
    pub(super) endless: Watch,
}

pub(crate) type Outcome<T> = Result<T, Box<LaunchError>>;

impl<'a, O: Listener + ?Sized> Grid<'a, O> {
    pub(crate) fn new(
        setup: Setup<'a>,
        memory: Held<'a>,
        observer: &'a mut O,
        slots: u64,
        queue: &'a Queue,
        thread: usize,
    ) -> Self {
        let random = match setup.launch.schedule {
            Schedule::RoundRobin => None,
            Schedule::Seeded(seed) => Some(Random::new(seed)),
        };
        let mut ctas = Vec::new();
        ctas.resize_with(slots as usize, Cta::default);
        Self {
            machine: Machine::new(setup, memory, observer, slots as usize),
            ctas,
            queue,
            thread,
            active: 0,
            faulted: None,
            random,
            failed: None,
            pause_after: u64::MAX,
            endless: Watch::default(),
        }
    }

    fn cluster_size(&self) -> u64 {
        self.machine
            .setup
            .cluster
            .iter()
            .map(|&n| u64::from(n))
            .product()
    }

    /// True when all resident CTAs are there from the start, and take turns. CTAs that tell each other
    /// nothing, or nothing that counts, run on while they can, and one starts when it is its slot's turn:
    /// their warps meet at barriers all the time, and the registers of the CTA before are at hand.
    fn keeps_pace(&self) -> bool {
        if self.failed.is_some() {
            return false;
        }
        let communicate = self.machine.setup.program.communicates;
        communicate || self.random.is_some() || self.cluster_size() > 1
    }

    /// Starts the CTAs of the next cluster in the slots from `first` on, if there are any left.
    fn admit(&mut self, first: usize) {
        let size = self.cluster_size();
        let setup = &self.machine.setup;
        let threads: u32 = setup.launch.block.iter().product();
        let kernel = &setup.program.functions[0];
        let Some(next) = self.queue.take(size, self.thread) else {
            return;
        };
        let words = self.machine.shared_bytes.div_ceil(4) as usize + 1;
        for rank in 0..size as u32 {
            let id = self.identity(next / size, first as u32, rank);
            let slot = id.slot as usize;
            let block = self.machine.setup.launch.block;
            self.ctas[slot].start(id, block, kernel);
            let shared = &mut self.machine.shared[slot];
            shared.clear();
            shared.resize(words, self.machine.setup.config.shared_content);
            self.machine.taint.start(slot);
        }
        self.machine.clusters[first] = ClusterBarrier {
            arrived: 0,
            phase: 0,
            live: threads * size as u32,
        };
        self.active += size;
    }

    /// Which CTA of the grid has a rank in a cluster.
    fn identity(&self, number: u64, first_slot: u32, rank: u32) -> CtaId {
        let setup = &self.machine.setup;
        let [gx, gy, _] = setup.launch.grid;
        let cluster = setup.cluster;
        let clusters_x = u64::from(gx / cluster[0]);
        let clusters_y = u64::from(gy / cluster[1]);
        let of = [
            (number % clusters_x) as u32,
            (number / clusters_x % clusters_y) as u32,
            (number / clusters_x / clusters_y) as u32,
        ];
        let inside = [
            rank % cluster[0],
            rank / cluster[0] % cluster[1],
            rank / cluster[0] / cluster[1],
        ];
        let index = [0, 1, 2].map(|axis| of[axis] * cluster[axis] + inside[axis]);
        let [x, y, z] = index.map(u64::from);
        CtaId {
            slot: first_slot + rank,
            index,
            linear: (z * u64::from(gy) + y) * u64::from(gx) + x,
            rank,
            first_slot,
            cluster,
            in_cluster: inside,
        }
    }

    /// True when all CTAs have ended that were started, and none is left.
    pub(crate) fn is_done(&self) -> bool {
        self.active == 0 && self.queue.left() == 0
    }

    /// Runs to the end, or until it is time for a pause.
    pub(crate) fn run(&mut self) -> Outcome<()> {
        while !self.is_done() && !self.pauses() {
            let ops = match self.random {
                Some(_) => self.random_turns()?,
                None => self.round()?,
            };
            if ops == 0 && self.active > 0 {
                return Err(self.deadlock(&Vec::new()));
            }
            self.look_for_endless()?;
        }
        Ok(())
    }

    fn pauses(&self) -> bool {
        self.machine.stats.warp_instructions >= self.pause_after
    }

    /// Gives every CTA a turn. Returns the ops executed.
    fn round(&mut self) -> Outcome<u64> {
        let alone = !self.keeps_pace();
        let mut ops = 0;
        for slot in 0..self.ctas.len() {
            ops += match alone {
                true => self.turns_alone(slot)?,
                false => self.turn_of_each(slot)?,
            };
        }
        Ok(ops)
    }

    /// Gives each warp of a CTA a turn. A CTA that takes its place begins with its first warp, so that
    /// nobody can tell which was there before.
    fn turn_of_each(&mut self, slot: usize) -> Outcome<u64> {
        let mut ops = 0;
        let cta = self.ctas[slot].id.linear;
        for warp in 0..self.ctas[slot].warps.len() {
            let now = &self.ctas[slot];
            if !now.active || now.id.linear != cta {
                break;
            }
            ops += self.turn(slot, warp, QUANTUM)?;
        }
        Ok(ops)
    }

    /// Runs CTAs in a slot, one after the other, until one has to wait or has had its share. What a
    /// CTA does depends on none of those before it.
    fn turns_alone(&mut self, slot: usize) -> Outcome<u64> {
        let mut ops = 0;
        while !self.pauses() {
            if !self.ctas[slot].active {
                self.admit(slot);
            }
            let cta = &mut self.ctas[slot];
            if cta.active
                && let Some(failed) = self.failed
                && failed.is_before(cta.rank())
            {
                cta.active = false;
                self.active -= 1;
            }
            if !self.ctas[slot].active {
                break;
            }
            let ran = self.turn_of_each(slot)?;
            ops += ran;
            let cta = &mut self.ctas[slot];
            cta.turns += 1;
            let (active, turns) = (cta.active, cta.turns);
            if active && (ran == 0 || turns.is_multiple_of(TURNS_ALONE)) {
                break;
            }
            // It may wait for one that comes later, though nothing promises that.
            if active && turns >= STUCK_TURNS && turns.is_power_of_two() && self.is_stuck(slot) {
                break;
            }
        }
        Ok(ops)
    }

    /// The CTA whose failure has just ended [`Self::run`], if it was one's and not all's.
    pub(crate) fn faulted(&mut self) -> Option<Rank> {
        self.faulted.take()
    }

    /// Gives warps turns at random, as many as there are CTAs. Returns the ops executed; zero only
    /// when no warp can run.
    fn random_turns(&mut self) -> Outcome<u64> {
        let mut ops = 0;
        for _ in 0..self.ctas.len() {
            let Some(random) = &mut self.random else {
                break;
            };
            let slot = random.index(self.ctas.len());
            if !self.ctas[slot].active {
                continue;
            }
            let warp = random.index(self.ctas[slot].warps.len());
            let quantum = 1 + random.number() % (1 << random.index(RANDOM_QUANTUM_LOG2 + 1));
            ops += self.turn(slot, warp, quantum)?;
        }
        if ops > 0 {
            return Ok(ops);
        }
        // Nobody drawn could run; see whether anybody can.
        for slot in 0..self.ctas.len() {
            for warp in 0..self.ctas[slot].warps.len() {
                if self.ctas[slot].active {
                    ops += self.turn(slot, warp, 1)?;
                }
            }
        }
        Ok(ops)
    }

    /// Runs a warp for a while.
    fn turn(&mut self, slot: usize, warp: usize, quantum: u64) -> Outcome<u64> {
        let cta = &mut self.ctas[slot];
        let runner = &mut cta.warps[warp];
        if runner.blocked || runner.live == 0 {
            return Ok(0);
        }
        let mut fuel = quantum;
        let limits = self.machine.setup.launch.limits;
        if let Some(most) = limits.max_warp_instructions {
            let left = most.saturating_sub(self.machine.stats.warp_instructions);
            if left == 0 {
                return Err(self.timeout());
            }
            fuel = fuel.min(left);
        }
        if limits.go_on.is_some() {
            self.machine.progress = self.queue.progress();
        }
        match self.machine.over() {
            Some(Over::Timeout) => return Err(self.timeout()),
            Some(Over::Interrupted) => return Err(self.interrupted(self.machine.progress)),
            None => {}
        }
        let ran = self
            .machine
            .run_warp(&cta.id, &mut cta.barriers, runner, fuel, &mut self.random);
        let ran: Ran = match ran {
            Ok(ran) => ran,
            Err(error) => {
                self.faulted = Some(cta.rank());
                return Err(error);
            }
        };
        if ran.wake {
            cta.wake();
        }
        let first = cta.id.first_slot as usize;
        let size = self.cluster_size() as usize;
        if ran.wake_cluster {
            self.ctas[first..first + size]
                .iter_mut()
                .for_each(Cta::wake);
        }
        if ran.wake {
            self.retire(slot);
        }
        Ok(ran.ops)
    }

    /// Replaces a CTA that has ended, once its whole cluster has.
    fn retire(&mut self, slot: usize) {
        let cta = &mut self.ctas[slot];
        if !cta.active || cta.barriers.threads_left() > 0 {
            return;
        }
        cta.active = false;
        self.active -= 1;
        self.queue.end(1);
        let first = cta.id.first_slot as usize;
        let size = self.cluster_size() as usize;
        let ended = self.ctas[first..first + size].iter().all(|cta| !cta.active);
        if ended && self.keeps_pace() {
            self.admit(first);
        }
    }

    #[cold]
    fn timeout(&self) -> Box<LaunchError> {
        let running = self.groups(4, &Vec::new(), |state| state == State::Ready);
        Box::new(LaunchError::Timeout {
            kernel: self.machine.setup.kernel.to_owned(),
            warp_instructions: self.machine.stats.warp_instructions,
            running: running.into_iter().map(|(_, group)| group.at).collect(),
        })
    }

    /// Where all threads are that have started and not exited.
    fn everywhere(&self) -> Vec<Waiting> {
        let groups = self.groups(MAX_WAITING, &Vec::new(), |_| true);
        groups.into_iter().map(|(_, group)| group).collect()
    }

    #[cold]
    fn interrupted(&self, progress: Progress) -> Box<LaunchError> {
        Box::new(LaunchError::Interrupted {
            kernel: self.machine.setup.kernel.to_owned(),
            warp_instructions: self.machine.stats.warp_instructions,
            progress,
            threads: self.everywhere(),
        })
    }
}
