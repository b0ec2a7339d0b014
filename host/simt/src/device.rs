//! The device as its users see it: memory, modules, launches.

use std::collections::BTreeMap;
use std::sync::Arc;

use driver::DeviceError;
use events::Observer;
use ptx::ast::Module;
use serde::{Deserialize, Serialize};

use crate::config::{DeviceConfig, KernelInfo, Launch, LaunchStats};
use crate::error::{LaunchError, LoadError};
use crate::exec::{self, Setup, WorkerPool};
use crate::memory::{Memory, Region};
use crate::module::{Image, Loaded, Placement};
use crate::texture::Textures;

/// Identity of a loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub(crate) u32);

/// What a device is and has, apart from what its memory holds and from its modules: enough to make another one whose
/// launches do the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What it was made with.
    pub config: DeviceConfig,
    /// The regions of its memory.
    pub regions: Vec<Region>,
    /// Its texture and surface objects.
    pub textures: Textures,
    /// Launches so far.
    pub launches: u64,
}

/// A simulated device.
#[derive(Debug)]
pub struct Device {
    config: DeviceConfig,
    memory: Memory,
    textures: Textures,
    modules: BTreeMap<ModuleId, Loaded>,
    next_module: u32,
    /// Functions that have been given addresses, over all modules.
    functions: u64,
    launches: u64,
    /// Threads of the host that help with launches.
    workers: WorkerPool,
}

impl Device {
    /// Makes a device.
    ///
    /// # Errors
    /// When the address space has no room for its memory.
    pub fn new(config: DeviceConfig) -> Result<Self, DeviceError> {
        let memory = Memory::new(config.memory)?;
        Ok(Self {
            config,
            memory,
            textures: Textures::default(),
            modules: BTreeMap::new(),
            next_module: 1,
            functions: 0,
            launches: 0,
            workers: WorkerPool::default(),
        })
    }

    /// Makes a device with memory at the same addresses as another one; all of it is zero.
    ///
    /// # Errors
    /// When the address space has no room for it, or regions overlap or are outside of their memory.
    pub fn restore(state: &State) -> Result<Self, DeviceError> {
        let mut device = Self::new(state.config.clone())?;
        device.memory.restore(&state.regions)?;
        device.textures = state.textures.clone();
        device.launches = state.launches;
        Ok(device)
    }

    /// What [`Device::restore`] needs.
    pub fn state(&self) -> State {
        State {
            config: self.config.clone(),
            regions: self.memory.regions().collect(),
            textures: self.textures.clone(),
            launches: self.launches,
        }
    }

    /// What it was made with.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Changes the bytes that a device-side `malloc` may hand out in all, of later launches.
    pub fn limit_heap(&mut self, bytes: u64) {
        self.config.malloc_heap = bytes;
    }

    /// Its memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Its memory, to allocate in and to write to.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Its texture objects.
    pub fn textures(&self) -> &Textures {
        &self.textures
    }

    /// Its texture objects, to make and to destroy.
    pub fn textures_mut(&mut self) -> &mut Textures {
        &mut self.textures
    }

    /// Loads a module: places its variables and remembers its code.
    ///
    /// # Errors
    /// When memory is short or an initialiser names what is not there.
    pub fn load(&mut self, module: &Module) -> Result<ModuleId, LoadError> {
        self.load_image(&Arc::new(Image::new(module.clone())))
    }

    /// Loads a module that other devices, or other loads, share.
    ///
    /// # Errors
    /// As [`Device::load`].
    pub fn load_image(&mut self, image: &Arc<Image>) -> Result<ModuleId, LoadError> {
        let loaded = Loaded::new(image, &mut self.memory, &mut self.functions)?;
        Ok(self.add(loaded))
    }

    fn add(&mut self, loaded: Loaded) -> ModuleId {
        let id = ModuleId(self.next_module);
        self.next_module += 1;
        self.modules.insert(id, loaded);
        id
    }

    /// Loads a module whose variables and functions have their places already, with whatever the variables hold.
    ///
    /// None when the placement lacks one of them.
    pub fn load_at(&mut self, image: &Arc<Image>, placement: &Placement) -> Option<ModuleId> {
        Some(self.add(Loaded::at(image, placement)?))
    }

    /// Where the variables and functions of a module lie.
    pub fn placement(&self, module: ModuleId) -> Option<Placement> {
        self.modules.get(&module).map(Loaded::placement)
    }

    /// Forgets a module and frees its variables. An unknown module is ignored.
    pub fn unload(&mut self, module: ModuleId) {
        if let Some(loaded) = self.modules.remove(&module) {
            loaded.release(&mut self.memory);
        }
    }

    /// Address and size in bytes of a `.global` or `.const` variable.
    pub fn global(&self, module: ModuleId, name: &str) -> Option<(u64, u64)> {
        self.modules.get(&module)?.global(name)
    }

    /// What there is to know about a kernel.
    pub fn kernel(&self, module: ModuleId, name: &str) -> Option<KernelInfo> {
        let program = self.modules.get(&module)?.program(name)?;
        Some(program.info.clone())
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// When it cannot be launched, or faults.
    pub fn launch(
        &mut self,
        module: ModuleId,
        kernel: &str,
        launch: &Launch,
    ) -> Result<LaunchStats, LaunchError> {
        self.start(module, kernel, launch, exec::run_unobserved)
    }

    /// Runs a kernel to its end and passes to `observer` what its lanes do.
    ///
    /// # Errors
    /// As [`Device::launch`].
    pub fn launch_observed(
        &mut self,
        module: ModuleId,
        kernel: &str,
        launch: &Launch,
        observer: &mut dyn Observer,
    ) -> Result<LaunchStats, LaunchError> {
        self.start(module, kernel, launch, |setup, memory, _| {
            exec::run(setup, memory, observer)
        })
    }

    fn start(
        &mut self,
        module: ModuleId,
        kernel: &str,
        launch: &Launch,
        run: impl FnOnce(Setup<'_>, &mut Memory, &mut WorkerPool) -> Result<LaunchStats, LaunchError>,
    ) -> Result<LaunchStats, LaunchError> {
        let loaded = self
            .modules
            .get(&module)
            .ok_or(LaunchError::UnknownModule)?;
        let program = loaded.program(kernel);
        let program = program.ok_or_else(|| LaunchError::UnknownKernel(kernel.to_owned()))?;
        if let Some((what, offset)) = &program.unsupported {
            return Err(LaunchError::Unsupported {
                kernel: kernel.to_owned(),
                what: what.clone(),
                line: loaded.module().line_column(*offset).0,
            });
        }
        let cluster = crate::validate::launch(&self.config, &program, launch)?;
        self.launches += 1;
        let mut grid_barrier = 0;
        if launch.cooperative {
            // {u32 size; u32 barrier}, see cuda-facts.
            let out = |_| LaunchError::OutOfResources("no memory for the grid barrier".to_owned());
            grid_barrier = self.memory.alloc(8).map_err(out)?;
            let size = 8u32.to_le_bytes();
            self.memory.write(grid_barrier, &size).map_err(out)?;
        }
        let setup = Setup {
            config: &self.config,
            textures: &self.textures,
            module: loaded.module(),
            loaded,
            kernel: launch.called.as_deref().unwrap_or(kernel),
            program: &program,
            launch,
            cluster,
            grid_barrier,
            number: self.launches,
        };
        let outcome = run(setup, &mut self.memory, &mut self.workers);
        if grid_barrier != 0 {
            // It was ours from its allocation on; nobody can have freed it.
            let _ = self.memory.free(grid_barrier);
        }
        outcome
    }

    /// CTAs of a kernel that a multiprocessor holds at once.
    pub fn occupancy(
        &self,
        module: ModuleId,
        kernel: &str,
        block_threads: u32,
        dynamic_shared: u32,
    ) -> Option<u32> {
        let program = self.modules.get(&module)?.program(kernel)?;
        let mut launch = Launch::new([1; 3], [block_threads, 1, 1], Vec::new());
        launch.dynamic_shared = dynamic_shared;
        let all = exec::occupancy(&self.config, &program, &launch);
        Some((all / u64::from(self.config.sm_count.max(1))) as u32)
    }
}

impl driver::Device for Device {
    fn alloc(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        self.memory.alloc(bytes)
    }

    fn free(&mut self, address: u64) -> Result<(), DeviceError> {
        self.memory.free(address)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        self.memory.read(address, into)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.memory.write(address, from)
    }

    fn fill(&mut self, address: u64, value: u8, bytes: u64) -> Result<(), DeviceError> {
        self.memory.fill(address, value, bytes)
    }

    fn total_memory(&self) -> u64 {
        self.config.memory
    }

    fn free_memory(&self) -> u64 {
        self.memory.total() - self.memory.used()
    }

    fn name(&self) -> String {
        self.config.name.clone()
    }
}
