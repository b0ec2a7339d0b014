//! The simulated device with checks: what the shim, the command line and the file tests run on.

mod backend;
mod errors;
mod exploring;
mod host_touches;
pub mod recorded;
mod requests;
mod strays;
mod stuck;

use std::collections::HashMap;
use std::sync::Arc;

use driver::DeviceError;
use ptx::Parsed;
use runtime::audit::Audit;
use runtime::backend::{Backend, writable};
use runtime::checker::Invocation;
use runtime::progress;
use runtime::streams::At;
use runtime::{Checker, Code, Extent, LaunchOutcome, ModuleKey};
use simt::{
    Device, KernelInfo, Launch, LaunchError, LaunchStats, LoadError, ModuleId, Placement, Requests,
};

use backend::Grid;
use host_touches::HostTouches;
use recorded::Recorder;

/// A simulated device whose launches are checked if there is a checker.
pub struct CheckedSim {
    device: Device,
    checker: Option<Checker>,
    modules: HashMap<ModuleId, Loaded>,
    recorder: Option<Recorder>,
    /// What the program touches while work is in flight, if that is checked and the system says so.
    host_touches: Option<HostTouches>,
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
            host_touches: None,
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

    /// The checker, to notify it.
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
        let prepared = checker.take(Arc::clone(&ready.code), origin);
        let (key, code) = (prepared.key, &prepared.code);
        let loads = match Arc::ptr_eq(code, &ready.code) {
            true => ready.clone(),
            false => Ready {
                image: Ready::image(code),
                code: Arc::clone(code),
            },
        };
        let id = Backend::load(self, &loads, &prepared)?.module;
        let mut variables = Vec::new();
        for name in writable(code.module()) {
            if let Some((base, bytes)) = self.device.global(id, name) {
                self.with_checker(|checker| checker.allocated_variable(name, base, bytes));
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
        let taken = |checker: &mut Checker| checker.take(Arc::clone(&ready.code), origin).key;
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
        self.run(Grid::new(id, kernel, launch))
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
        let at = Some(at);
        self.run(Grid {
            at,
            ..Grid::new(id, kernel, launch)
        })
    }

    /// Writes down a launch that the driver has refused for what it asks.
    pub fn refused(&mut self, id: ModuleId, kernel: &str, launch: &Launch, why: &str) {
        let key = self.modules.get(&id).and_then(|loaded| loaded.key);
        let (Some(checker), Some(key)) = (&mut self.checker, key) else {
            return;
        };
        let device = &mut Reserved(&mut self.device);
        let invocation = Invocation {
            key,
            kernel,
            extent: Extent {
                cluster: launch.cluster,
                grid: launch.grid,
                block: launch.block,
                dynamic_shared: launch.dynamic_shared,
                shared: 0,
            },
            parameters: &[],
        };
        let pending = checker.begin_unchecked(device, invocation, why);
        let outcome = LaunchOutcome {
            refused: true,
            invalid: true,
            error: Some(why.to_owned()),
            ..LaunchOutcome::default()
        };
        checker.end(device, pending, outcome, None);
    }

    /// Runs a kernel and says what the cells and happens-before find in this very run, whichever of them the mode asks.
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
        self.run(Grid {
            audit: Some(audit),
            ..Grid::new(id, kernel, launch)
        })
    }

    /// Runs a grid, and then what it asks for.
    fn run(&mut self, grid: Grid<'_>) -> Result<LaunchStats, LaunchError> {
        let mut launch = grid.launch.clone();
        launch.requests = Requests::new(0);
        let module = grid.module;
        let ran = Backend::launch(
            self,
            Grid {
                launch: &launch,
                ..grid
            },
        );
        let stats = ran.result?;
        let asked = launch.requests.take();
        if !asked.is_empty() {
            self.run_requests(module, &launch, ran.launcher, asked)?;
        }
        Ok(stats)
    }

    fn hidden(&self, id: ModuleId, kernel: &str) -> Option<u32> {
        let key = self.modules.get(&id)?.key?;
        self.checker.as_ref()?.hidden_parameter(key, kernel)
    }
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
