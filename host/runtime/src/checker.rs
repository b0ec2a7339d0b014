//! One checked process: rewrites modules as they load, arms launches, and writes down what they
//! found.

mod judge;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use driver::Device;
use shadow::layout::{ACCESS_POSSIBLE, ACCESS_SHARED, Record, UNKNOWN, WITNESS_CTA_MASK};
use shadow::plan::Shape;
use shadow::rule;

use crate::allocations::Allocations;
use crate::instructions::Instructions;
use crate::log::{self, Event, Level, Thread, Writer};
use crate::names;
use crate::options::{Mode, Model, Options};
use crate::place;
use crate::reference::{Judged, Scrutiny};
use crate::shadow_memory::{Drained, Order, ShadowMemory, SharedShape};
use crate::told;

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
    /// CTAs of a cluster in x, y and z; zeroes without clusters.
    pub cluster: [u32; 3],
    /// CTAs in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y and z.
    pub block: [u32; 3],
    /// Bytes of a CTA's shared memory, whatever the device keeps for itself included.
    pub shared: u32,
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
    /// The kernel keeps a journal, for happens-before to decide.
    journaled: bool,
    /// The fence rule says which of the conflicts are races.
    fence_rule: bool,
    /// What of the launch happens-before on the host is to judge.
    scrutiny: Option<Scrutiny>,
    started: Instant,
}

impl Begun {
    /// Whether the cells judge global memory, and whether the kernel can order threads unseen.
    pub(crate) fn cells_decide(&self) -> (bool, bool) {
        let by_cells = self.scrutiny != Some(Scrutiny::Everything);
        (by_cells, self.release_capable)
    }

    /// Whether a conflict of cells is known to be a race.
    pub(crate) fn is_decided(&self, record: &Record) -> bool {
        !self.release_capable || self.fence_rule && record.access & ACCESS_POSSIBLE == 0
    }
}

#[derive(Default)]
struct Module {
    origin: String,
    kernels: HashMap<String, rewrite::KernelInfo>,
    /// The text that was loaded.
    text: String,
    /// It has insertions of ours.
    rewritten: bool,
    /// What its instructions mean to the reference oracle, once that has been asked.
    instructions: Option<Arc<Instructions>>,
    /// Sites in the log of the accesses that the oracle has named.
    named: HashMap<u32, u32>,
    /// Lines in the program's own PTX of the sites that the checks name.
    lines: HashMap<u32, u32>,
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
        let shadow = ShadowMemory::new(options.shadow, options.records, options.sample);
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
                    ..Module::default()
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
            // After a first race a cell may miss others, and happens-before does not.
            leave_shared: self.listens(),
            journal: self.options.mode == Mode::Precise && self.options.journal,
            count_orders: self.options.mode == Mode::Fast,
            sample: self.options.sample > 1,
        };
        let rewritten = rewrite::rewrite(&module, &config);
        self.next_site += rewritten.sites.len() as u32;
        let mode = self.options.mode;
        self.write(Event::Module(Box::new(names::module(
            key.0,
            origin,
            &rewritten,
            self.listens(),
        ))));
        // Checks whose verdicts nobody asks for need not run.
        let bare = match mode {
            Mode::Full => true,
            Mode::Precise => self.listens() && rewritten.kernels.iter().all(is_for_host),
            Mode::Fast => false,
        };
        let loaded = match bare {
            true => text.to_owned(),
            false => rewritten.text,
        };
        let kernels = rewritten
            .kernels
            .into_iter()
            .map(|k| (k.name.clone(), k))
            .collect();
        let sites = rewritten.sites.iter();
        let module = Module {
            origin: origin.to_owned(),
            kernels,
            lines: sites.map(|site| (site.id, site.ptx_line)).collect(),
            text: loaded.clone(),
            rewritten: loaded != text,
            ..Module::default()
        };
        self.modules.insert(key.0, module);
        Prepared { key, text: loaded }
    }

    /// The rewritten text was refused: `text`, the original, runs unchecked.
    pub fn give_up(&mut self, key: ModuleKey, text: &str, why: &str) {
        let listens = self.listens();
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
            kernels: module
                .kernels
                .values()
                .map(|info| names::kernel(info, listens))
                .collect(),
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
        let module = self.modules.get(&key.0)?;
        let kernel = module.kernels.get(kernel)?;
        (module.rewritten && kernel.instrumented).then_some(kernel.param_bytes)
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
            journaled: false,
            fence_rule: false,
            scrutiny: None,
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
        let module = self.modules.get(&key.0);
        let rewritten = module.is_some_and(|module| module.rewritten);
        let known = module.and_then(|module| module.kernels.get(kernel));
        let info = known.ok_or("the kernel is not in the module's PTX")?;
        let selected = names::selected(&self.options.kernels, kernel);
        const NOT_SELECTED: &str = "not selected by --kernel-name";
        let bare = !rewritten || !info.instrumented;
        if bare && self.listens() {
            if !selected {
                return Err(NOT_SELECTED.into());
            }
            begun.scrutiny = Some(Scrutiny::Everything);
            return Ok(());
        }
        if !info.instrumented {
            return Err(info.why_not.clone().unwrap_or_default());
        }
        begun.release_capable = info.release_capable;
        begun.journaled = info.journaled;
        // The fence rule wants an acquire, which the scoped model does without.
        let counted = self.options.mode == Mode::Fast
            && self.options.model != Some(Model::Scoped)
            && info.orders_counted;
        if self.options.mode == Mode::Precise && self.listens() && selected {
            begun.scrutiny = Some(match is_for_host(info) {
                true => Scrutiny::Everything,
                false if info.may_access_shared => Scrutiny::Shared,
                false => Scrutiny::Barriers,
            });
        }
        let shape = Shape {
            ctas: extent.grid.iter().map(|&n| u64::from(n)).product(),
            window_bytes: 0,
            index_bits: 0,
            granule_log2: info.granule_log2,
            // Entries of the journal are counted in the place of barriers.
            barriers: info.barriers || info.journaled,
            warp_barriers: info.warp_barriers && !info.journaled,
            grid_barriers: info.grid_barriers && !info.journaled,
        };
        // A witness tells that many CTAs apart.
        begun.fence_rule = counted && shape.ctas <= WITNESS_CTA_MASK + 1;
        let shared = info.shared_granule_log2.map(|granule_log2| SharedShape {
            bytes: u64::from(extent.shared),
            granule_log2,
        });
        let armed = if selected {
            let window = self.allocations.window();
            let order = match () {
                () if info.journaled => Order::Journal,
                () if begun.fence_rule => Order::FenceRule,
                () => Order::Barriers,
            };
            self.shadow.arm(device, window, (shared, order), shape)
        } else {
            Err(NOT_SELECTED.into())
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

    /// Whether happens-before listens to the simulated device.
    fn listens(&self) -> bool {
        match self.options.mode {
            Mode::Full => true,
            Mode::Precise => !self.options.journal,
            Mode::Fast => false,
        }
    }

    /// Bytes of the kernel's granules of global and of shared memory.
    pub(crate) fn granules(&self, begun: &Begun) -> (u32, u32) {
        let module = self.modules.get(&begun.launch.module);
        let kernel = module.and_then(|module| module.kernels.get(&begun.launch.kernel));
        let global = kernel.map_or(2, |kernel| kernel.granule_log2);
        let shared = kernel.and_then(|kernel| kernel.shared_granule_log2);
        (1 << global, 1 << shared.unwrap_or(2))
    }

    /// What the cells have recorded in the last launch, whoever judges it.
    pub(crate) fn recorded(&mut self, device: &dyn Device) -> (Vec<Record>, log::Counters) {
        let drained = self.shadow.drain(device).unwrap_or_default();
        let counters = drained.counted(false);
        let records = drained.records.into_iter().map(|(record, _)| record);
        (records.collect(), counters)
    }

    /// Writes down what a launch found, also when it failed.
    pub(crate) fn end(
        &mut self,
        device: &dyn Device,
        begun: Begun,
        outcome: Outcome,
        judged: Option<Judged>,
    ) {
        let mut launch = begun.launch.clone();
        launch.seconds = begun.started.elapsed().as_secs_f64();
        launch.warp_instructions = outcome.warp_instructions;
        launch.thread_instructions = outcome.thread_instructions;
        launch.sectors = outcome.sectors;
        launch.error = outcome.error;
        launch.unsupported = outcome.unsupported;
        launch.error_frames = outcome.error_frames;
        let mut drained = Drained::default();
        if launch.checked && begun.parameter.is_some() {
            match self.shadow.drain(device) {
                Ok(found) => drained = found,
                Err(error) => self.note(format!("cannot read the race records: {error}")),
            }
        }
        launch.counters = drained.counted(launch.counters.cleared);
        // Where the oracle has judged global memory, the cells' conflicts were candidates.
        let settled = begun.scrutiny == Some(Scrutiny::Everything) || begun.journaled;
        if begun.scrutiny == Some(Scrutiny::Everything) {
            let counters = &mut launch.counters;
            (counters.undecided, counters.outside, counters.evictions) = (0, 0, 0);
        }
        for (record, count) in drained.records.iter().filter(|_| !settled) {
            let mut race = self.race(&launch, begun.is_decided(record), record, *count);
            if let (Some(judged), Some(module)) = (&judged, self.modules.get(&launch.module)) {
                let line = |site| module.lines.get(&site).copied().unwrap_or(0);
                let lines = [race.previous_site, race.site].map(line);
                told::values(&launch, judged, lines, &self.allocations, &mut race);
            }
            self.write(Event::Race(Box::new(race)));
        }
        if let Some(judged) = judged {
            launch.clocks = judged.clocks();
            launch.counters.dropped += judged.dropped;
            launch.counters.conflicts = match settled {
                true => judged.found.iter().map(|found| found.count).sum(),
                false => launch.counters.conflicts,
            };
            self.judged(&launch, &judged);
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
            space: match is_shared(record) {
                true => log::Space::Shared,
                false => log::Space::Global,
            },
            why: log::Why::Unordered,
            locks: Vec::new(),
            address: record.address,
            allocation: match is_shared(record) {
                true => None,
                false => self.allocations.find(record.address).cloned(),
            },
            thread: thread(launch, record.cta, record.thread),
            previous_thread: previous,
            previous_block: (record.previous_cta != UNKNOWN)
                .then(|| thread(launch, record.previous_cta, 0).block),
            ..log::Race::default()
        }
    }

    fn write(&mut self, event: Event) {
        // The log's folder was writable when the process started. If it no longer is, the program
        // goes on and the missing events show as an incomplete run.
        let _ = self.writer.write(event);
    }
}

/// True when the cells cannot decide all races of a kernel, so that happens-before has to.
fn is_for_host(info: &rewrite::KernelInfo) -> bool {
    info.release_capable || info.beyond_cells || !info.not_understood.is_empty()
}

pub(crate) fn is_shared(record: &Record) -> bool {
    record.access & ACCESS_SHARED != 0
}

/// Indices from linear numbers, x fastest.
pub(crate) fn thread(launch: &log::Launch, cta: u32, thread: u32) -> Thread {
    let split = |n: u32, dims: [u32; 3]| {
        let (x, y) = (dims[0].max(1), dims[1].max(1));
        [n % x, n / x % y, n / x / y]
    };
    Thread {
        block: split(cta, launch.grid),
        thread: split(thread, launch.block),
    }
}
