//! A random kernel on a simulated device, and what comes of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use driver::Device as _;
use ptx::ast::Module;
use report::log::{self, Event, Writer};
use runtime::audit::Audit;
use runtime::{Checker, Model, Options, Prove, ShadowSize};
use simt::{Device, DeviceConfig, Limits, Schedule};
use simulated::CheckedSim;

use super::super::kernel::Kernel;
use super::super::text::{ENTRY, Text};
use crate::machine::Checks;

/// More than a random kernel needs: where a CTA spins while the threads of another sleep until it is
/// their turn at a journal, a hundred million have been seen.
const MOST_INSTRUCTIONS: u64 = 1_000_000_000;

/// A kernel on a device.
pub(super) struct Bench {
    sim: CheckedSim,
    id: simt::ModuleId,
    memory: u64,
    bytes: u64,
    launch: simt::Launch,
    variables: BTreeMap<String, u64>,
    /// The kernel's own text.
    module: Arc<Module>,
}

/// What came of one run.
pub(super) struct Run {
    pub(super) audit: Audit,
    /// What the mode reported.
    pub(super) races: Vec<log::Race>,
    /// Misuse of mbarriers that it reported.
    pub(super) misused: Vec<log::Race>,
    /// Lines by site in `races`.
    pub(super) lines: BTreeMap<u32, u32>,
    /// Where the kernel's global memory begins.
    pub(super) memory: u64,
    /// What it holds in the end.
    pub(super) contents: Vec<u8>,
    /// Where the module's variables lie.
    pub(super) variables: BTreeMap<String, u64>,
    pub(super) module: Arc<Module>,
    /// Shared memory is not checked, so that cells are not asked.
    pub(super) unchecked: bool,
}

impl Bench {
    pub(super) fn new(kernel: &Kernel, text: &Text, checks: Checks) -> Result<Self> {
        // Data races are compared, and warnings are none.
        Self::under(Some(Model::Ptx), kernel, text, checks)
    }

    /// One that judges under a memory model.
    pub(super) fn under(
        model: Option<Model>,
        kernel: &Kernel,
        text: &Text,
        checks: Checks,
    ) -> Result<Self> {
        let device = Device::new(DeviceConfig {
            memory: 1 << 20,
            ..DeviceConfig::default()
        })?;
        let options = Options {
            mode: checks.mode,
            as_gpu: checks.as_gpu,
            // Everything is checked, and what is proved must hold.
            prove: match checks.verify {
                Some(_) => Prove::On,
                None => Prove::Audit,
            },
            verify: checks.verify,
            // Kernels of two warps call their checks.
            most_inlined: kernel.warps.is_multiple_of(2).then_some(0),
            model,
            shadow: match kernel.small_shadow {
                true => ShadowSize::Bytes(1),
                false => ShadowSize::Exact,
            },
            ..Options::default()
        };
        let checker = Checker::new(options, Writer::Memory(Vec::new())).without_advice();
        let mut sim = CheckedSim::new(device, Some(checker));
        let id = sim.load(&text.whole(), "random")?;
        let module = Arc::new(ptx::parse(&text.whole()).0);
        let names = module.variables().map(|variable| variable.name.to_string());
        let variables = names.filter_map(|name| {
            let (address, _) = sim.device().global(id, &name)?;
            Some((name, address))
        });
        let variables = variables.collect();
        let bytes = u64::from(kernel.bytes());
        let memory = sim.device_mut().alloc(bytes)?;
        if let Some(checker) = sim.checker_mut() {
            checker.allocated(memory, bytes, "memory");
        }
        let parameters = memory.to_le_bytes().to_vec();
        let mut launch =
            simt::Launch::new([kernel.ctas, 1, 1], [kernel.threads(), 1, 1], parameters);
        launch.cooperative = kernel.cooperative();
        launch.limits = Limits {
            max_warp_instructions: Some(MOST_INSTRUCTIONS),
            ..Limits::default()
        };
        Ok(Self {
            sim,
            id,
            memory,
            bytes,
            launch,
            variables,
            module,
        })
    }

    /// What a run round robin proves of all runs.
    pub(super) fn verify(&mut self) -> Result<log::Verified> {
        self.sim.device_mut().fill(self.memory, 0, self.bytes)?;
        // A launch that fails proves nothing.
        let _ = self.sim.launch(self.id, ENTRY, &self.launch);
        let events = self.sim.checker().context("no checker")?.events();
        let mut launches = events.iter().filter_map(|event| match event {
            Event::Launch(launch) => launch.verified.as_deref(),
            _ => None,
        });
        launches
            .next_back()
            .cloned()
            .context("nothing was verified")
    }

    pub(super) fn run(&mut self, schedule: u64) -> Result<Run> {
        self.run_on(schedule, 0)
    }

    /// Runs with all bytes of global memory as given.
    pub(super) fn run_on(&mut self, schedule: u64, input: u8) -> Result<Run> {
        let events = |sim: &CheckedSim| sim.checker().map_or(0, |checker| checker.events().len());
        let before = events(&self.sim);
        self.sim.device_mut().fill(self.memory, input, self.bytes)?;
        self.launch.schedule = match schedule {
            0 => Schedule::RoundRobin,
            seed => Schedule::Seeded(seed),
        };
        let mut audit = Audit::default();
        self.sim
            .audit(self.id, ENTRY, &self.launch, &mut audit)
            .context("the launch failed")?;
        let all = self.sim.checker().context("no checker")?.events();
        let (mut races, mut misused) = (Vec::new(), Vec::new());
        let mut lines = BTreeMap::new();
        let mut unchecked = false;
        for (number, event) in all.iter().enumerate() {
            match event {
                Event::Module(module) => {
                    let known = module.kernels.iter().find(|known| known.name == ENTRY);
                    let unsupported = known.and_then(|known| known.not_understood.first());
                    ensure!(unsupported.is_none(), "not understood: {unsupported:?}");
                    unchecked |= known.is_some_and(|known| known.shared > 0);
                }
                Event::Sites { sites, .. } => {
                    lines.extend(sites.iter().map(|site| (site.id, site.ptx_line)));
                }
                Event::Missed { text } | Event::ToolError { text } => bail!("{text}"),
                Event::Race(race) if number >= before => match race.why {
                    log::Why::Misuse(log::Misuse::Excess | log::Misuse::NotMbarrier) => {
                        misused.push((**race).clone());
                    }
                    // Of threads that exit or meet elsewhere, perhaps; no race.
                    log::Why::Misuse(_) => {}
                    _ => races.push((**race).clone()),
                },
                Event::Launch(launch) => {
                    ensure!(launch.checked, "not checked: {:?}", launch.why_not);
                    let counters = launch.counters;
                    let lost = counters.outside + counters.dropped;
                    ensure!(lost == 0, "not everything was checked: {counters:?}");
                }
                _ => {}
            }
        }
        let mut contents = vec![0; usize::try_from(self.bytes)?];
        self.sim.device().read(self.memory, &mut contents)?;
        Ok(Run {
            audit,
            races,
            misused,
            lines,
            memory: self.memory,
            contents,
            variables: self.variables.clone(),
            module: Arc::clone(&self.module),
            unchecked,
        })
    }
}
