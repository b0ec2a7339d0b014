//! One checked process: rewrites modules as they load, arms launches, and writes down what they
//! found.

use std::collections::HashMap;
use std::time::Instant;

use driver::Device;
use shadow::layout::{Record, UNKNOWN};
use shadow::plan::Shape;
use shadow::rule;

use crate::allocations::Allocations;
use crate::log::{self, Event, Level, Thread, Writer};
use crate::names;
use crate::options::Options;
use crate::place;
use crate::shadow_memory::{Drained, ShadowMemory};

/// Number of a module in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleKey(pub u32);

/// A module made ready for loading.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What to call it in [`Checker::begin`].
    pub key: ModuleKey,
    /// The PTX to load.
    pub text: String,
}

/// The size of a launch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// CTAs in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y and z.
    pub block: [u32; 3],
}

/// What the device tells about a launch that ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Executed warp instructions.
    pub warp_instructions: u64,
    /// Executed thread instructions.
    pub thread_instructions: u64,
    /// 32-byte sectors of global memory.
    pub sectors: u64,
    /// How it failed.
    pub error: Option<String>,
    /// It failed because the device lacks an instruction.
    pub unsupported: bool,
    /// Source lines of the instruction it failed at, innermost inlined function first.
    pub error_frames: Vec<log::Frame>,
}

/// A launch in flight.
#[derive(Debug)]
pub struct Begun {
    /// Value of the hidden parameter; none when the kernel has none.
    pub parameter: Option<u64>,
    launch: log::Launch,
    release_capable: bool,
    started: Instant,
}

struct Module {
    origin: String,
    kernels: HashMap<String, rewrite::KernelInfo>,
    /// The text that was loaded.
    text: String,
    /// It has insertions of ours.
    rewritten: bool,
}

/// Checks the launches of one device.
pub struct Checker {
    options: Options,
    writer: Writer,
    modules: HashMap<u32, Module>,
    next_site: u32,
    launches: u64,
    allocations: Allocations,
    shadow: ShadowMemory,
    started: bool,
}

impl Checker {
    /// Starts a log in `writer`.
    pub fn new(options: Options, writer: Writer) -> Self {
        let shadow = ShadowMemory::new(options.shadow, options.records);
        Self {
            options,
            writer,
            modules: HashMap::new(),
            next_site: 1,
            launches: 0,
            allocations: Allocations::default(),
            shadow,
            started: false,
        }
    }

    /// How this process is checked.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The events so far, when they go to memory.
    pub fn events(&self) -> &[Event] {
        match &self.writer {
            Writer::Memory(events) => events,
            Writer::File(_) => &[],
        }
    }

    /// Makes a module ready. What cannot be checked is given back as it was.
    pub fn prepare(&mut self, text: &str, origin: &str) -> Prepared {
        let key = ModuleKey(self.modules.len() as u32 + 1);
        if !self.options.check {
            self.modules.insert(
                key.0,
                Module {
                    origin: origin.to_owned(),
                    kernels: HashMap::new(),
                    text: text.to_owned(),
                    rewritten: false,
                },
            );
            return Prepared {
                key,
                text: text.to_owned(),
            };
        }
        let (module, diagnostics) = ptx::parse(text);
        for diagnostic in diagnostics.iter().filter(|d| !d.unknown) {
            let (line, column) = module.line_column(diagnostic.span.start);
            self.note(format!("{origin}:{line}:{column}: {}", diagnostic.message));
        }
        let config = rewrite::Config {
            first_site: self.next_site,
        };
        let rewritten = rewrite::rewrite(&module, &config);
        self.next_site += rewritten.sites.len() as u32;
        self.write(Event::Module(Box::new(names::module(
            key.0, origin, &rewritten,
        ))));
        let kernels = rewritten
            .kernels
            .into_iter()
            .map(|k| (k.name.clone(), k))
            .collect();
        let module = Module {
            origin: origin.to_owned(),
            kernels,
            text: rewritten.text.clone(),
            rewritten: rewritten.text != text,
        };
        self.modules.insert(key.0, module);
        Prepared {
            key,
            text: rewritten.text,
        }
    }

    /// The rewritten text was refused: `text`, the original, runs unchecked.
    pub fn give_up(&mut self, key: ModuleKey, text: &str, why: &str) {
        let Some(module) = self.modules.get_mut(&key.0) else {
            return;
        };
        module.text = text.to_owned();
        module.rewritten = false;
        for kernel in module.kernels.values_mut() {
            kernel.instrumented = false;
            kernel.why_not = Some(why.to_owned());
        }
        let told = log::Module {
            module: key.0,
            origin: module.origin.clone(),
            kernels: module.kernels.values().map(names::kernel).collect(),
            ..log::Module::default()
        };
        self.write(Event::Module(Box::new(told)));
    }

    /// A line of a module's loaded text as a line of the program's own PTX.
    pub fn original_line(&self, key: ModuleKey, line: u32) -> u32 {
        match self.modules.get(&key.0) {
            Some(module) if module.rewritten => place::original_line(&module.text, line),
            _ => line,
        }
    }

    /// Source of a line of the program's own PTX, innermost inlined function first.
    pub fn source(&self, key: ModuleKey, original_line: u32) -> Vec<log::Frame> {
        let Some(module) = self.modules.get(&key.0) else {
            return Vec::new();
        };
        let parsed = match module.rewritten {
            true => ptx::parse(&rewrite::erase(&module.text)).0,
            false => ptx::parse(&module.text).0,
        };
        place::frames(&parsed, original_line)
    }

    /// Where the hidden parameter of a kernel lies, if it has one.
    pub fn hidden_parameter(&self, key: ModuleKey, kernel: &str) -> Option<u32> {
        let kernel = self.modules.get(&key.0)?.kernels.get(kernel)?;
        kernel.instrumented.then_some(kernel.param_bytes)
    }

    /// Arms a launch.
    pub fn begin(
        &mut self,
        device: &mut dyn Device,
        key: ModuleKey,
        kernel: &str,
        extent: Extent,
    ) -> Begun {
        self.start(device);
        self.launches += 1;
        let mut begun = Begun {
            parameter: None,
            launch: log::Launch {
                launch: self.launches,
                module: key.0,
                kernel: kernel.to_owned(),
                grid: extent.grid,
                block: extent.block,
                ..log::Launch::default()
            },
            release_capable: false,
            started: Instant::now(),
        };
        match self.arm(device, key, kernel, extent, &mut begun) {
            Ok(()) => begun.launch.checked = true,
            Err(why) => begun.launch.why_not = Some(why),
        }
        begun.started = Instant::now();
        begun
    }

    fn arm(
        &mut self,
        device: &mut dyn Device,
        key: ModuleKey,
        kernel: &str,
        extent: Extent,
        begun: &mut Begun,
    ) -> Result<(), String> {
        if !self.options.check {
            return Err("checking is off".into());
        }
        let known = self
            .modules
            .get(&key.0)
            .and_then(|module| module.kernels.get(kernel));
        let info = known.ok_or("the kernel is not in the module's PTX")?;
        if !info.instrumented {
            return Err(info.why_not.clone().unwrap_or_default());
        }
        begun.release_capable = info.release_capable;
        let shape = Shape {
            ctas: extent.grid.iter().map(|&n| u64::from(n)).product(),
            window_bytes: 0,
            index_bits: 0,
            granule_log2: info.granule_log2,
            barriers: info.barriers,
            warp_barriers: info.warp_barriers,
        };
        let armed = if names::selected(&self.options.kernels, kernel) {
            self.shadow.arm(device, self.allocations.window(), shape)
        } else {
            Err("not selected by --kernel-name".into())
        };
        if let Some(text) = self.shadow.shrunk() {
            self.note(text);
        }
        match armed {
            Ok(armed) => {
                begun.parameter = Some(armed.parameter);
                begun.launch.counters.cleared = armed.cleared;
                Ok(())
            }
            Err(why) => {
                // The kernel has the parameter, so it needs some value.
                begun.parameter = self.shadow.idle(device).ok();
                Err(why)
            }
        }
    }

    /// Writes down what a launch found, also when it failed.
    pub fn end(&mut self, device: &dyn Device, begun: Begun, outcome: Outcome) {
        let mut launch = begun.launch;
        launch.seconds = begun.started.elapsed().as_secs_f64();
        launch.warp_instructions = outcome.warp_instructions;
        launch.thread_instructions = outcome.thread_instructions;
        launch.sectors = outcome.sectors;
        launch.error = outcome.error;
        launch.unsupported = outcome.unsupported;
        launch.error_frames = outcome.error_frames;
        let mut drained = Drained::default();
        if launch.checked {
            match self.shadow.drain(device) {
                Ok(found) => drained = found,
                Err(error) => self.note(format!("cannot read the race records: {error}")),
            }
        }
        let counted = drained.counters;
        launch.counters.conflicts = counted.conflicts;
        launch.counters.evictions = counted.evictions;
        launch.counters.undecided = counted.undecided;
        launch.counters.outside = counted.outside;
        launch.counters.dropped = drained.dropped;
        for (record, count) in &drained.records {
            let race = self.race(&launch, !begun.release_capable, record, *count);
            self.write(Event::Race(Box::new(race)));
        }
        self.write(Event::Launch(Box::new(launch)));
    }

    /// Tells of memory that the program allocated by `api`, or of a module's variable.
    pub fn allocated(&mut self, base: u64, bytes: u64, api: &str) {
        self.allocations.insert(base, bytes, api);
    }

    /// Tells that the memory at `base` was freed.
    pub fn freed(&mut self, base: u64) {
        self.allocations.remove(base);
    }

    /// Writes one line for the user.
    pub fn note(&mut self, text: impl Into<String>) {
        self.write(Event::Note { text: text.into() });
    }

    fn start(&mut self, device: &dyn Device) {
        if !self.started {
            self.started = true;
            self.write(Event::Start {
                pid: std::process::id(),
                device: device.name(),
                seed: self.options.seed,
                checking: self.options.check,
            });
        }
    }

    fn race(&self, launch: &log::Launch, decided: bool, record: &Record, count: u64) -> log::Race {
        let previous = (record.previous_cta != UNKNOWN && record.previous_thread != UNKNOWN)
            .then(|| thread(launch, record.previous_cta, record.previous_thread));
        log::Race {
            launch: launch.launch,
            decided,
            level: match record.verdict {
                rule::CONFLICT_GRID => Level::Grid,
                rule::CONFLICT_CTA => Level::Cta,
                _ => Level::Warp,
            },
            site: record.site,
            previous_site: record.previous_site,
            count,
            address: record.address,
            allocation: self.allocations.find(record.address).cloned(),
            thread: thread(launch, record.cta, record.thread),
            previous_thread: previous,
            previous_block: (record.previous_cta != UNKNOWN)
                .then(|| thread(launch, record.previous_cta, 0).block),
        }
    }

    fn write(&mut self, event: Event) {
        // The log's folder was writable when the process started. If it no longer is, the program
        // goes on and the missing events show as an incomplete run.
        let _ = self.writer.write(event);
    }
}

/// Indices from linear numbers, x fastest.
fn thread(launch: &log::Launch, cta: u32, thread: u32) -> Thread {
    let split = |n: u32, dims: [u32; 3]| {
        let (x, y) = (dims[0].max(1), dims[1].max(1));
        [n % x, n / x % y, n / x / y]
    };
    Thread {
        block: split(cta, launch.grid),
        thread: split(thread, launch.block),
    }
}
