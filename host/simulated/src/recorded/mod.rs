//! A recorded launch: what the simulated device needs to run it again, on another machine and without the program.
//!
//! Simulated memory has addresses of its own, a launch on one thread of the host is deterministic, and its schedule is
//! drawn from a seed. So a device with the same memory at the same addresses runs the launch again bit for bit, unless
//! the program changed memory that the launch reads while it ran.
//!
//! A [`Recorded`] is taken from a device before the launch, by [`Recorded::take`]: by `--record`, or by whoever has
//! made a device with a module and memory on it for that.

mod contents;
mod file;
mod recorder;
mod replay;

use std::sync::Arc;

use events::Observer;
use report::log;
use runtime::allocations::Allocations;
use runtime::{Checker, Options};
use serde::{Deserialize, Serialize};
use simt::{
    Device, Launch, LaunchError, LaunchStats, ModuleId, Placement, Requests, Schedule, State,
};

use super::{CheckedSim, Loaded};

pub use contents::{Contents, TooLarge};
pub use file::Damaged;
pub(crate) use recorder::{Before, Recorder, ends_by_itself};
pub use replay::Replayed;

/// A launch, and everything that it may depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The module's PTX, with all that was linked into it.
    #[serde(skip)]
    pub ptx: String,
    /// Where that came from.
    pub origin: String,
    /// Where its variables and functions lie.
    pub placement: Placement,
    /// The kernel, mangled.
    pub kernel: String,
    /// What the kernel is launched with.
    pub arguments: Arguments,
    /// The device.
    pub device: State,
    /// What its memory holds before the launch.
    #[serde(skip)]
    pub contents: Contents,
    /// What the program's memory is called.
    pub allocations: Allocations,
    /// How the launch is checked.
    pub options: Options,
    /// Its number in its process, from 1.
    pub number: u64,
    /// The kernel that has launched it, if not the host has.
    pub launcher: Option<log::Launcher>,
    /// How it ended; none for a launch that has not run yet.
    pub ended: Option<Ended>,
}

/// What a kernel is launched with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arguments {
    /// CTAs in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y and z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y and z; `[1, 1, 1]` leaves it to the kernel.
    pub cluster: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// Parameter values as the kernel lays them out.
    pub params: Vec<u8>,
    /// All CTAs are resident at once.
    pub cooperative: bool,
    /// Who runs when.
    pub schedule: Schedule,
    /// Warp instructions after which the launch is given up.
    pub max_warp_instructions: Option<u64>,
    /// How many grids stand between the launch and the host.
    pub depth: u32,
}

/// How a launch ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Warp instructions, 0 for a launch that failed.
    pub warp_instructions: u64,
    /// Thread instructions, likewise.
    pub thread_instructions: u64,
    /// How it failed.
    pub error: Option<String>,
    /// A digest of the memory that only the device reaches.
    pub memory: u64,
}

impl Ended {
    /// How a launch ended that has left a device like this.
    pub(crate) fn of(device: &Device, result: &Result<LaunchStats, LaunchError>) -> Self {
        let stats = result.as_ref().copied().unwrap_or_default();
        Self {
            warp_instructions: stats.warp_instructions,
            thread_instructions: stats.thread_instructions,
            error: result.as_ref().err().map(ToString::to_string),
            memory: contents::digest(device.memory()),
        }
    }
}

impl Arguments {
    /// What a launch has.
    pub fn of(launch: &Launch) -> Self {
        Self {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster,
            dynamic_shared: launch.dynamic_shared,
            params: launch.params.clone(),
            cooperative: launch.cooperative,
            schedule: launch.schedule,
            max_warp_instructions: launch.limits.max_warp_instructions,
            depth: launch.requests.depth(),
        }
    }

    /// The launch.
    pub fn launch(&self) -> Launch {
        let mut launch = Launch::new(self.grid, self.block, self.params.clone());
        launch.cluster = self.cluster;
        launch.dynamic_shared = self.dynamic_shared;
        launch.cooperative = self.cooperative;
        launch.schedule = self.schedule;
        launch.limits.max_warp_instructions = self.max_warp_instructions;
        launch.requests = Requests::new(self.depth);
        launch
    }
}

impl Recorded {
    /// Takes what a launch that is made next depends on, and at most so many bytes of what memory holds. None for a
    /// module that is not loaded.
    ///
    /// # Errors
    /// When memory holds more.
    pub fn take(
        sim: &CheckedSim,
        module: ModuleId,
        kernel: &str,
        launch: &Launch,
        limit: u64,
    ) -> Option<Result<Self, TooLarge>> {
        let loaded = sim.modules.get(&module)?;
        let before = match Before::of(&sim.device, Contents::default(), limit) {
            Ok(before) => before,
            Err(too_large) => return Some(Err(too_large)),
        };
        let mut launch = launch.clone();
        let options = sim.checker.as_ref().map(Checker::options);
        if let Some(seed) = options.and_then(|options| options.seed) {
            launch.schedule = Schedule::Seeded(seed);
        }
        let mut recorded = Self::of(&sim.device, module, loaded, kernel, &launch, before)?;
        if let Some(checker) = &sim.checker {
            recorded.checked_by(checker);
        }
        Some(Ok(recorded))
    }

    pub(crate) fn of(
        device: &Device,
        module: ModuleId,
        loaded: &Loaded,
        kernel: &str,
        launch: &Launch,
        before: Before,
    ) -> Option<Self> {
        Some(Self {
            ptx: loaded.ready.code.own().text().to_owned(),
            origin: loaded.origin.clone(),
            placement: device.placement(module)?,
            kernel: kernel.to_owned(),
            arguments: Arguments::of(launch),
            device: before.state,
            contents: before.contents,
            allocations: Allocations::default(),
            options: Options::default(),
            number: 1,
            launcher: None,
            ended: None,
        })
    }

    /// The launch is checked as a checker checks it.
    fn checked_by(&mut self, checker: &Checker) {
        self.allocations = checker.allocations().clone();
        self.options = Options {
            timeout: None,
            record: None,
            record_first: false,
            sim_threads: 1,
            ..checker.options().clone()
        };
    }

    /// A device with the module and the memory of the launch.
    ///
    /// # Errors
    /// When the parts do not fit together.
    pub fn device(&self) -> Result<(Device, ModuleId), Damaged> {
        let mut device = self.memory()?;
        let (module, _) = ptx::parse(&self.ptx);
        let image = Arc::new(simt::Image::new(module));
        let id = device.load_at(&image, &self.placement);
        let id = id.ok_or(Damaged::new("its module has variables without an address"))?;
        Ok((device, id))
    }

    /// A device with the memory of the launch.
    fn memory(&self) -> Result<Device, Damaged> {
        self.contents
            .restore(&self.device)
            .map_err(|error| Damaged::new(format!("its memory cannot be restored: {error}")))
    }

    /// Runs the launch, and passes to an observer what its lanes do. Gives the device back as it is then.
    ///
    /// # Errors
    /// When the parts do not fit together.
    pub fn run(
        &self,
        observer: &mut dyn Observer,
    ) -> Result<(Device, Result<LaunchStats, LaunchError>), Damaged> {
        let (mut device, id) = self.device()?;
        let launch = self.arguments.launch();
        let result = device.launch_observed(id, &self.kernel, &launch, observer);
        Ok((device, result))
    }
}
