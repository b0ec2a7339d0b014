//! The device as its users see it: memory, modules, launches.

use driver::DeviceError;
use ptx::ast::Module;

use crate::config::{DeviceConfig, KernelInfo, Launch, LaunchStats};
use crate::error::{LaunchError, LoadError};
use crate::memory::Memory;
use crate::observer::{Observer, Unobserved};

/// Identity of a loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub(crate) u32);

/// A simulated device.
#[derive(Debug)]
pub struct Device {
    config: DeviceConfig,
    memory: Memory,
}

impl Device {
    /// Makes a device.
    ///
    /// # Errors
    /// When the address space has no room for its memory.
    pub fn new(config: DeviceConfig) -> Result<Self, DeviceError> {
        let memory = Memory::new(config.memory)?;
        Ok(Self { config, memory })
    }

    /// What it was made with.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Its memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Its memory, to allocate in and to write to.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Loads a module: places its variables and remembers its code.
    ///
    /// # Errors
    /// When memory is short or an initialiser names what is not there.
    pub fn load(&mut self, module: &Module) -> Result<ModuleId, LoadError> {
        let _ = module;
        Ok(ModuleId(0))
    }

    /// Forgets a module and frees its variables. An unknown module is ignored.
    pub fn unload(&mut self, module: ModuleId) {
        let _ = module;
    }

    /// Address and size in bytes of a `.global` or `.const` variable.
    pub fn global(&self, module: ModuleId, name: &str) -> Option<(u64, u64)> {
        let _ = (module, name);
        None
    }

    /// What there is to know about a kernel.
    pub fn kernel(&self, module: ModuleId, name: &str) -> Option<KernelInfo> {
        let _ = (module, name);
        None
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
        self.launch_observed(module, kernel, launch, &mut Unobserved)
    }

    /// Runs a kernel to its end and tells `observer` what its lanes do.
    ///
    /// # Errors
    /// As [`Device::launch`].
    pub fn launch_observed<O: Observer>(
        &mut self,
        module: ModuleId,
        kernel: &str,
        launch: &Launch,
        observer: &mut O,
    ) -> Result<LaunchStats, LaunchError> {
        let _ = (module, launch, observer);
        Err(LaunchError::UnknownKernel(kernel.to_owned()))
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

    fn name(&self) -> String {
        self.config.name.clone()
    }
}
