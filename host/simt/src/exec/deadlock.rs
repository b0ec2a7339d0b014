//! A launch that is stuck: who waits where, and for what.

use events::Unobserved;

use super::cta::Cta;
use super::fault;
use super::grid::{Grid, Outcome};
use super::listener::Listener;
use super::machine::Machine;
use super::mbarrier::outstanding;
use super::sharing::Held;
use super::stuck::{self, Effort, Look, Round};
use super::taint::Memories;
use super::warp::State;
use crate::code::Kind;
use crate::error::{Absent, LaunchError, On, Waiting};
use crate::memory::Window;
use crate::tallies::Tally;

/// Waiting groups that a deadlock names.
pub(crate) const MAX_WAITING: usize = 4096;
/// CTAs that have ended, of which it gives the index.
const MAX_EXITED: usize = 8;
/// Warp instructions before the first look, and between two of them at least.
const FIRST_LOOK: u64 = 1 << 16;
/// Ops that the launch executes for each that is followed, at least.
const SHARE: u64 = 64;
/// Ops that lanes are followed for at first, and at last.
const FIRST_STEPS: u64 = 1 << 10;
const LAST_STEPS: u64 = 1 << 14;

/// When to look for loops without end, and where.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Warp instructions after which to look.
    after: u64,
    /// The CTA and the warp that was not in one the last time: likely not to be in one now.
    busy: (usize, usize),
    /// How far to follow lanes.
    steps: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            after: FIRST_LOOK,
            busy: (0, 0),
            steps: FIRST_STEPS,
        }
    }
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            most: FIRST_STEPS,
            steps: 0,
        }
    }
}

impl Effort {
    /// As far as lanes are ever followed.
    pub(super) fn full() -> Self {
        Self {
            most: LAST_STEPS,
            steps: 0,
        }
    }
}

/// Lanes that go round.
#[derive(Clone)]
pub(crate) struct SlotRound {
    /// The slot of their CTA.
    slot: usize,
    round: Round,
}

pub(crate) type Rounds = Vec<SlotRound>;

/// CTAs that have started and not ended.
#[derive(Debug, Default)]
pub(super) struct Staying {
    /// Their linear indices.
    pub(super) ctas: Vec<u64>,
    /// Threads of theirs that have exited.
    pub(super) exited: u64,
}

impl<O: Listener + ?Sized> Grid<'_, O> {
    /// Fails when all that has not ended waits, or is in loops that nothing can end. Looks now and then.
    pub(super) fn look_for_endless(&mut self) -> Outcome<()> {
        let now = self.machine.stats.warp_instructions;
        if !self.machine.setup.launch.limits.endless || now < self.endless.after {
            return Ok(());
        }
        let most = self.endless.steps;
        let mut effort = Effort { most, steps: 0 };
        let found = self.rounds(&mut effort);
        let pause = FIRST_LOOK.max(now / 8).max(SHARE * effort.steps);
        self.endless.steps = (2 * most).min(LAST_STEPS);
        self.endless.after = now.saturating_add(pause);
        match found {
            Some(rounds) => Err(self.deadlock(&rounds)),
            None => Ok(()),
        }
    }

    /// The lanes that go round for ever, if all others that have not exited wait.
    pub(super) fn rounds(&mut self, effort: &mut Effort) -> Option<Rounds> {
        // What is asked of the device runtime runs when the launch has ended, and could on a GPU before.
        let launch = self.machine.setup.launch;
        let others = launch.limits.others_wait.is_some_and(|wait| wait());
        let pending = others || !launch.requests.is_empty();
        let active = self.ctas.iter().filter(|cta| cta.active).count();
        let room = active < self.ctas.len() && self.queue.left() > 0;
        if pending || room || active == 0 {
            return None;
        }
        let ctas = self.ctas.len();
        let (first, first_warp) = self.endless.busy;
        let mut found = Vec::new();
        for turn in 0..ctas {
            let slot = (first + turn) % ctas;
            if !self.ctas[slot].active {
                continue;
            }
            match self.rounds_of(slot, first_warp, effort) {
                Ok(rounds) => {
                    found.extend(rounds.into_iter().map(|round| SlotRound { slot, round }))
                }
                Err(warp) => {
                    self.endless.busy = (slot, warp);
                    return None;
                }
            }
        }
        Some(found)
    }

    /// Whether a CTA waits for what only others can change.
    pub(super) fn is_stuck(&mut self, slot: usize) -> bool {
        self.machine.setup.launch.limits.endless
            && self.rounds_of(slot, 0, &mut Effort::default()).is_ok()
    }

    /// The same of one CTA, warp by warp from `first` on.
    ///
    /// # Errors
    /// The warp of which it is not so.
    fn rounds_of(
        &mut self,
        slot: usize,
        first: usize,
        effort: &mut Effort,
    ) -> Result<Vec<Round>, usize> {
        let real = &mut self.machine;
        let mut observer = Unobserved;
        let mut machine = Machine {
            setup: real.setup,
            memory: match &mut real.memory {
                Held::Alone(memory) => Held::Alone(memory),
                Held::Shared(memory, locks) => Held::Shared(memory, locks),
            },
            observer: &mut observer,
            stats: real.stats,
            window: Window::NONE,
            shared: std::mem::take(&mut real.shared),
            shared_bytes: real.shared_bytes,
            reserved_start: real.reserved_start,
            clusters: std::mem::take(&mut real.clusters),
            started: real.started,
            progress: real.progress,
            over: real.over,
            follows_values: false,
            tally: Tally::default(),
            taint: Memories::default(),
        };
        let cta = &self.ctas[slot];
        let warps = cta.warps.len();
        let mut found = Ok(Vec::new());
        for index in (0..warps).map(|turn| (first + turn) % warps) {
            let warp = &cta.warps[index];
            if warp.live == 0 {
                continue;
            }
            let rounds = stuck::rounds(&mut machine, &cta.id, &cta.barriers, warp, effort);
            match (rounds, &mut found) {
                (Some(rounds), Ok(all)) => all.extend(rounds),
                _ => {
                    found = Err(index);
                    break;
                }
            }
        }
        // A launch that is interrupted or out of time executes nothing more, so its lanes seem to stand still.
        if machine.over.is_some() {
            found = Err(first);
        }
        let shared = std::mem::take(&mut machine.shared);
        let clusters = std::mem::take(&mut machine.clusters);
        drop(machine);
        (self.machine.shared, self.machine.clusters) = (shared, clusters);
        found
    }

    #[cold]
    pub(super) fn deadlock(&self, rounds: &Rounds) -> Box<LaunchError> {
        let waiting = self.waiting(rounds);
        Box::new(LaunchError::Deadlock {
            kernel: self.machine.setup.kernel.to_owned(),
            waiting: waiting.into_iter().map(|(_, group)| group).collect(),
            absent: self.absent(self.staying()),
        })
    }

    /// What has started and not ended.
    pub(super) fn staying(&self) -> Staying {
        let active = self.ctas.iter().filter(|cta| cta.active);
        let gone = |cta: &Cta| u64::from(cta.barriers.threads_gone());
        let threads = active.clone().map(gone).sum();
        Staying {
            ctas: active.map(|cta| cta.id.linear).collect(),
            exited: threads,
        }
    }

    /// Who does not wait, when those CTAs do.
    pub(super) fn absent(&self, staying: Staying) -> Absent {
        let Staying {
            ctas: mut staying,
            exited: threads,
        } = staying;
        let [x, y, z] = self.machine.setup.launch.grid.map(u64::from);
        let unstarted = self.queue.left();
        let started = (x * y * z).saturating_sub(unstarted);
        staying.sort_unstable();
        let ended = |cta: &u64| staying.binary_search(cta).is_err();
        // They start in order, unless they have been divided among threads.
        let known = unstarted == 0 || self.failed.is_none();
        let first = (0..started).filter(|_| known).filter(ended);
        let index = |cta: u64| [cta % x, cta / x % y, cta / (x * y)].map(|at| at as u32);
        Absent {
            exited: started.saturating_sub(staying.len() as u64),
            first: first.take(MAX_EXITED).map(index).collect(),
            unstarted,
            threads,
        }
    }

    /// Groups of lanes that wait, or go round, with the linear index of their CTA.
    pub(crate) fn waiting(&self, rounds: &Rounds) -> Vec<(u64, Waiting)> {
        self.groups(MAX_WAITING, rounds, |state| state != State::Ready)
    }

    /// Groups of lanes in some state or that go round, with what they wait for and the linear index of their CTA, in
    /// its order.
    pub(super) fn groups(
        &self,
        most: usize,
        rounds: &Rounds,
        wanted: impl Fn(State) -> bool,
    ) -> Vec<(u64, Waiting)> {
        let setup = &self.machine.setup;
        let mut found = Vec::new();
        let slots = self.ctas.iter().enumerate();
        let mut active: Vec<_> = slots.filter(|(_, cta)| cta.active).collect();
        active.sort_by_key(|(_, cta)| cta.id.linear);
        for (slot, cta) in active {
            for warp in &cta.warps {
                let place = |pc, lanes: u32| {
                    let lane = lanes.trailing_zeros();
                    let (module, program) = (setup.module, setup.program);
                    fault::place(module, program, setup.kernel, pc, &cta.id, warp, lane)
                };
                let mut groups = Vec::new();
                for split in warp.splits.iter().filter(|split| wanted(split.state)) {
                    groups.push((split.mask, split.pc, self.on(cta, split.state)));
                }
                let of_warp = |of: &&SlotRound| of.slot == slot && of.round.warp == warp.index;
                for SlotRound { round, .. } in rounds.iter().filter(of_warp) {
                    let on = round.look.map_or(On::Nothing, |look| self.looks_at(look));
                    groups.push((round.lanes, round.pc, on));
                }
                for (lanes, pc, on) in groups {
                    if found.len() == most {
                        return found;
                    }
                    let group = Waiting {
                        at: place(pc, lanes),
                        warp: warp.index,
                        lanes,
                        what: self.what(&on, pc),
                        on,
                    };
                    found.push((cta.id.linear, group));
                }
            }
        }
        found
    }

    fn on(&self, cta: &Cta, state: State) -> On {
        match state {
            State::Ready => On::Running,
            State::Warp => On::Lanes,
            State::Cta { id, .. } => {
                let (arrived, expected) = cta.barriers.arrived(id);
                On::Barrier {
                    id: id.into(),
                    arrived,
                    expected,
                }
            }
            State::Cluster { .. } => {
                let barrier = &self.machine.clusters[cta.id.first_slot as usize];
                On::Cluster {
                    arrived: barrier.arrived,
                    expected: barrier.live,
                }
            }
        }
    }

    fn looks_at(&self, look: Look) -> On {
        let grid = self.machine.setup.grid_barrier;
        let Look {
            space,
            address,
            bytes,
            value,
            ..
        } = look;
        if look.mbarrier {
            let (arrivals, bytes) = outstanding(value);
            return On::Mbarrier {
                address,
                arrivals,
                bytes,
            };
        }
        if grid != 0 && (grid..grid + 8).contains(&address) {
            return On::Grid;
        }
        On::Memory {
            space,
            address,
            bytes,
            value,
        }
    }

    fn what(&self, on: &On, pc: u32) -> String {
        match on {
            On::Running | On::Nothing => "nothing".to_owned(),
            On::Barrier { id, .. } => format!("barrier {id}"),
            On::Cluster { .. } => "the cluster's barrier".to_owned(),
            On::Grid => "the grid's barrier".to_owned(),
            On::Lanes => match &self.machine.setup.program.ops[pc as usize].kind {
                Kind::Exchange(exchange) => format!("the other lanes of {}", exchange.kind.name()),
                _ => "other lanes".to_owned(),
            },
            On::Memory {
                space,
                address,
                bytes,
                value,
            } => {
                let space = space.suffix();
                format!(
                    "{space} memory at {address:#x} to change, whose {bytes} bytes are {value:#x}"
                )
            }
            On::Mbarrier {
                address,
                arrivals,
                bytes,
            } => format!(
                "the mbarrier at {address:#x} of shared memory, which lacks {arrivals} arrivals and {bytes} bytes"
            ),
        }
    }
}
