//! The device and who checks it: the only file that knows either.

use std::collections::HashMap;

use driver::load::Refusal;
use driver::sys::{CUresult, SIMULATED_VARIABLE};
use os::{interrupts, run};
use ptx::ast::{Item, Module};
use ptx::link::{SYSTEM_CALLS, is_device_runtime};
use report::log::Writer;
use runtime::aliases::Mapping;
use runtime::streams::{At, CallRange, Streams};
use runtime::{Checker, options, progress, streams};
use simt::{
    Device, DeviceConfig, KernelInfo, Launch, LaunchError, Memory, ModuleId, Sink, Textures,
};
use simulated::CheckedSim;

use crate::image::{Ptx, is_ptx};
use crate::{calls, order, refuse, state};

/// The simulated device with its loaded modules, and the checker if the process is checked.
pub(crate) struct Engine {
    device: CheckedSim,
    /// Names of the kernels of each module.
    kernels: HashMap<ModuleId, Vec<String>>,
    /// Names of the managed variables of modules that have any.
    managed: HashMap<ModuleId, Vec<String>>,
    printf: Sink,
}

impl Engine {
    /// Makes the device; the environment says whether it is checked.
    pub(crate) fn new() -> Result<Engine, CUresult> {
        let device = Device::new(DeviceConfig::default()).map_err(|_| CUresult::OUT_OF_MEMORY)?;
        // A process that shall be checked and cannot be must not look as if it had been.
        let unchecked = |_| CUresult::SYSTEM_NOT_READY;
        let asked = match stands_in() {
            // The interposer in front of us is the one that checks.
            true => None,
            false => options::from_environment().map_err(unchecked)?,
        };
        let mut folder = None;
        let checker = match asked {
            Some(asked) => {
                progress::enable(asked.options.progress, Some(&asked.folder));
                let log = Writer::create(&asked.folder, asked.spare.as_deref())
                    .map_err(|_| CUresult::SYSTEM_NOT_READY)?;
                folder = Some(asked.folder);
                Some(Checker::new(asked.options, log))
            }
            None => None,
        };
        let mut device = CheckedSim::new(device, checker);
        device.follow_host();
        if let Some(folder) = folder {
            device.record_into(folder);
        }
        Ok(Engine {
            device,
            managed: HashMap::new(),
            kernels: HashMap::new(),
            printf: Sink::new(|text| {
                progress::erase();
                output::write(text);
            }),
        })
    }

    /// A call begins: the checker gets to know what the program has touched since the last one.
    pub(crate) fn look_at_host(&mut self) {
        self.device.look_at_host();
    }

    /// A call ends: what the program touches is watched until the next one, or its end.
    pub(crate) fn watch_host(&mut self) {
        if self.device.watch_host() {
            state::notice_end();
        }
    }

    pub(crate) fn memory(&self) -> &Memory {
        self.device.device().memory()
    }

    pub(crate) fn memory_mut(&mut self) -> &mut Memory {
        self.device.device_mut().memory_mut()
    }

    pub(crate) fn textures_mut(&mut self) -> &mut Textures {
        self.device.device_mut().textures_mut()
    }

    /// Lets the device's own malloc hand out so many bytes in all.
    pub(crate) fn limit_heap(&mut self, bytes: u64) {
        self.device.device_mut().limit_heap(bytes);
    }

    pub(crate) fn name(&self) -> &str {
        &self.device.device().config().name
    }

    /// Loads PTX; `plainly` when it is not to be optimised, which changes nothing
    /// here.
    pub(crate) fn load(&mut self, ptx: &Ptx, plainly: bool) -> Result<ModuleId, Refusal> {
        let Ptx { origin, parsed } = ptx;
        if let Some(refusal) = refuse::refusal(parsed.text(), plainly) {
            return Err(refusal);
        }
        is_ptx(ptx)?;
        let module = &parsed.module;
        let refuse = |code, why: String| Err(Refusal::new(code, why));
        let entries = module.functions().filter(|function| function.entry);
        let names = entries.map(|function| function.name.to_string()).collect();
        match self.device.load(parsed, origin) {
            Ok(id) => {
                self.kernels.insert(id, names);
                let managed = module.variables().filter(|variable| variable.managed);
                let managed: Vec<String> = managed.map(|of| of.name.to_string()).collect();
                if !managed.is_empty() {
                    self.managed.insert(id, managed);
                }
                Ok(id)
            }
            Err(why @ simt::LoadError::OutOfMemory { .. }) => {
                refuse(CUresult::OUT_OF_MEMORY, format!("{origin}: {why}"))
            }
            Err(why) => refuse(CUresult::INVALID_PTX, format!("{origin}: {why}")),
        }
    }

    pub(crate) fn unload(&mut self, module: ModuleId) {
        self.kernels.remove(&module);
        self.managed.remove(&module);
        self.device.unload(module);
    }

    /// Names of the kernels of a module.
    pub(crate) fn kernels(&self, module: ModuleId) -> &[String] {
        self.kernels.get(&module).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn kernel(&self, module: ModuleId, name: &str) -> Option<KernelInfo> {
        self.device.kernel(module, name)
    }

    pub(crate) fn global(&self, module: ModuleId, name: &str) -> Option<(u64, u64)> {
        self.device.device().global(module, name)
    }

    pub(crate) fn is_managed(&self, module: ModuleId, name: &str) -> bool {
        let managed = self.managed.get(&module);
        managed.is_some_and(|names| names.iter().any(|of| of == name))
    }

    /// Runs a kernel to its end; `at` is its place among all work if the process is checked.
    pub(crate) fn launch(
        &mut self,
        module: ModuleId,
        kernel: &str,
        mut launch: Launch,
        at: Option<At>,
    ) -> Result<(), Box<LaunchError>> {
        launch.printf = self.printf.clone();
        let result = match at {
            None => self.device.launch(module, kernel, &launch),
            Some(at) => {
                launch.limits.go_on = Some(simulated::go_on);
                launch.limits.others_wait = Some(state::others_wait);
                let _held = interrupts::hold();
                let result = self.device.launch_at(at, module, kernel, &launch);
                // What the launch has found is written down.
                if let Some(signal) = interrupts::caught() {
                    interrupts::end(signal);
                }
                result
            }
        };
        let error = match result {
            Ok(stats) => {
                calls::launched(kernel, stats.warp_instructions);
                return Ok(());
            }
            Err(error) => error,
        };
        output::report(&error);
        Err(Box::new(error))
    }

    /// What the checker knows of streams, if the process is checked; it is notified of the calling thread.
    pub(crate) fn streams(&mut self) -> Option<&mut Streams> {
        let streams = self.device.checker_mut().map(Checker::streams)?;
        let own = order::thread();
        order::new_threads()
            .into_iter()
            .for_each(|thread| streams.by(thread));
        streams.by(own);
        Some(streams)
    }

    /// Notifies the checker that a thread of the host has ended.
    pub(crate) fn thread_ended(&mut self, thread: u64) {
        if let Some(checker) = self.device.checker_mut() {
            checker.streams().thread_ended(thread);
        }
    }

    /// Notifies the checker what a call on the host has touched.
    pub(crate) fn called(&mut self, at: Option<At>, ranges: impl IntoIterator<Item = CallRange>) {
        if let (Some(checker), Some(at)) = (self.device.checker_mut(), at) {
            let touched = match checker.aliases() {
                Some(aliases) => streams::footprint(aliases.touched(ranges)),
                None => streams::footprint(ranges),
            };
            checker.called(at, touched);
        }
    }

    /// Notifies the checker of memory that the program has got by a call.
    pub(crate) fn allocated(&mut self, address: u64, bytes: u64, call: &str) {
        if let Some(checker) = self.device.checker_mut() {
            checker.allocated(address, bytes, call);
        }
    }

    /// Notifies the checker of memory that the host can access, too.
    pub(crate) fn allocated_for_host(&mut self, address: u64, bytes: u64, call: &str) {
        self.device.allocated_for_host(address, bytes, call);
    }

    /// Notifies the checker that the program has mapped memory.
    pub(crate) fn mapped(&mut self, mapping: Mapping) {
        if let Some(checker) = self.device.checker_mut() {
            checker.mapped(mapping);
        }
    }

    /// Notifies the checker that the program has unmapped a range.
    pub(crate) fn unmapped(&mut self, base: u64, bytes: u64) {
        if let Some(checker) = self.device.checker_mut() {
            checker.unmapped(base, bytes);
        }
    }

    /// Notifies the checker of memory that the program has given back.
    pub(crate) fn freed(&mut self, address: u64) {
        if let Some(checker) = self.device.checker_mut() {
            checker.freed(address);
        }
    }

    /// Notifies the checker that the host has freed memory of a pool, which waits for nothing.
    pub(crate) fn freed_on_host(&mut self, address: u64, bytes: u64) {
        if let Some(checker) = self.device.checker_mut() {
            checker.freed_on_host(address, bytes);
        }
    }

    /// Notifies the checker of memory that the program gets again, which has stayed allocated since it was given back.
    pub(crate) fn got_again(&mut self, address: u64, bytes: u64) {
        if let Some(checker) = self.device.checker_mut() {
            checker.got_again(address, bytes);
        }
    }

    /// Reports to the user that something is not checked, which makes the run incomplete.
    pub(crate) fn missed(&mut self, text: String) {
        if let Some(checker) = self.device.checker_mut() {
            checker.missed(text);
        }
    }

    /// Writes down a launch that is refused for what it asks.
    pub(crate) fn refused(
        &mut self,
        module: ModuleId,
        kernel: &str,
        launch: &Launch,
        code: CUresult,
    ) {
        self.device
            .refused(module, kernel, launch, &code.to_string());
    }

    /// Reports something to the user that is no race.
    pub(crate) fn note(&mut self, message: &str) {
        if let Some(checker) = self.device.checker_mut() {
            checker.note(message);
        }
    }
}

/// Whether the interposer is in front of us, which is the one that checks.
pub(crate) fn stands_in() -> bool {
    run::variable(SIMULATED_VARIABLE).is_some_and(|value| value == "1")
}

/// External names in a module that another module would have to define.
///
/// What the device itself provides does not count.
pub(crate) fn unresolved(module: &Module) -> Vec<String> {
    let defined = |name: &str| {
        module
            .functions()
            .any(|f| f.name == name && f.body.is_some())
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
        .filter(|name| !SYSTEM_CALLS.contains(&name.as_str()) && !defined(name))
        // A call of what the device lacks of that fails the launch.
        .filter(|name| !is_device_runtime(name))
        .map(|name| name.to_string())
        .collect()
}

/// The program's own streams, so that device output keeps its place among the program's.
mod output {
    use simt::LaunchError;

    unsafe extern "C" {
        #[link_name = "stdout"]
        static STDOUT: *mut libc::FILE;
        #[link_name = "stderr"]
        static STDERR: *mut libc::FILE;
    }

    /// Writes what the device printed.
    pub(super) fn write(text: &[u8]) {
        // SAFETY: the C library sets up its streams before any code of ours runs, and fwrite
        // locks them; the bytes are ours.
        unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), STDOUT) };
    }

    /// Says what a real driver says about a failed assertion; of other faults it says nothing.
    pub(super) fn report(error: &LaunchError) {
        let LaunchError::Assert {
            at,
            message,
            file,
            line,
            function,
        } = error
        else {
            return;
        };
        let list = |[x, y, z]: [u32; 3]| format!("[{x},{y},{z}]");
        let (block, thread) = (list(at.cta), list(at.thread));
        let text = format!(
            "{file}:{line}: {function}: block: {block}, thread: {thread} Assertion `{message}` failed.\n"
        );
        // SAFETY: as in `write`.
        unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), STDERR) };
    }
}
