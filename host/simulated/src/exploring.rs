//! Runs a launch again under other schedules, on a device of its own with the memory that the launch began with.

use events::Observer;
use runtime::{Checker, Explored, Extent, Findings, ModuleKey, PendingLaunch};
use simt::{Launch, LaunchError, LaunchStats, ModuleId, Requests, Schedule, Sink, Strays, Threads};

use crate::Loaded;
use crate::recorded::{Before, Contents};

/// Bytes of memory, at most, for a launch to be run again: all, and those in pages that are not zero.
const MOST_MEMORY: u64 = 1 << 30;
const MOST_BYTES: u64 = 256 << 20;

/// A launch that has run, and can run again.
pub(crate) struct Explorer<'a> {
    pub(crate) device: &'a simt::Device,
    pub(crate) module: ModuleId,
    pub(crate) loaded: &'a Loaded,
    /// The kernel that has run.
    pub(crate) code: &'a str,
    pub(crate) launch: &'a Launch,
    pub(crate) before: &'a Before,
}

impl Explorer<'_> {
    /// Adds to what a launch has shown what it shows under other schedules.
    pub(crate) fn explore(
        &self,
        checker: &mut Checker,
        (key, pending, extent): (ModuleKey, &PendingLaunch, Extent),
        stats: &LaunchStats,
        findings: &mut Findings,
    ) {
        let copied = self.before.contents.len();
        for seed in checker.other_schedules() {
            let Some(limit) = checker.exploring_limit(stats.warp_instructions, copied) else {
                return;
            };
            let Some(mut engine) = checker.engine_for(key, pending, extent) else {
                return;
            };
            // What cannot be set up is not shown, like any other schedule.
            let Some(result) = self.run(seed, limit, &mut engine) else {
                return;
            };
            let explored = Explored {
                seed,
                findings: engine.finish(),
                deadlock: matches!(result, Err(LaunchError::Deadlock { .. })),
            };
            let executed = result.map_or(limit, |stats| stats.warp_instructions);
            checker.explored(pending, findings, explored, (executed, copied));
        }
    }

    fn run(
        &self,
        seed: u64,
        limit: u64,
        observer: &mut dyn Observer,
    ) -> Option<Result<LaunchStats, LaunchError>> {
        let mut device = self.before.device().ok()?;
        let placement = self.device.placement(self.module)?;
        let id = device.load_at(&self.loaded.ready.image, &placement)?;
        let mut launch = Launch {
            schedule: Schedule::Seeded(seed),
            // What it prints and asks for, the program's own run has.
            printf: Sink::default(),
            requests: Requests::new(self.launch.requests.depth()),
            strays: self.launch.strays.as_ref().map(|_| Strays::default()),
            tallies: None,
            threads: Threads::default(),
            ..self.launch.clone()
        };
        launch.limits.max_warp_instructions = Some(limit);
        Some(device.launch_observed(id, self.code, &launch, observer))
    }
}

/// What a launch may change that is to run again.
pub(crate) fn before(device: &simt::Device) -> Option<Before> {
    let memory: u64 = device.memory().regions().map(|region| region.bytes).sum();
    if memory > MOST_MEMORY {
        return None;
    }
    Before::of(device, Contents::default(), MOST_BYTES).ok()
}
