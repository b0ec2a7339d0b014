//! A simulated device with a checker in front, and one module: what the tests of this folder share.

#![allow(dead_code, reason = "every test file uses its own part")]

use driver::Device as _;
use report::log::{Event, Launch as Logged, Race, Writer};
use runtime::audit::Audit;
use runtime::{Checker, Options};
use simt::{Device, DeviceConfig, Launch, LaunchError, ModuleId};
use simulated::CheckedSim;
use simulated::recorded::{Recorded, TooLarge};

/// The device and the module.
pub(crate) struct Rig {
    pub(crate) sim: CheckedSim,
    module: ModuleId,
}

/// Loads a module, whose kernel is `k`.
pub(crate) fn load(text: &str, options: Options) -> Rig {
    let device = Device::new(DeviceConfig {
        memory: 1 << 28,
        ..DeviceConfig::default()
    });
    let checker = Checker::new(options, Writer::Memory(Vec::new()));
    let mut sim = CheckedSim::new(device.unwrap(), Some(checker));
    let module = sim.load(text, "test").unwrap();
    Rig { sim, module }
}

impl Rig {
    /// The address of new memory that holds `words`.
    pub(crate) fn memory(&mut self, words: &[u32]) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let count = bytes.len() as u64;
        let at = self.sim.device_mut().alloc(count).unwrap();
        self.sim.device_mut().write(at, &bytes).unwrap();
        let checker = self.sim.checker_mut().unwrap();
        checker.allocated(at, count, "cudaMalloc");
        at
    }

    /// Gives memory back.
    pub(crate) fn free(&mut self, at: u64) {
        self.sim.device_mut().free(at).unwrap();
        self.sim.checker_mut().unwrap().freed(at);
    }

    /// Takes what a launch of the kernel depends on.
    pub(crate) fn record(&self, launch: &Launch) -> Result<Recorded, TooLarge> {
        self.record_within(launch, u64::MAX)
    }

    /// The same, if memory holds at most so many bytes.
    pub(crate) fn record_within(&self, launch: &Launch, limit: u64) -> Result<Recorded, TooLarge> {
        Recorded::take(&self.sim, self.module, "k", launch, limit).unwrap()
    }

    /// The address of a variable of the module.
    pub(crate) fn variable(&self, name: &str) -> u64 {
        self.sim.device().global(self.module, name).unwrap().0
    }

    /// What so many words of memory hold.
    pub(crate) fn words(&self, at: u64, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; 4 * count];
        self.sim.device().read(at, &mut bytes).unwrap();
        let words = bytes.chunks(4);
        words
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect()
    }

    /// Launches the kernel, which may fail.
    pub(crate) fn try_launch(&mut self, launch: &Launch) -> Result<(), LaunchError> {
        self.sim.launch(self.module, "k", launch).map(drop)
    }

    /// Launches the kernel.
    pub(crate) fn launch(&mut self, launch: &Launch) {
        self.sim.launch(self.module, "k", launch).unwrap();
    }

    /// The same, judged twice.
    pub(crate) fn audit(&mut self, launch: &Launch) -> Audit {
        let mut audit = Audit::default();
        let ran = self.sim.audit(self.module, "k", launch, &mut audit);
        ran.unwrap();
        audit
    }

    /// What the log says of the launches.
    pub(crate) fn launches(&self) -> Vec<Logged> {
        let events = self.events().iter();
        let ended = events.filter_map(|event| match event {
            Event::Launch(launch) => Some(Logged::clone(launch)),
            _ => None,
        });
        ended.collect()
    }

    /// The races in the log.
    pub(crate) fn races(&self) -> Vec<Race> {
        let events = self.events().iter();
        let races = events.filter_map(|event| match event {
            Event::Race(race) => Some(Race::clone(race)),
            _ => None,
        });
        races.collect()
    }

    /// The log.
    pub(crate) fn events(&self) -> &[Event] {
        self.sim.checker().unwrap().events()
    }
}

/// A launch of `grid` CTAs of `block` threads with pointers for parameters.
pub(crate) fn launch(grid: u32, block: u32, pointers: &[u64]) -> Launch {
    let params = pointers.iter().flat_map(|at| at.to_le_bytes()).collect();
    Launch::new([grid, 1, 1], [block, 1, 1], params)
}
