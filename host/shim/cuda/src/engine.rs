//! The device and who checks it: the only file that knows either.

use std::collections::HashMap;

use driver::DeviceError;
use driver::sys::CUresult;
use ptx::ast::Item;
use simt::{Device, DeviceConfig, KernelInfo, Launch, LaunchError, Memory, ModuleId, Sink};

/// The simulated device with its loaded modules.
pub(crate) struct Engine {
    device: Device,
    modules: HashMap<ModuleId, Vec<String>>,
    printf: Sink,
}

/// Why PTX could not be loaded.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: CUresult,
    pub(crate) message: String,
}

impl Engine {
    pub(crate) fn new() -> Result<Engine, DeviceError> {
        let device = Device::new(DeviceConfig::default())?;
        Ok(Engine { device, modules: HashMap::new(), printf: Sink::new(stdout::write) })
    }

    pub(crate) fn memory(&self) -> &Memory {
        self.device.memory()
    }

    pub(crate) fn memory_mut(&mut self) -> &mut Memory {
        self.device.memory_mut()
    }

    pub(crate) fn name(&self) -> &str {
        &self.device.config().name
    }

    /// Loads PTX text that came from `origin`.
    pub(crate) fn load(&mut self, text: &str, origin: &str) -> Result<ModuleId, Refusal> {
        let (module, diagnostics) = ptx::parse(text);
        let refuse = |code, message| Err(Refusal { code, message });
        if module.version.is_none() {
            let why = diagnostics.first().map_or("no .version directive", |first| &first.message);
            return refuse(CUresult::INVALID_PTX, format!("{origin}: not PTX: {why}"));
        }
        let names = module.functions().filter(|f| f.entry).map(|f| f.name.to_string()).collect();
        match self.device.load(&module) {
            Ok(id) => {
                self.modules.insert(id, names);
                Ok(id)
            }
            Err(why @ simt::LoadError::OutOfMemory { .. }) => {
                refuse(CUresult::OUT_OF_MEMORY, format!("{origin}: {why}"))
            }
            Err(why) => refuse(CUresult::INVALID_PTX, format!("{origin}: {why}")),
        }
    }

    pub(crate) fn unload(&mut self, module: ModuleId) {
        self.modules.remove(&module);
        self.device.unload(module);
    }

    /// Names of the kernels of a module.
    pub(crate) fn kernels(&self, module: ModuleId) -> &[String] {
        self.modules.get(&module).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn kernel(&self, module: ModuleId, name: &str) -> Option<KernelInfo> {
        self.device.kernel(module, name)
    }

    pub(crate) fn global(&self, module: ModuleId, name: &str) -> Option<(u64, u64)> {
        self.device.global(module, name)
    }

    /// Runs a kernel to its end.
    pub(crate) fn launch(
        &mut self,
        module: ModuleId,
        kernel: &str,
        mut launch: Launch,
    ) -> Result<(), LaunchError> {
        launch.printf = self.printf.clone();
        self.device.launch(module, kernel, &launch).map(drop)
    }

    /// Tells the checker of device memory that the program has got.
    pub(crate) fn allocated(&mut self, _address: u64, _bytes: u64, _call: &str) {}

    /// Tells the checker of device memory that the program has given back.
    pub(crate) fn freed(&mut self, _address: u64) {}

    /// Tells the user something that is no race.
    pub(crate) fn note(&mut self, _message: &str) {}
}

/// External names in `text` that another module would have to define.
///
/// What the device itself provides does not count.
pub(crate) fn unresolved(text: &str) -> Vec<String> {
    const PROVIDED: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];
    let (module, _) = ptx::parse(text);
    let defined = |name: &str| {
        module.functions().any(|f| f.name == name && f.body.is_some())
    };
    let external = module.items.iter().filter_map(|item| match item {
        Item::Function(function) if function.body.is_none() => Some(&function.name),
        Item::Variable(variable)
            if variable.linkage == ptx::ast::Linkage::Extern
                && variable.space != ptx::ast::Space::Shared =>
        {
            Some(&variable.name)
        }
        _ => None,
    });
    external
        .filter(|name| !PROVIDED.contains(&name.as_str()) && !defined(name))
        .map(|name| name.to_string())
        .collect()
}

/// The program's `stdout`, so that device output keeps its place among the program's own.
mod stdout {
    unsafe extern "C" {
        #[link_name = "stdout"]
        static STDOUT: *mut libc::FILE;
    }

    pub(super) fn write(text: &[u8]) {
        // SAFETY: the C library sets up its stdout before any code of ours runs, and fwrite
        // locks the stream; the bytes are ours.
        unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), STDOUT) };
    }
}
