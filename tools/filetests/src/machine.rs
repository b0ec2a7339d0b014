//! The simulated device, checked or not, as a test case sees it.

mod replayed;
mod trace;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use ::events::Observer;
use anyhow::{Context as _, Result, bail};
use driver::Device as _;
use ptx::Parsed;
use report::log::Writer;
use report::source::Sources;
use report::{self, Context, Report};
use runtime::options::{Verify, Volatile};
use runtime::{Checker, Code, FIRST_SITE, Mode, Model, Options, Prove, ShadowSize};
use simt::texture::{ChannelFormat, Image, Sampler, Surface, Texture};
use simt::{Device, DeviceConfig, LaunchError, Limits, Schedule, Threads};
use simulated::{CheckedSim, Ready};

use crate::args::{self, Arg, Texels};
use crate::events;
use crate::header::{Case, Class};

pub use trace::Trace;

/// What the words of shared memory hold before a kernel writes to them, for even and for odd seeds. On a GPU an earlier
/// launch may have left a flag set there (1), or anything else.
const SHARED_CONTENT: [u32; 2] = [1, 0xdead_beef];

/// A launch that takes longer hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Warp instructions after which a launch without checks is given up: it waits for something that does not come.
const INSTRUCTIONS: u64 = 1_000_000;

/// How to launch a case.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel; the only one when not named.
    pub kernel: Option<String>,
    /// Another one that is launched behind it, with the same grid, block and parameters.
    pub then: Option<String>,
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
            then: case.get("then").map(str::to_owned),
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

impl Launch {
    /// The name of the kernel: the one that is said, or the only one.
    ///
    /// # Errors
    /// When none is said and there is not exactly one.
    pub fn kernel(&self, module: &ptx::ast::Module) -> Result<String> {
        if let Some(name) = &self.kernel {
            return Ok(name.clone());
        }
        match module.functions().filter(|f| f.entry).collect::<Vec<_>>()[..] {
            [only] => Ok(only.name.to_string()),
            _ => bail!("the file has not exactly one kernel: say which with `kernel`"),
        }
    }
}

/// What came of a launch.
pub struct LaunchOutcome {
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
    /// Conflicts that are counted as undecided.
    pub undecided: u64,
    /// Some access is proved to have no races.
    pub proved: bool,
    /// What `verify` says, where it was asked.
    pub verified: Option<report::log::Verified>,
    /// Races that a proof has excluded.
    pub refuted: Vec<String>,
    /// Accesses that were not checked, if there are any.
    pub unchecked: Option<String>,
    /// Nothing but barriers can order its threads, so that its races do not depend on the schedule.
    pub by_barriers: bool,
}

/// A failed launch.
#[derive(Debug)]
pub struct Failure {
    /// What it may be: `illegal-address`, `invalid-texture`, `invalid-surface`, `outside-surface`,
    /// `misaligned`, `trap`, `assert`, `deadlock`, `timeout` or `other`. A driver has one code for several of them.
    pub kinds: &'static [&'static str],
    /// What the device says.
    pub message: String,
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
    /// As on a GPU: nobody listens.
    pub as_gpu: bool,
    /// What becomes of accesses that are proved.
    pub prove: Prove,
    /// Ask what the run proves of all runs.
    pub verify: Option<Verify>,
    /// All checks are called, and none is inlined in front of its access.
    pub called: bool,
}

impl Checks {
    /// Asks what the run proves of all runs, with volatile accesses as in the PTX ISA.
    pub const fn verify() -> Self {
        Self {
            verify: Some(Verify {
                volatile: Volatile::Strong,
                warp_synchronous: false,
            }),
            ..Self::by(Mode::Precise)
        }
    }

    /// By `mode`, as on the simulated device.
    pub const fn by(mode: Mode) -> Self {
        Self {
            mode,
            as_gpu: false,
            prove: Prove::On,
            verify: None,
            called: false,
        }
    }
}

/// The options of a checker; seed 0 is round robin.
fn options(model: Option<Model>, checks: Checks, seed: u64) -> Options {
    Options {
        mode: checks.mode,
        as_gpu: checks.as_gpu,
        prove: checks.prove,
        verify: checks.verify,
        most_inlined: checks.called.then_some(0),
        model,
        shadow: ShadowSize::Exact,
        seed: (seed != 0).then_some(seed),
        timeout: Some(TIMEOUT.as_secs_f64()),
        // Only those that record into a folder record anything.
        record: Some(1 << 30),
        ..Options::default()
    }
}

/// Rewrites and parses a text once for all machines that check alike.
pub fn ready(text: impl Into<Parsed>, checks: Option<Checks>) -> Ready {
    Ready::new(match checks {
        Some(checks) => Code::new(text, &options(None, checks, 0), FIRST_SITE),
        None => Code::unchecked(text),
    })
}

/// A launch with its arguments in device memory.
struct Prepared {
    id: simt::ModuleId,
    kernel: String,
    request: simt::Launch,
    /// Where the memory of the arguments is; 0 for scalars.
    addresses: Vec<u64>,
}

/// A fresh device.
pub struct Machine {
    sim: CheckedSim,
    threads: Threads,
    /// What every word of shared memory holds at first.
    shared_content: u32,
}

impl Machine {
    /// A device with or without checks; seed 0 is round robin.
    pub fn new(checks: Option<Checks>, seed: u64) -> Result<Self> {
        Self::under(None, checks, seed)
    }

    /// One that checks under a memory model.
    pub fn under(model: Option<Model>, checks: Option<Checks>, seed: u64) -> Result<Self> {
        let shared_content = SHARED_CONTENT[usize::from(seed % 2 == 1)];
        let device = Device::new(DeviceConfig {
            memory: 1 << 30,
            shared_content,
            ..DeviceConfig::default()
        })?;
        let checker = checks.map(|checks| {
            let options = options(model, checks, seed);
            Checker::new(options, Writer::Memory(Vec::new()))
        });
        Ok(Self {
            sim: CheckedSim::new(device, checker),
            threads: Threads::default(),
            shared_content,
        })
    }

    /// Runs launches on several threads of the host from their start, where that is possible.
    pub fn on_threads(mut self, most: u32) -> Self {
        self.threads = Threads {
            most,
            after: 0,
            ..Threads::default()
        };
        self
    }

    /// Loads `text`, runs the launch and reads everything back.
    pub fn run(self, text: &str, launch: &Launch, arguments: &[Arg]) -> Result<LaunchOutcome> {
        let code = match self.sim.checker() {
            Some(checker) => Code::new(text, checker.options(), FIRST_SITE),
            None => Code::unchecked(text),
        };
        self.run_ready(&Ready::new(code), launch, arguments)
    }

    /// Loads a text that has been made [`ready`], runs the launch and reads everything back.
    pub fn run_ready(
        mut self,
        ready: &Ready,
        launch: &Launch,
        arguments: &[Arg],
    ) -> Result<LaunchOutcome> {
        self.perform(ready, launch, arguments)
    }

    /// The report of a run.
    pub fn report(
        mut self,
        ready: &Ready,
        launch: &Launch,
        arguments: &[Arg],
        context: &Context,
    ) -> Result<Report> {
        self.perform(ready, launch, arguments)?;
        let log = report::Log {
            events: self.sim.checker().map_or(&[][..], Checker::events).to_vec(),
            ..report::Log::default()
        };
        Ok(Report::build(&[log], context, &Sources::default()))
    }

    /// Runs the launch without checks, under a schedule. `observer` makes its observer of the addresses of the arguments'
    /// memory. Returns the contents of that memory and the observer; nothing if the launch fails.
    pub(crate) fn observed<T: Observer>(
        mut self,
        ready: &Ready,
        launch: &Launch,
        arguments: &[Arg],
        schedule: Schedule,
        observer: impl FnOnce(Vec<Range<u64>>) -> T,
    ) -> Result<Option<(Vec<Vec<u8>>, T)>> {
        let mut prepared = self.prepare(ready, launch, arguments)?;
        prepared.request.schedule = schedule;
        prepared.request.limits.max_warp_instructions = Some(INSTRUCTIONS);
        let memory = arguments.iter().zip(&prepared.addresses);
        let memory = memory.map(|(argument, &first)| Ok(first..first + argument.bytes()?));
        let mut observer = observer(memory.collect::<Result<_>>()?);
        let Prepared {
            id,
            kernel,
            request,
            addresses,
        } = prepared;
        let device = self.sim.device_mut();
        let ended = device.launch_observed(id, &kernel, &request, &mut observer);
        let contents = self.contents(arguments, &addresses)?;
        Ok(ended.is_ok().then_some((contents, observer)))
    }

    fn perform(
        &mut self,
        ready: &Ready,
        launch: &Launch,
        arguments: &[Arg],
    ) -> Result<LaunchOutcome> {
        let Prepared {
            id,
            kernel,
            request,
            addresses,
        } = self.prepare(ready, launch, arguments)?;
        let mut error = self.sim.launch(id, &kernel, &request);
        if let (Some(then), true) = (&launch.then, error.is_ok()) {
            error = self.sim.launch(id, then, &request);
        }
        let contents = self.contents(arguments, &addresses)?;
        let events = self.sim.checker().map_or(&[][..], Checker::events);
        let kernels = std::iter::once(&kernel).chain(&launch.then);
        let kernels: Vec<&str> = kernels.map(String::as_str).collect();
        events::outcome(events, &kernels, contents, error.map(drop).map_err(failure))
    }

    /// Loads a text and puts the arguments into device memory.
    fn prepare(&mut self, ready: &Ready, launch: &Launch, arguments: &[Arg]) -> Result<Prepared> {
        let kernel = launch.kernel(ready.module())?;
        let id = self.sim.load_ready(ready, "test")?;
        let (params, addresses) = self.arguments(id, &kernel, arguments)?;
        let mut request = simt::Launch::new(launch.grid, launch.block, params);
        request.dynamic_shared = launch.shared;
        request.cooperative = launch.cooperative;
        request.threads = self.threads;
        request.limits = Limits {
            timeout: Some(TIMEOUT),
            ..Limits::default()
        };
        Ok(Prepared {
            id,
            kernel,
            request,
            addresses,
        })
    }

    /// What the memory of arguments holds.
    fn contents(&self, arguments: &[Arg], addresses: &[u64]) -> Result<Vec<Vec<u8>>> {
        let contents = arguments.iter().zip(addresses).map(|(argument, &address)| {
            let mut bytes = vec![0; argument.bytes()? as usize];
            if !bytes.is_empty() {
                self.sim.device().read(address, &mut bytes)?;
            }
            Ok(bytes)
        });
        contents.collect()
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
        let (mut params, mut addresses) = (Vec::new(), Vec::<u64>::new());
        for (layout, argument) in info.params.iter().zip(arguments) {
            let (address, value) = match argument {
                Arg::Scalar(value) => (0, value.clone()),
                Arg::Buffer(bytes) => {
                    let address = self.buffer(bytes)?;
                    (address, address.to_le_bytes().to_vec())
                }
                Arg::Image(image) => {
                    let address = match &image.texels {
                        Texels::Own(bytes) => self.buffer(bytes)?,
                        Texels::Of(other) => within(arguments, &addresses, image, *other)?,
                    };
                    let handle = self.object(image, address)?;
                    (address, handle.to_le_bytes().to_vec())
                }
            };
            addresses.push(address);
            params.resize(layout.offset as usize, 0);
            params.extend(value);
        }
        Ok((params, addresses))
    }
}

impl Machine {
    /// Device memory with these bytes.
    fn buffer(&mut self, bytes: &[u8]) -> Result<u64> {
        let length = bytes.len() as u64;
        let address = self.sim.device_mut().alloc(length)?;
        self.sim.device_mut().write(address, bytes)?;
        if let Some(checker) = self.sim.checker_mut() {
            checker.allocated(address, length, "arg");
        }
        Ok(address)
    }

    /// A texture or surface object over texels at an address: the nearest texel, clamped.
    fn object(&mut self, image: &args::Image, address: u64) -> Result<u64> {
        let format = match image.ty.as_str() {
            "f32" => ChannelFormat::F32,
            "u32" => ChannelFormat::U32,
            "s32" => ChannelFormat::S32,
            "u16" => ChannelFormat::U16,
            "u8" => ChannelFormat::U8,
            ty => bail!("no image has texels of {ty}"),
        };
        let [width, height, _] = image.extent;
        let pitch = u64::from(width * format.bytes());
        let texels = Image {
            address,
            extent: image.extent,
            pitch,
            slice: pitch * u64::from(height),
        };
        let textures = self.sim.device_mut().textures_mut();
        Ok(match image.surface {
            true => textures.insert_surface(Surface {
                image: texels,
                texel_bytes: format.bytes(),
            }),
            false => textures.insert(Texture {
                image: texels,
                format,
                channels: 1,
                sampler: Sampler::default(),
            }),
        })
    }
}

/// Where an image lies that is an earlier argument's memory.
fn within(arguments: &[Arg], addresses: &[u64], image: &args::Image, other: usize) -> Result<u64> {
    let length = arguments[other.min(arguments.len() - 1)].bytes()?;
    match addresses.get(other) {
        Some(&address) if length >= image.size()? as u64 => Ok(address),
        Some(_) => bail!("argument {other} has no room for the image that is made of it"),
        None => bail!("an image is made of argument {other}, which is no earlier one"),
    }
}

fn failure(error: LaunchError) -> Failure {
    let kinds: &[&str] = match &error {
        LaunchError::IllegalAddress { .. } => &["illegal-address"],
        LaunchError::InvalidTexture { .. } => &["invalid-texture"],
        LaunchError::InvalidSurface { .. } => &["invalid-surface"],
        LaunchError::OutsideSurface { .. } => &["outside-surface"],
        LaunchError::Misaligned { .. } => &["misaligned"],
        LaunchError::Trap { .. } => &["trap"],
        LaunchError::Assert { .. } => &["assert"],
        LaunchError::Deadlock { .. } => &["deadlock"],
        LaunchError::Timeout { .. } => &["timeout"],
        _ => &["other"],
    };
    Failure {
        kinds,
        message: error.to_string(),
    }
}
