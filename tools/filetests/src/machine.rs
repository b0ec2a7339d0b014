//! The simulated device, checked or not, as a test case sees it.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use driver::Device as _;
use runtime::log::{Event, Why, Writer};
use runtime::sim::CheckedSim;
use runtime::{Checker, Mode, Model, Options, ShadowSize};
use simt::{Device, DeviceConfig, LaunchError, Limits};

use crate::args::Arg;
use crate::header::{Case, Class};

/// A launch that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How to launch a case.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel; the only one when not named.
    pub kernel: Option<String>,
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads per CTA.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    /// All CTAs resident.
    pub cooperative: bool,
}

impl Launch {
    /// What the header says.
    pub fn of(case: &Case) -> Result<Self> {
        Ok(Self {
            kernel: case.get("kernel").map(str::to_owned),
            grid: case.dims("grid")?,
            block: case.dims("block")?,
            shared: case
                .get("shared")
                .map_or(Ok(0), str::parse)
                .context("shared")?,
            cooperative: case.get("cooperative") == Some("true"),
        })
    }
}

/// What came of a launch.
pub struct Outcome {
    /// Contents of the arguments afterwards; empty for scalars.
    pub contents: Vec<Vec<u8>>,
    /// How the launch failed.
    pub error: Result<(), Failure>,
    /// What was reported.
    pub races: Vec<Race>,
    /// Misuses of barriers and warp operations, as the log names them, with their lines.
    pub misuses: BTreeSet<(String, (u32, u32))>,
    /// Conflicts that the fence rule of `fast` mode has taken for ordered.
    pub ordered: u64,
    /// Accesses that were not checked, if there are any.
    pub unchecked: Option<String>,
}

/// A failed launch.
#[derive(Debug)]
pub struct Failure {
    /// `illegal-address`, `invalid-texture`, `misaligned`, `trap`, `assert`, `deadlock`, `timeout` or `other`.
    pub kind: &'static str,
    message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// A reported pair.
#[derive(Clone, Debug)]
pub struct Race {
    /// Lines of the two accesses in the file, the smaller first.
    pub lines: (u32, u32),
    /// What is said of it.
    pub class: Class,
    /// An error rather than a candidate.
    pub decided: bool,
    /// Two stores that always wrote the same bytes.
    pub same_value: bool,
}

/// How to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Who decides.
    pub mode: Mode,
    /// From the device's own journal, as on a GPU.
    pub journal: bool,
}

impl Checks {
    /// By `mode`, as on the simulated device.
    pub const fn by(mode: Mode) -> Self {
        Self {
            mode,
            journal: false,
        }
    }
}

/// A fresh device.
pub struct Machine {
    sim: CheckedSim,
}

impl Machine {
    /// A device with or without checks; seed 0 is round robin.
    pub fn new(checks: Option<Checks>, seed: u64) -> Result<Self> {
        Self::under(None, checks, seed)
    }

    /// One that checks under a memory model.
    pub fn under(model: Option<Model>, checks: Option<Checks>, seed: u64) -> Result<Self> {
        let device = Device::new(DeviceConfig {
            memory: 1 << 30,
            ..DeviceConfig::default()
        })?;
        let how = checks.unwrap_or(Checks::by(Mode::default()));
        let options = Options {
            mode: how.mode,
            journal: how.journal,
            model,
            shadow: ShadowSize::Exact,
            seed: (seed != 0).then_some(seed),
            timeout: Some(TIMEOUT.as_secs_f64()),
            ..Options::default()
        };
        let checker = checks.map(|_| Checker::new(options, Writer::Memory(Vec::new())));
        Ok(Self {
            sim: CheckedSim::new(device, checker),
        })
    }

    /// Loads `text`, runs the launch and reads everything back.
    pub fn run(mut self, text: &str, launch: &Launch, arguments: &[Arg]) -> Result<Outcome> {
        let (module, _) = ptx::parse(text);
        let kernel = match &launch.kernel {
            Some(name) => name.clone(),
            None => match module.functions().filter(|f| f.entry).collect::<Vec<_>>()[..] {
                [only] => only.name.to_string(),
                _ => bail!("the file has not exactly one kernel: say which with `kernel`"),
            },
        };
        let id = self.sim.load(text, "test")?;
        let (params, addresses) = self.arguments(id, &kernel, arguments)?;
        let mut request = simt::Launch::new(launch.grid, launch.block, params);
        request.dynamic_shared = launch.shared;
        request.cooperative = launch.cooperative;
        request.limits = Limits {
            timeout: Some(TIMEOUT),
            ..Limits::default()
        };
        let error = self.sim.launch(id, &kernel, &request);
        let contents = arguments.iter().zip(addresses).map(|(argument, address)| {
            let Arg::Buffer(bytes) = argument else {
                return Ok(Vec::new());
            };
            let mut bytes = vec![0; bytes.len()];
            self.sim.device().read(address, &mut bytes)?;
            Ok(bytes)
        });
        Ok(Outcome {
            contents: contents.collect::<Result<_>>()?,
            error: error.map(drop).map_err(failure),
            races: self
                .races(false)?
                .into_iter()
                .map(|(race, _)| race)
                .collect(),
            misuses: self
                .races(true)?
                .into_iter()
                .map(|(race, kind)| (kind, race.lines))
                .collect(),
            ordered: self.ordered(),
            unchecked: self.unchecked(&kernel),
        })
    }

    /// Puts buffers into device memory and packs the parameters.
    fn arguments(
        &mut self,
        id: simt::ModuleId,
        kernel: &str,
        arguments: &[Arg],
    ) -> Result<(Vec<u8>, Vec<u64>)> {
        let info = self
            .sim
            .kernel(id, kernel)
            .with_context(|| format!("no kernel `{kernel}`"))?;
        if info.params.len() != arguments.len() {
            bail!(
                "{} `arg` lines for {} parameters",
                arguments.len(),
                info.params.len()
            );
        }
        let (mut params, mut addresses) = (Vec::new(), Vec::new());
        for (layout, argument) in info.params.iter().zip(arguments) {
            let (address, value) = match argument {
                Arg::Scalar(value) => (0, value.clone()),
                Arg::Buffer(bytes) => {
                    let length = bytes.len() as u64;
                    let address = self.sim.device_mut().alloc(length)?;
                    self.sim.device_mut().write(address, bytes)?;
                    if let Some(checker) = self.sim.checker_mut() {
                        checker.allocated(address, length, "arg");
                    }
                    (address, address.to_le_bytes().to_vec())
                }
            };
            addresses.push(address);
            params.resize(layout.offset as usize, 0);
            params.extend(value);
        }
        Ok((params, addresses))
    }

    /// Conflicts taken for ordered.
    fn ordered(&self) -> u64 {
        let events = self.sim.checker().map_or(&[][..], Checker::events);
        let launches = events.iter().map(|event| match event {
            Event::Launch(launch) => launch.counters.ordered,
            _ => 0,
        });
        launches.sum()
    }

    /// What of a kernel the checks leave out.
    fn unchecked(&self, kernel: &str) -> Option<String> {
        let events = self.sim.checker().map_or(&[][..], Checker::events);
        let mut kernels = events.iter().filter_map(|event| match event {
            Event::Module(module) => module.kernels.iter().find(|known| known.name == kernel),
            _ => None,
        });
        let known = kernels.next_back()?;
        let missed = events.iter().any(|event| match event {
            // A wild access is outside of everything, and fails the launch anyway.
            Event::Launch(launch) => {
                launch.counters.outside + launch.counters.dropped > 0 && launch.error.is_none()
            }
            _ => false,
        });
        match (known.shared, known.not_understood.first()) {
            (0, None) if missed => Some("accesses outside of the checked window".to_owned()),
            (0, None) => None,
            (0, Some(what)) => Some(what.clone()),
            (count, _) => Some(format!("{count} accesses to shared memory")),
        }
    }

    /// The races, or the misuses with what the log calls them.
    fn races(&self, misuses: bool) -> Result<Vec<(Race, String)>> {
        let mut lines = HashMap::new();
        let mut races = Vec::new();
        for event in self.sim.checker().map_or(&[][..], Checker::events) {
            match event {
                Event::Module(module) => {
                    lines.extend(module.sites.iter().map(|site| (site.id, site.ptx_line)));
                }
                Event::Sites { sites, .. } => {
                    lines.extend(sites.iter().map(|site| (site.id, site.ptx_line)));
                }
                Event::Race(race) if matches!(race.why, Why::Misuse(_)) == misuses => {
                    let line = |site| {
                        lines
                            .get(&site)
                            .copied()
                            .ok_or_else(|| anyhow!("unknown site {site}"))
                    };
                    let (a, b) = (line(race.site)?, line(race.previous_site)?);
                    let kind = match race.why {
                        Why::Misuse(misuse) => serde_json::to_value(misuse)?,
                        _ => serde_json::Value::Null,
                    };
                    let race = Race {
                        lines: (a.min(b), a.max(b)),
                        class: match race.why {
                            Why::Strong => Class::Strong,
                            Why::Luck => Class::Luck,
                            _ => Class::Race,
                        },
                        decided: race.decided,
                        same_value: race.same_value,
                    };
                    races.push((race, kind.as_str().unwrap_or_default().to_owned()));
                }
                Event::Launch(launch) => {
                    if let Some(why) = &launch.why_not {
                        bail!("the launch was not checked: {why}");
                    }
                }
                _ => {}
            }
        }
        Ok(races)
    }
}

fn failure(error: LaunchError) -> Failure {
    let kind = match &error {
        LaunchError::IllegalAddress { .. } => "illegal-address",
        LaunchError::InvalidTexture { .. } => "invalid-texture",
        LaunchError::Misaligned { .. } => "misaligned",
        LaunchError::Trap { .. } => "trap",
        LaunchError::Assert { .. } => "assert",
        LaunchError::Deadlock { .. } => "deadlock",
        LaunchError::Timeout { .. } => "timeout",
        _ => "other",
    };
    Failure {
        kind,
        message: error.to_string(),
    }
}
