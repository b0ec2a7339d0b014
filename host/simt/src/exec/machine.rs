//! What the threads of a launch share: memory, parameters, the clock, the statistics.

use std::time::Instant;

use events::Executing;
use ptx::ast::{Module, Space};

use super::cta::CtaId;
use super::fault::{Fault, FaultKind};
use super::listener::Listener;
use super::sharing::Held;
use super::taint::Memories;
use crate::code::Program;
use crate::config::{DeviceConfig, Launch, LaunchStats, Progress};
use crate::memory::Window;
use crate::module::Loaded;
use crate::tallies::Tally;
use crate::texture::Textures;

/// Bytes of shared memory that belong to the system; cooperative groups use them.
pub(crate) const RESERVED_SHARED: u32 = 1024;

/// What a launch runs on.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) config: &'a DeviceConfig,
    pub(crate) textures: &'a Textures,
    pub(crate) module: &'a Module,
    pub(crate) loaded: &'a Loaded,
    pub(crate) kernel: &'a str,
    pub(crate) program: &'a Program,
    pub(crate) launch: &'a Launch,
    /// CTAs of a cluster in x, y and z.
    pub(crate) cluster: [u32; 3],
    /// Address of the grid barrier of a cooperative launch, 0 without.
    pub(crate) grid_barrier: u64,
    /// Number of the launch on its device.
    pub(crate) number: u64,
}

/// The state of a launch that all its threads share, or all that run on one thread of the host.
pub(crate) struct Machine<'a, O: ?Sized> {
    pub(crate) setup: Setup<'a>,
    pub(crate) memory: Held<'a>,
    pub(crate) observer: &'a mut O,
    /// Whether it wants to know what depends on the launch's input and schedule.
    pub(super) follows_values: bool,
    pub(crate) stats: LaunchStats,
    /// The region that was accessed last.
    pub(crate) window: Window,
    /// Shared memory of each slot, in words.
    pub(crate) shared: Vec<Vec<u32>>,
    /// Bytes of shared memory of a CTA.
    pub(crate) shared_bytes: u32,
    /// Where the system's part of it starts.
    pub(crate) reserved_start: u32,
    /// Barrier of the cluster of each slot; kept at the cluster's first slot.
    pub(crate) clusters: Vec<ClusterBarrier>,
    pub(crate) started: Instant,
    /// What [`Limits::go_on`](crate::Limits::go_on) receives.
    pub(crate) progress: Progress,
    pub(super) over: Option<Over>,
    pub(super) tally: Tally<'a>,
    /// What memory depends on, where somebody asks.
    pub(super) taint: Memories,
}

/// Whose wish it is that a launch does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Timeout,
    Interrupted,
}

/// The barrier of a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClusterBarrier {
    pub(crate) arrived: u32,
    pub(crate) phase: u64,
    /// Threads of the cluster that have not exited.
    pub(crate) live: u32,
}

impl ClusterBarrier {
    /// Goes to the next phase when everyone is there.
    pub(crate) fn settle(&mut self) {
        if self.arrived > 0 && self.arrived >= self.live {
            self.arrived = 0;
            self.phase += 1;
        }
    }
}

impl<'a, O: Listener + ?Sized> Machine<'a, O> {
    pub(crate) fn new(
        setup: Setup<'a>,
        memory: Held<'a>,
        observer: &'a mut O,
        slots: usize,
    ) -> Self {
        let shared_bytes = setup.program.dynamic_start.max(setup.program.static_shared);
        let shared_bytes = match setup.launch.dynamic_shared {
            0 => setup.program.static_shared,
            dynamic => shared_bytes + dynamic,
        };
        let reserved_start = shared_bytes.next_multiple_of(16);
        let shared_bytes = match setup.program.reserved_shared {
            true => reserved_start + RESERVED_SHARED,
            false => shared_bytes,
        };
        Self {
            setup,
            memory,
            follows_values: observer.follows_values(),
            observer,
            stats: LaunchStats::default(),
            window: Window::NONE,
            shared: vec![Vec::new(); slots],
            shared_bytes,
            reserved_start,
            clusters: vec![ClusterBarrier::default(); slots],
            started: Instant::now(),
            progress: Progress::default(),
            over: None,
            tally: Tally::new(setup.launch.tallies.as_ref(), &setup.program.offsets),
            taint: Memories::default(),
        }
    }

    /// Whether to find out what depends on the launch's input and schedule.
    #[inline(always)]
    pub(super) fn follows_values(&self) -> bool {
        O::LISTENS && self.follows_values
    }

    /// Whether somebody wants the launch to end here. Whoever has said so is not asked again.
    pub(crate) fn over(&mut self) -> Option<Over> {
        let limits = &self.setup.launch.limits;
        if self.over.is_none() {
            let timeout = limits.timeout;
            if timeout.is_some_and(|timeout| self.started.elapsed() > timeout) {
                self.over = Some(Over::Timeout);
            } else if limits.go_on.is_some_and(|go_on| !go_on(self.progress)) {
                self.over = Some(Over::Interrupted);
            }
        }
        self.over
    }

    /// The region that contains `bytes` bytes at `address`.
    #[inline(always)]
    pub(crate) fn locate(
        &mut self,
        lane: u32,
        address: u64,
        bytes: u32,
        write: bool,
    ) -> Result<Window, Box<Fault>> {
        let window = self.window;
        let end = address.wrapping_add(u64::from(bytes));
        if address >= window.start && end <= window.end && end > address {
            return Ok(window);
        }
        self.look_up(lane, address, bytes, write)
    }

    #[cold]
    fn look_up(
        &mut self,
        lane: u32,
        address: u64,
        bytes: u32,
        write: bool,
    ) -> Result<Window, Box<Fault>> {
        match self.memory.window(address) {
            Some(window) if u64::from(bytes) <= window.end - address => {
                self.window = window;
                Ok(window)
            }
            _ => {
                let space = Space::Global;
                Err(Fault::new(
                    lane,
                    FaultKind::Illegal {
                        address,
                        bytes,
                        space,
                        write,
                    },
                ))
            }
        }
    }

    /// Some lanes of a warp, as an observer receives them.
    pub(crate) fn executing(&self, cta: &CtaId, warp: u32, pc: u32, lanes: u32) -> Executing {
        Executing {
            cta: cta.linear,
            warp,
            offset: self
                .setup
                .program
                .offsets
                .get(pc as usize)
                .copied()
                .unwrap_or(0),
            lanes,
        }
    }

    /// Cycles of the simulated clock: a few for every warp instruction.
    pub(crate) fn clock(&self) -> u64 {
        self.stats.warp_instructions * 4
    }
}
