//! Runs a launch again under other schedules, on a device of its own with the memory that the launch began with.

use events::Observer;
use runtime::checker::exploration::Cost;
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
    pub(crate) key: ModuleKey,
    pub(crate) extent: Extent,
    pub(crate) pending: &'a PendingLaunch,
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
        stats: &LaunchStats,
        findings: &mut Findings,
    ) {
        let own = Cost {
            instructions: stats.warp_instructions,
            accesses: findings.accesses(),
            copied: self.before.contents.len(),
        };
        for seed in checker.other_schedules() {
            let Some(limit) = checker.exploring_limit(own) else {
                return;
            };
            let Some(mut engine) = checker.engine_for(self.key, self.pending, self.extent) else {
                return;
            };
            // Without another device there is no other run.
            let Some(result) = self.run(seed, limit, &mut engine) else {
                return;
            };
            let explored = Explored {
                seed,
                findings: engine.finish(),
                deadlock: matches!(result, Err(LaunchError::Deadlock { .. })),
            };
            let cost = Cost {
                instructions: result.map_or(limit, |stats| stats.warp_instructions),
                accesses: explored.findings.accesses(),
                ..own
            };
            checker.explored(self.pending, findings, explored, cost);
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

/// A copy of the memory that a launch begins with which is to run again, if there is not too much.
pub(crate) fn before(device: &simt::Device) -> Option<Before> {
    let memory: u64 = device.memory().regions().map(|region| region.bytes).sum();
    if memory > MOST_MEMORY {
        return None;
    }
    Before::of(device, Contents::default(), MOST_BYTES).ok()
}
