//! The simulated device with checks: what the shim, the command line and the file tests run on.

mod errors;
pub mod recorded;
mod requests;
mod strays;
mod stuck;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use driver::DeviceError;
use ptx::Parsed;
use simt::{
    Device, KernelInfo, Launch, LaunchError, LaunchStats, LoadError, ModuleId, Placement, Requests,
    Schedule, Strays, Tallies,
};

use recorded::Recorder;

use report::log;
use runtime::allocations::VARIABLE;
use runtime::audit::Audit;
use runtime::between::{Steps, Wanted};
use runtime::options::Outside;
use runtime::progress;
use runtime::streams::At;
use runtime::variables::SharedVariable;
use runtime::{
    Ancestor, Checker, Code, Extent, FootprintObserver, HappensBefore, ModuleKey, Outcome, Used,
};

/// A simulated device whose launches are checked if there is a checker.
pub struct CheckedSim {
    device: Device,
    checker: Option<Checker>,
    modules: HashMap<ModuleId, Loaded>,
    recorder: Option<Recorder>,
}

struct Loaded {
    /// As it was to be loaded.
    ready: Ready,
    origin: String,
    key: Option<ModuleKey>,
    /// Addresses of the module's variables.
    variables: Vec<u64>,
}

/// A module for simulated devices, rewritten and parsed.
#[derive(Clone)]
pub struct Ready {
    code: Arc<Code>,
    image: Arc<simt::Image>,
}

impl Ready {
    /// Parses what is to be loaded.
    pub fn new(code: Code) -> Self {
        let image = Self::image(&code);
        Self {
            code: Arc::new(code),
            image,
        }
    }

    /// The program's own text, parsed.
    pub fn module(&self) -> &ptx::ast::Module {
        self.code.module()
    }

    fn image(code: &Code) -> Arc<simt::Image> {
        let image = simt::Image::new(Arc::clone(code.loaded()));
        Arc::new(match code.is_rewritten() {
            true => image
                .with_insertions(rewrite::edit::inserted(code.text()))
                .standing_for(Arc::clone(code.module())),
            false => image,
        })
    }
}

impl CheckedSim {
    /// Puts a checker, if any, in front of a device.
    pub fn new(device: Device, checker: Option<Checker>) -> Self {
        Self {
            device,
            checker,
            modules: HashMap::new(),
            recorder: None,
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The device, to allocate and copy.
    pub fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    /// The checker.
    pub fn checker(&self) -> Option<&Checker> {
        self.checker.as_ref()
    }

    /// The checker, to tell it things.
    pub fn checker_mut(&mut self) -> Option<&mut Checker> {
        self.checker.as_mut()
    }

    /// Loads PTX, with its checks; `origin` is what a person calls it.
    ///
    /// # Errors
    /// When the original text cannot be loaded.
    pub fn load(&mut self, text: impl Into<Parsed>, origin: &str) -> Result<ModuleId, LoadError> {
        let code = match &self.checker {
            Some(checker) => checker.code(text),
            None => Code::unchecked(text),
        };
        self.load_ready(&Ready::new(code), origin)
    }

    /// Loads a module that has been made ready, for this device or another.
    ///
    /// # Errors
    /// When the original text cannot be loaded.
    pub fn load_ready(&mut self, ready: &Ready, origin: &str) -> Result<ModuleId, LoadError> {
        let Some(checker) = &mut self.checker else {
            let id = self.device.load_image(&ready.image)?;
            let loaded = Loaded {
                ready: ready.clone(),
                origin: origin.to_owned(),
                key: None,
                variables: Vec::new(),
            };
            self.modules.insert(id, loaded);
            return Ok(id);
        };
        let (key, code) = checker.take(Arc::clone(&ready.code), origin);
        let image = match Arc::ptr_eq(&code, &ready.code) {
            true => Arc::clone(&ready.image),
            false => Ready::image(&code),
        };
        let id = match self.device.load_image(&image) {
            Err(error) if code.is_rewritten() => {
                let why = format!("its module does not load with checks: {error}");
                checker.give_up(key, &why);
                let own = simt::Image::new(Arc::clone(code.module()));
                self.device.load_image(&Arc::new(own))?
            }
            result => result?,
        };
        let mut variables = Vec::new();
        for variable in image
            .module()
            .variables()
            .filter(|v| !v.name.starts_with(device::PREFIX))
        {
            let writable = variable.space == ptx::ast::Space::Global;
            if let Some((base, bytes)) = self.device.global(id, &variable.name).filter(|_| writable)
            {
                checker.allocated(base, bytes, &format!("{VARIABLE}{}", variable.name));
                variables.push(base);
            }
        }
        let loaded = Loaded {
            ready: ready.clone(),
            origin: origin.to_owned(),
            key: Some(key),
            variables,
        };
        self.modules.insert(id, loaded);
        Ok(id)
    }

    /// Loads a module whose variables and functions have their places already, of which the checker knows. None where
    /// the placement lacks one of them.
    fn load_placed(&mut self, ready: &Ready, origin: &str, at: &Placement) -> Option<ModuleId> {
        let id = self.device.load_at(&ready.image, at)?;
        let taken = |checker: &mut Checker| checker.take(Arc::clone(&ready.code), origin).0;
        let loaded = Loaded {
            ready: ready.clone(),
            origin: origin.to_owned(),
            key: self.checker.as_mut().map(taken),
            variables: at.variables.values().copied().collect(),
        };
        self.modules.insert(id, loaded);
        Some(id)
    }

    /// Unloads a module.
    pub fn unload(&mut self, id: ModuleId) {
        if let (Some(loaded), Some(checker)) = (self.modules.remove(&id), &mut self.checker) {
            loaded
                .variables
                .into_iter()
                .for_each(|base| checker.freed(base));
        }
        self.device.unload(id);
    }

    /// What there is to know about a kernel, without the hidden parameter.
    pub fn kernel(&self, id: ModuleId, name: &str) -> Option<KernelInfo> {
        let mut info = self.device.kernel(id, name)?;
        if self.hidden(id, name).is_some() {
            info.params.pop();
            info.param_bytes = info
                .params
                .last()
                .map_or(0, |last| last.offset + last.bytes);
        }
        Some(info)
    }

    /// Runs a kernel.
    ///
    /// # Errors
    /// As the device says.
    pub fn launch(
        &mut self,
        id: ModuleId,
        kernel: &str,
        launch: &Launch,
    ) -> Result<LaunchStats, LaunchError> {
        self.run(id, kernel, launch, None, &mut Also::default())
    }

    /// Runs a kernel at a place among the work of all streams. In `precise` mode on the simulated device,
    /// races with work of other streams are reported too.
    ///
    /// # Errors
    /// As the device says.
    pub fn launch_at(
        &mut self,
        at: At,
        id: ModuleId,
        kernel: &str,
        launch: &Launch,
    ) -> Result<LaunchStats, LaunchError> {
        self.run(id, kernel, launch, Some(at), &mut Also::default())
    }

    /// Runs a kernel and tells what the cells and happens-before say of this very run, whoever of
    /// them it is that the mode asks.
    ///
    /// # Errors
    /// As the device says; the audit then covers what came before.
    pub fn audit(
        &mut self,
        id: ModuleId,
        kernel: &str,
        launch: &Launch,
        audit: &mut Audit,
    ) -> Result<LaunchStats, LaunchError> {
        let mut also = Also {
            audit: Some(audit),
            ..Also::default()
        };
        self.run(id, kernel, launch, None, &mut also)
    }

    fn run(
        &mut self,
        id: ModuleId,
        kernel: &str,
        launch: &Launch,
        at: Option<At>,
        also: &mut Also<'_>,
    ) -> Result<LaunchStats, LaunchError> {
        let mut launch = launch.clone();
        launch.requests = Requests::new(0);
        let (stats, launcher) = self.run_grid(id, kernel, &launch, (at, None), also)?;
        let asked = launch.requests.take();
        if !asked.is_empty() {
            self.run_requests(id, &launch, launcher, asked)?;
        }
        Ok(stats)
    }

    /// Runs a grid without what it asks for: at its place, and launched by a kernel or by the host. With what others
    /// are to know of it, if it has asked for anything.
    pub(crate) fn run_grid(
        &mut self,
        id: ModuleId,
        kernel: &str,
        launch: &Launch,
        (at, by): (Option<At>, Option<log::Launcher>),
        also: &mut Also<'_>,
    ) -> Result<(LaunchStats, Option<Ancestor>), LaunchError> {
        let hidden = self.hidden(id, kernel);
        let key = self.modules.get(&id).and_then(|loaded| loaded.key);
        let (Some(checker), Some(key)) = (&mut self.checker, key) else {
            let stats = self.device.launch(id, kernel, launch)?;
            return Ok((stats, None));
        };
        let info = self.device.kernel(id, kernel).unwrap_or_default();
        let cluster = match launch.cluster {
            [1, 1, 1] => info.cluster,
            given => Some(given),
        };
        let extent = Extent {
            cluster: cluster.unwrap_or_default(),
            grid: launch.grid,
            block: launch.block,
            shared: Extent::shared_bytes(info.static_shared, launch.dynamic_shared),
            dynamic_shared: launch.dynamic_shared,
        };
        if !info.shared.is_empty() {
            let variables = info.shared.iter().map(|of| SharedVariable {
                name: of.name.to_string(),
                offset: of.offset.into(),
                bytes: of.bytes.unwrap_or(launch.dynamic_shared).into(),
            });
            checker.set_shared(key, kernel, variables.collect());
        }
        let device = &mut Reserved(&mut self.device);
        let mut pending = checker.begin(device, key, kernel, extent, &launch.params);
        pending.set_place(at);
        pending.set_launcher(by.clone());
        progress::begin(kernel, pending.number(), checker.races());
        let mut launch = launch.clone();
        if let Some(seed) = checker.options().seed {
            launch.schedule = Schedule::Seeded(seed);
        }
        if let Some(seconds) = checker.options().timeout {
            launch.limits.timeout = Duration::try_from_secs_f64(seconds).ok();
        }
        launch.limits.endless = true;
        if checker.options().outside == Outside::Continue {
            launch.strays = Some(Strays::default());
        }
        let tallies = Tallies::default();
        if checker.options().check {
            launch.tallies = Some(tallies.clone());
        }
        launch.threads.unordered = checker.is_order_free(key, kernel);
        if checker.options().sim_threads > 1 {
            launch.threads.most = checker.options().sim_threads;
        }
        let own = pending.runs_own().then(|| rewrite::own::name(kernel));
        launch.called = own.as_ref().map(|_| kernel.to_owned());
        if let (Some(offset), Some(parameter), None) = (hidden, pending.parameter, &own) {
            launch.params.resize(offset as usize, 0);
            launch.params.extend(parameter.to_le_bytes());
        }
        let mut engine = checker.listener(key, &pending, extent);
        if let Some(at) = pending.at() {
            engine = engine.map(|engine| engine.at_place(at));
        }
        let keep_all = also.audit.is_some();
        if keep_all {
            let watched = engine.take().or_else(|| checker.engine(key, extent));
            engine = watched.map(HappensBefore::keep_all);
        }
        let mut footprints = match engine {
            Some(_) => None,
            None => checker.footprints(key, &pending),
        };
        if let Some(wanted) = also.wanted.take() {
            engine = engine.map(|engine| engine.follow(wanted));
        }
        let before = match (&mut self.recorder, &engine) {
            (Some(recorder), Some(_)) => Some(recorder.before(&self.device)),
            _ => None,
        };
        let code = own.as_deref().unwrap_or(kernel);
        let journaled = checker.journaled_text(key, &pending).filter(|_| keep_all);
        let verifies = checker.options().verify.is_some();
        let listened = engine.take_if(|_| verifies && also.audit.is_none());
        let mut followed = listened.map(|engine| checker.followed(&pending, engine));
        let mut result = match (&mut engine, &mut footprints) {
            _ if let Some(followed) = &mut followed => {
                self.device.launch_observed(id, code, &launch, followed)
            }
            (Some(engine), _) if let Some(loaded) = journaled => {
                let mut used = Used::of(engine, loaded);
                let result = self.device.launch_observed(id, code, &launch, &mut used);
                used.tell();
                result
            }
            (Some(engine), _) => self.device.launch_observed(id, code, &launch, engine),
            (None, Some(footprints)) => self.device.launch_observed(id, code, &launch, footprints),
            (None, None) => self.device.launch(id, code, &launch),
        };
        let obstacles = followed.map(|(listened, obstacles)| {
            engine = Some(listened);
            obstacles
        });
        let mut error_frames = Vec::new();
        if let Err(error) = &mut result
            && let Some(line) = errors::translate(error, |line| checker.original_line(key, line))
        {
            error_frames = checker.source(key, line);
        }
        let strays = launch.strays.as_ref();
        let strays = strays.map_or(Vec::new(), |strays| strays::told(strays, checker, key));
        let stuck = result.as_ref().err();
        let stuck = stuck.and_then(|error| stuck::stuck(error, checker, key));
        let stats = result.as_ref().copied().unwrap_or_default();
        let outcome = Outcome {
            seconds: None,
            refused: false,
            invalid: matches!(result, Err(LaunchError::InvalidConfiguration(_))),
            warp_instructions: stats.warp_instructions,
            thread_instructions: stats.thread_instructions,
            sectors: stats.global_sectors,
            device_fences: stats.device_fences,
            executed: launch.tallies.take().map(|_| tallies.take()),
            error: result.as_ref().err().map(ToString::to_string),
            unsupported: matches!(result, Err(LaunchError::Unsupported { .. })),
            deadlock: matches!(result, Err(LaunchError::Deadlock { .. })),
            stuck,
            strays,
            interrupted: matches!(result, Err(LaunchError::Interrupted { .. })),
            ended: match &result {
                Err(LaunchError::Interrupted { progress, .. }) => Some(progress.done),
                _ => None,
            },
            error_frames,
            running: false,
        };
        let journal = checker.journal(&self.device, &pending, key, extent, keep_all);
        also.steps = engine.as_mut().and_then(HappensBefore::followed);
        if let Some(audit) = also.audit.as_deref_mut() {
            let oracles = [engine.as_ref(), journal.as_ref()];
            audit.fill(checker, &self.device, &pending, oracles);
            audit.traced = engine.as_mut().map_or(Vec::new(), HappensBefore::traced);
        }
        let judge = engine.filter(|_| pending.is_listened()).or(journal);
        let mut findings = judge
            .map(HappensBefore::finish)
            .or_else(|| footprints.map(FootprintObserver::finish));
        let launcher = (!launch.requests.is_empty()).then(|| {
            let at = pending.at().cloned().unwrap_or_else(|| checker.place());
            checker.ancestor(&pending, at, findings.as_mut())
        });
        if verifies {
            checker.verify(
                &mut pending,
                findings.as_ref(),
                obstacles.as_ref(),
                &outcome,
            );
        }
        let number = pending.number();
        if let Some(before) = &before {
            let too_large = before.as_ref().map(drop).map_err(ToString::to_string);
            pending.set_recordable(too_large.and_then(|()| recorded::ends_by_itself(&result)));
        }
        let name = checker.end(&self.device, pending, outcome, findings);
        if let (Some(recorder), Some(Ok(before))) = (&mut self.recorder, before) {
            match (name, self.modules.get(&id)) {
                (Some(name), Some(loaded)) => recorder.keep(
                    (&self.device, checker),
                    (id, loaded),
                    (kernel, &launch),
                    (&name, before),
                    (number, by),
                    &result,
                ),
                _ => recorder.drop(before),
            }
        }
        progress::end();
        Ok((result?, launcher))
    }

    fn hidden(&self, id: ModuleId, kernel: &str) -> Option<u32> {
        let key = self.modules.get(&id)?.key?;
        self.checker.as_ref()?.hidden_parameter(key, kernel)
    }
}

/// What somebody wants of a launch besides.
#[derive(Default)]
pub(crate) struct Also<'a> {
    /// What cells and happens-before say of it.
    audit: Option<&'a mut Audit>,
    /// Two accesses, and what happens between them.
    wanted: Option<Wanted>,
    steps: Option<Steps>,
}

/// Shows how far a launch is; false once a signal wants the process to end. For [`simt::Limits::go_on`], where this
/// process holds the signals.
pub fn go_on(far: simt::Progress) -> bool {
    progress::go_on(far.done, far.ctas)
}

/// The device as the shadow memory sees it.
///
/// The shadow lies outside the device's own memory: it takes none from the program, and a pointer
/// of the program that has gone astray meets nothing where there was nothing.
struct Reserved<'a>(&'a mut Device);

impl driver::Device for Reserved<'_> {
    fn alloc(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        self.0.memory_mut().alloc_host(bytes)
    }

    fn free(&mut self, address: u64) -> Result<(), DeviceError> {
        self.0.memory_mut().detach(address).map(drop)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.0.memory().read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.0.memory_mut().write(address, from)
    }

    fn fill(&mut self, address: u64, value: u8, bytes: u64) -> Result<(), DeviceError> {
        self.0.memory_mut().fill(address, value, bytes)
    }

    fn total_memory(&self) -> u64 {
        driver::Device::total_memory(self.0)
    }

    fn name(&self) -> String {
        driver::Device::name(self.0)
    }
}
