//! One checked process: rewrites modules as they load, arms launches, and writes down what they
//! found.

pub mod exploration;
mod judge;
mod launch;
mod nested;
mod streams;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use driver::Device;
use ptx::Parsed;
use report::names::VARIABLE;
use report::replay::Step;
use shadow::layout::{ACCESS_SHARED, Record, UNKNOWN};
use shadow::rule;

use self::exploration::{Cost, Exploration};
use crate::aliases::{Aliases, Mapping};
use crate::allocations::Allocations;
use crate::choice::Chooser;
use crate::code::{Code, FIRST_SITE};
use crate::findings::{Explored, Findings};
use crate::host_calls::HostCalls;
use crate::log::{self, Event, Level, Thread, Writer};
use crate::names;
use crate::options::{Options, Prove};
use crate::proofs::{Raced, RacedPair};
use crate::repair::Pair;
use crate::shadow_memory::{Conflict, Drained, ShadowMemory};
use crate::source_position;
use crate::streams::Streams;
use crate::variables::{self, SharedVariable};

pub use self::launch::{Busy, Extent, Invocation, LaunchOutcome, PendingLaunch};
pub use self::nested::Ancestor;

/// Number of a module in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleKey(pub u32);

/// A module made ready for loading.
#[derive(Clone)]
pub struct Prepared {
    /// What to call it in [`Checker::begin`].
    pub key: ModuleKey,
    /// What to load.
    pub code: Arc<Code>,
}

impl Prepared {
    /// Whether a text with checks is to be loaded in place of the program's own.
    pub fn has_checks(&self) -> bool {
        self.code.is_rewritten()
    }
}

struct Module {
    origin: String,
    code: Arc<Code>,
    kernels: HashMap<String, rewrite::KernelInfo>,
    /// Variables of kernels in shared memory, where the device reports them.
    shared: HashMap<String, Vec<SharedVariable>>,
    /// Sites in the log of the accesses that the happens-before engine has named.
    named: HashMap<u32, u32>,
    /// Kernels whose own code the driver does not give.
    without_own: HashSet<String>,
    /// By kernel: the pairs that have raced in earlier launches, as far apart as threads can be.
    known: HashMap<String, Raced>,
}

/// Checks the launches of one device.
pub struct Checker {
    options: Options,
    chooser: Chooser,
    host_calls: HostCalls,
    writer: Writer,
    modules: HashMap<u32, Module>,
    next_site: u32,
    launches: u64,
    /// Modules whose sites are not in the log: it has them from the first race on, as they take long to write.
    undescribed: Vec<u32>,
    /// Sites of the races so far.
    races: HashSet<[u32; 2]>,
    allocations: Allocations,
    /// Memory that the program has mapped.
    aliases: Arc<Aliases>,
    /// The report says that memory with several addresses is not checked.
    reported_aliases: bool,
    /// By the memory that they lie in.
    shadows: BTreeMap<u64, ShadowMemory>,
    started: bool,
    streams: Streams,
    /// Sites in the log of calls on the host.
    calls: HashMap<u32, u32>,
    /// The user knows that work of different streams was not compared.
    reported_uncompared: bool,
    /// The report says that accesses of the host are not watched everywhere.
    reported_unwatched: bool,
    /// The grids whose requests are being run, each launched by the one before.
    ancestors: Vec<Ancestor>,
    /// Requests of grids so far.
    requests: u64,
    /// Source of the instructions that make them, by module and offset.
    callers: HashMap<(u32, u32), Vec<log::Frame>>,
    /// What would repair a race is read.
    advises: bool,
    /// How much the witnesses of pairs of sites say whose launches are recorded.
    recorded: HashMap<[u32; 2], log::Rank>,
    /// A race says more than those of recorded launches.
    says_more: bool,
    /// Kernels whose first launch has ended, where that is recorded.
    launched: HashSet<String>,
    /// Launches that run again under other schedules.
    exploration: Exploration,
}

impl Checker {
    /// Starts a log in `writer`.
    pub fn new(options: Options, writer: Writer) -> Self {
        Self {
            chooser: Chooser::new(options.choice.clone()),
            host_calls: HostCalls::default(),
            writer,
            modules: HashMap::new(),
            next_site: FIRST_SITE,
            launches: 0,
            undescribed: Vec::new(),
            races: HashSet::new(),
            allocations: Allocations::default(),
            aliases: Arc::default(),
            reported_aliases: false,
            shadows: BTreeMap::new(),
            started: false,
            streams: Streams::new(options.listens() && options.prove == Prove::Off),
            options,
            calls: HashMap::new(),
            reported_uncompared: false,
            reported_unwatched: false,
            ancestors: Vec::new(),
            requests: 0,
            callers: HashMap::new(),
            advises: true,
            recorded: HashMap::new(),
            says_more: false,
            launched: HashSet::new(),
            exploration: Exploration::default(),
        }
    }

    /// Races say nothing of what would repair them, nor that the text stores the same value twice: for tests
    /// that compare verdicts.
    pub fn without_advice(mut self) -> Self {
        self.advises = false;
        self
    }

    /// Knows these allocations, and counts launches on from these: as another checker did before a launch.
    pub fn resuming(self, allocations: Allocations, launches: u64) -> Self {
        Self {
            allocations,
            launches,
            ..self
        }
    }

    /// What is known of the program's memory.
    pub fn allocations(&self) -> &Allocations {
        &self.allocations
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

    /// The next module that is loaded, with its checks.
    pub fn code(&self, text: impl Into<Parsed>) -> Code {
        Code::new(text, &self.options, self.next_site)
    }

    /// Makes a module ready. What cannot be checked is given back as it was.
    pub fn prepare(&mut self, text: impl Into<Parsed>, origin: &str) -> Prepared {
        self.take(Arc::new(self.code(text)), origin)
    }

    /// Takes a module that has been made ready, and gives it back as it is to be loaded: with sites of its own where
    /// other modules have taken those that it was prepared with.
    pub fn take(&mut self, code: Arc<Code>, origin: &str) -> Prepared {
        let key = ModuleKey(self.modules.len() as u32 + 1);
        let wanted = self
            .options
            .check
            .then(|| self.options.rewriting(self.next_site));
        let code = match code.config == wanted {
            true => code,
            false => Arc::new(Code::new(code.own(), &self.options, self.next_site)),
        };
        if code.config.is_some() {
            self.introduce(key, &code, origin);
        }
        let kernels = code.rewriting.kernels.iter();
        let module = Module {
            origin: origin.to_owned(),
            kernels: kernels.map(|k| (k.name.clone(), k.clone())).collect(),
            code: Arc::clone(&code),
            named: HashMap::new(),
            shared: HashMap::new(),
            without_own: HashSet::new(),
            known: HashMap::new(),
        };
        self.modules.insert(key.0, module);
        Prepared { key, code }
    }

    /// Writes down what there is to know of a module with checks.
    fn introduce(&mut self, key: ModuleKey, code: &Code, origin: &str) {
        for remark in &code.remarks {
            self.note(format!("{origin}:{remark}"));
        }
        self.next_site += code.rewriting.sites.len() as u32;
        self.write(Event::Module(Box::new(log::Module {
            rewrite_seconds: code.seconds,
            ..names::module(key.0, origin, &code.rewriting, self.listens())
        })));
        self.undescribed.push(key.0);
        if code.loads_checks()
            && let Some(target) = &code.rewriting.raised
        {
            self.note(format!(
                "{origin}: compiled for {target}, but checked as for sm_70, where the lanes of a warp do not run in lockstep"
            ));
        }
    }

    /// The rewritten text was refused: the program's own runs unchecked.
    pub fn give_up(&mut self, key: ModuleKey, why: &str) {
        let listens = self.listens();
        let Some(module) = self.modules.get_mut(&key.0) else {
            return;
        };
        module.code = Arc::new(Code::unchecked(module.code.own()));
        for kernel in module.kernels.values_mut() {
            kernel.instrumented = false;
            kernel.why_not = Some(why.to_owned());
        }
        let recorded = log::Module {
            module: key.0,
            origin: module.origin.clone(),
            kernels: module
                .kernels
                .values()
                .map(|info| names::kernel(info, listens))
                .collect(),
            ..log::Module::default()
        };
        self.write(Event::Module(Box::new(recorded)));
    }

    /// A line of a module's loaded text as a line of the program's own PTX.
    pub fn original_line(&self, key: ModuleKey, line: u32) -> u32 {
        match self.modules.get(&key.0) {
            Some(module) if module.code.is_rewritten() => {
                source_position::original_line(module.code.text(), line)
            }
            _ => line,
        }
    }

    /// Source of a line of the program's own PTX, innermost inlined function first.
    pub fn source(&self, key: ModuleKey, original_line: u32) -> Vec<log::Frame> {
        let Some(module) = self.modules.get(&key.0) else {
            return Vec::new();
        };
        source_position::frames(module.code.module(), original_line)
    }

    /// Adds the source of steps of a module's code.
    pub fn locate_steps<'a>(&self, key: ModuleKey, steps: impl IntoIterator<Item = &'a mut Step>) {
        let Some(module) = self.modules.get(&key.0) else {
            return;
        };
        let mut known = HashMap::new();
        for step in steps {
            let line = step.ptx_line;
            let source = known.entry(line).or_insert_with(|| {
                let found = source_position::function_and_frames(module.code.module(), line);
                found.map(|(function, frames)| Step::source(&frames, &function))
            });
            if let Some(source) = source {
                step.frames.clone_from(source);
            }
        }
    }

    /// What memory of the device belongs to.
    pub fn allocation(&self, address: u64) -> Option<log::Allocation> {
        self.allocations.find(address).cloned()
    }

    /// The memory of the device that is nearest to an address in none.
    pub fn nearest(&self, address: u64) -> Option<log::Allocation> {
        self.allocations.nearest(address).cloned()
    }

    /// Where the hidden parameter of a kernel lies, if it has one.
    pub fn hidden_parameter(&self, key: ModuleKey, kernel: &str) -> Option<u32> {
        let module = self.modules.get(&key.0)?;
        let kernel = module.kernels.get(kernel)?;
        (module.code.is_rewritten() && kernel.instrumented).then_some(kernel.param_bytes)
    }

    /// Whether a module has kernels with checks for whose threads it is not known how much stack they need.
    pub fn has_unknown_stack(&self, key: ModuleKey) -> bool {
        let module = self.modules.get(&key.0);
        let module = module.filter(|module| module.code.is_rewritten());
        let mut kernels = module
            .into_iter()
            .flat_map(|module| module.kernels.values());
        kernels.any(|kernel| kernel.instrumented && kernel.stack_unknown)
    }

    fn listens(&self) -> bool {
        self.options.listens()
    }

    /// Bytes of the kernel's granules of global and of shared memory.
    pub(crate) fn granules(&self, pending: &PendingLaunch) -> (u32, u32) {
        let module = self.modules.get(&pending.launch.module);
        let kernel = module.and_then(|module| module.kernels.get(&pending.launch.kernel));
        let global = kernel.map_or(2, |kernel| kernel.granule_log2);
        let shared = kernel.and_then(|kernel| kernel.shared_granule_log2);
        (1 << global, 1 << shared.unwrap_or(2))
    }

    /// What the cells have recorded in the last launch, whether they judge it or not.
    pub(crate) fn recorded(
        &mut self,
        device: &dyn Device,
        pending: &PendingLaunch,
    ) -> (Vec<Record>, log::Counters) {
        let slot = pending.record_slot.unwrap_or(usize::MAX);
        let drained = self.shadow(device).drain(device, slot);
        let drained = drained.unwrap_or_default();
        let counters = drained.counted(log::Counters::default());
        let records = drained.records.into_iter().map(|of| of.first);
        (records.collect(), counters)
    }

    /// Writes down what a launch found, also when it failed. The name for its recording, if it is to be kept: it can be
    /// recorded, and has races that no recorded launch shows as well, or is the first of its kernel and the options want that.
    pub fn end(
        &mut self,
        device: &dyn Device,
        pending: PendingLaunch,
        outcome: LaunchOutcome,
        mut findings: Option<Findings>,
    ) -> Option<String> {
        let mut launch = pending.launch.clone();
        launch.seconds = outcome
            .seconds
            .unwrap_or_else(|| pending.started.elapsed().as_secs_f64());
        if launch.checked {
            self.chooser.spend(launch.seconds);
        }
        launch.program_bytes = self.allocations.bytes();
        launch.shadow_bytes = self.shadow(device).bytes();
        launch.warp_instructions = outcome.warp_instructions;
        launch.thread_instructions = outcome.thread_instructions;
        launch.sectors = outcome.sectors;
        launch.device_fences = outcome.device_fences;
        launch.error = outcome.error;
        launch.invalid = outcome.invalid;
        launch.unsupported = outcome.unsupported;
        launch.deadlock = outcome.deadlock;
        launch.stuck = outcome.stuck;
        launch.strays = outcome.strays;
        launch.error_frames = outcome.error_frames;
        launch.interrupted = outcome.interrupted;
        launch.unread = outcome.running && pending.journaled;
        launch.ended = outcome.ended;
        let mut drained = Drained::default();
        if let Some(slot) = pending.record_slot {
            let shadow = self.shadow(device);
            let found = match outcome.refused {
                true => Ok(Drained::default()),
                false if outcome.running => shadow.look(device, slot),
                false => shadow.drain(device, slot),
            };
            shadow.release(slot);
            match found {
                Ok(found) => drained = found,
                Err(error) => self.missed(format!("cannot read the race records: {error}")),
            }
        }
        launch.proof = pending.proved.as_ref().map(|of| {
            Box::new(log::Proof {
                nanoseconds: pending.proving.as_nanos() as u64,
                ..of.counts.clone()
            })
        });
        launch.executed = outcome.executed.map(|counts| {
            let listens = self.listens();
            let checked = launch.checked;
            let accesses = self
                .modules
                .get(&launch.module)
                .map(|of| of.code.accesses());
            let proved = pending.proved.as_deref();
            let executed = accesses.map(|of| {
                of.executed(&counts, proved, |has_check| {
                    checked && (listens || pending.journaled || has_check)
                })
            });
            executed.unwrap_or_default()
        });
        let cost = Cost {
            instructions: launch.warp_instructions,
            accesses: findings.as_ref().map_or(0, Findings::accesses),
            copied: 0,
        };
        self.exploration.ended(&launch.kernel, cost);
        launch.counters = drained.counted(launch.counters);
        // Where happens-before judges, the cells' conflicts were candidates.
        let settled = findings.is_some() || pending.journaled;
        let (mut races, mut refuted) = (Vec::new(), Vec::new());
        for conflict in drained.records.iter().filter(|_| !settled) {
            let mut race = self.race(&launch, &pending, conflict);
            race.at_least = self.note_known(&launch, &race);
            let mut lines = [0; 2];
            if let Some(module) = self.modules.get(&launch.module) {
                let line = |site| module.code.site(site).map_or(0, |site| site.ptx_line);
                lines = [race.previous_site, race.site].map(line);
            }
            let proved = pending.proved.as_deref().filter(|_| race.decided);
            refuted.extend(proved.and_then(|of| of.refuted(lines)));
            let (level, space) = (race.level, race.space);
            races.push((
                race,
                Pair {
                    lines,
                    level,
                    space,
                    flag_written: None,
                    own_flag: false,
                    flag_read: None,
                },
            ));
        }
        for text in refuted {
            self.tool_error(&launch, &text);
        }
        let pairs: Vec<Pair> = races.iter().map(|(_, pair)| *pair).collect();
        let module = self.modules.get(&launch.module).filter(|_| self.advises);
        let known = module.map_or_else(Vec::new, |module| module.code.known(&pairs));
        for (n, (mut race, _)) in races.into_iter().enumerate() {
            if let Some(known) = known.get(n) {
                known.clone().put_in(&mut race);
            }
            self.name_variables(&launch, &mut race);
            self.write(Event::Race(Box::new(race)));
        }
        let (instructions, touched) = match &mut findings {
            Some(findings) => (Some(findings.instructions.clone()), findings.touched.take()),
            None => (None, None),
        };
        self.launch_over(&pending, instructions, touched);
        if let Some(findings) = findings {
            launch.clocks = findings.clocks();
            launch.counters.dropped += findings.dropped;
            launch.counters.undecided += findings.doubts.undecided;
            if findings.under_versions > 0 {
                launch.unjudged = log::Unjudged::LocksAndVersions;
            }
            launch.counters.conflicts = findings.found.iter().map(|found| found.count).sum();
            let proved = pending.proved.as_deref();
            self.findings(&launch, &findings, None, proved);
            for Explored { seed, findings, .. } in &findings.explored {
                self.findings(&launch, findings, Some(*seed), proved);
            }
            launch.explored = findings.explored.len() as u32;
        }
        launch.recorded = self.recording(&launch, pending.recordable);
        let recorded = launch.recorded.clone();
        self.write(Event::Launch(Box::new(launch)));
        recorded
    }

    /// The name for the recording of a launch whose races have been written, if it is to be kept.
    fn recording(
        &mut self,
        launch: &log::Launch,
        recordable: Option<Result<(), String>>,
    ) -> Option<String> {
        let is_first = self.options.record_first && self.launched.insert(launch.kernel.clone());
        let races = std::mem::take(&mut self.says_more);
        if !races && !is_first {
            return None;
        }
        match recordable? {
            Ok(()) => {
                let seed = self.options.seed.unwrap_or(0);
                Some(format!("{}-{seed}-{}", std::process::id(), launch.launch))
            }
            Err(_) if !races => None,
            Err(why) => {
                let kernel = report::names::demangle(&launch.kernel);
                let number = launch.launch;
                self.note(format!(
                    "launch #{number} of {kernel} has a race, and is not recorded: {why}"
                ));
                None
            }
        }
    }

    /// Records memory that the program allocated by `api`, or of a module's variable.
    pub fn allocated(&mut self, base: u64, bytes: u64, api: &str) {
        self.allocations.insert(base, bytes, api);
    }

    /// Reports once that accesses of the host to memory that it shares with the device are not watched everywhere.
    pub fn host_is_not_watched(&mut self) {
        if self.options.check && !std::mem::replace(&mut self.reported_unwatched, true) {
            self.write(Event::HostUnwatched {});
        }
    }

    /// Records a variable of a module that kernels may write.
    pub fn allocated_variable(&mut self, name: &str, base: u64, bytes: u64) {
        self.allocated(base, bytes, &format!("{VARIABLE}{name}"));
    }

    /// Records memory that belongs to the program by the driver's word, unless some of it is known.
    pub fn found(&mut self, base: u64, bytes: u64) {
        self.allocations.insert_found(base, bytes);
    }

    /// Whether an address lies in memory that is known.
    pub fn knows(&self, address: u64) -> bool {
        self.allocations.find(address).is_some()
    }

    /// Records that the memory at `base` was freed.
    pub fn freed(&mut self, base: u64) {
        if let Some(gone) = self.allocations.remove(base) {
            self.streams.forget(base, gone.bytes);
        }
    }

    /// Records that memory is got again that was given back and stayed allocated: what is done with it from now on has
    /// nothing to do with what was done before.
    pub fn got_again(&mut self, base: u64, bytes: u64) {
        self.streams.forget(base, bytes);
    }

    /// Records that all memory in a range was freed.
    pub fn freed_within(&mut self, base: u64, bytes: u64) {
        self.allocations.remove_within(base, bytes);
        self.streams.forget(base, bytes);
    }

    /// The program has mapped memory.
    pub fn mapped(&mut self, mapping: Mapping) {
        Arc::make_mut(&mut self.aliases).map(mapping);
    }

    /// The program has unmapped a range.
    pub fn unmapped(&mut self, base: u64, bytes: u64) {
        Arc::make_mut(&mut self.aliases).unmap(base, bytes);
    }

    /// The number of the memory at an address that the program has mapped.
    pub fn mapped_at(&self, address: u64) -> Option<u64> {
        self.aliases.at(address).map(|of| of.memory)
    }

    /// The mappings, if some memory has several addresses.
    pub fn aliases(&self) -> Option<Arc<Aliases>> {
        self.aliases.exist().then(|| Arc::clone(&self.aliases))
    }

    /// Writes one line for the user.
    pub fn note(&mut self, text: impl Into<String>) {
        self.write(Event::Note { text: text.into() });
    }

    /// Logs further launches of a kernel without PTX. `kernel` is its mangled name.
    pub fn without_ptx(&mut self, kernel: &str, why: &str, launches: u64) {
        self.write(Event::WithoutPtx {
            kernel: kernel.to_owned(),
            why: why.to_owned(),
            launches,
        });
    }

    /// Writes that something of the run is not checked.
    pub fn missed(&mut self, text: impl Into<String>) {
        self.write(Event::Missed { text: text.into() });
    }

    /// Writes that a launch has shown an error of the tool.
    fn tool_error(&mut self, launch: &log::Launch, text: &str) {
        let text = format!("launch #{} of {}: {text}", launch.launch, launch.kernel);
        self.write(Event::ToolError { text });
    }

    /// The shadow in the memory of a device.
    fn shadow(&mut self, device: &dyn Device) -> &mut ShadowMemory {
        let of = &self.options;
        let new = || ShadowMemory::new(of.shadow, of.records, of.sample);
        self.shadows.entry(device.memory_id()).or_insert_with(new)
    }

    /// The memory of a device is gone, and the shadow with it.
    pub fn memory_gone(&mut self, memory_id: u64) {
        self.shadows.remove(&memory_id);
    }

    /// Gives cells and journal back to a program that has no memory left; false when there are none, or
    /// launches need them.
    pub fn yield_cells(&mut self, device: &mut dyn Device) -> bool {
        let yielded = self.shadow(device).yield_cells(device);
        if let Some(what) = yielded {
            self.note(format!(
                "the program has no device memory left, so half of {what} was given back"
            ));
        }
        yielded.is_some()
    }

    fn start(&mut self, device: &dyn Device) {
        if !self.started {
            self.started = true;
            self.write(Event::Start {
                pid: std::process::id(),
                argv: std::env::args_os()
                    .map(|word| word.to_string_lossy().into_owned())
                    .collect(),
                device: device.name(),
                seed: self.options.seed,
                checking: self.options.check,
            });
        }
    }

    fn race(
        &self,
        launch: &log::Launch,
        pending: &PendingLaunch,
        conflict: &Conflict,
    ) -> log::Race {
        let Conflict {
            first: record,
            count,
            span,
        } = conflict;
        let in_shared = |address| pending.in_shared(0, address);
        let span = match (is_shared(record), span.map(in_shared)) {
            (false, _) => *span,
            (true, [low, high]) if low.owner == high.owner => [low.offset, high.offset],
            // The shared memory of several blocks.
            (true, _) => [0, u64::MAX],
        };
        let module = self.modules.get(&launch.module);
        let writes = |site| Some(module?.code.site(site)?.op.is_write());
        let previous = (record.previous_cta != UNKNOWN && record.previous_thread != UNKNOWN)
            .then(|| thread(launch, record.previous_cta, record.previous_thread));
        log::Race {
            launch: launch.launch,
            decided: pending.is_decided(record),
            level: match record.verdict {
                rule::CONFLICT_GRID => Level::Grid,
                rule::CONFLICT_CTA => Level::Cta,
                _ => Level::Warp,
            },
            site: record.site,
            previous_site: record.previous_site,
            count: *count,
            space: match is_shared(record) {
                true => log::Space::Shared,
                false => log::Space::Global,
            },
            why: log::Why::Unordered,
            locks: Vec::new(),
            address: match is_shared(record) {
                true => in_shared(record.address).offset,
                false => record.address,
            },
            span,
            allocation: match is_shared(record) {
                true => None,
                false => self.allocations.find(record.address).cloned(),
            },
            thread: thread(launch, record.cta, record.thread),
            previous_thread: previous,
            later_block: previous.is_some()
                && record.previous_cta < record.cta
                && writes(record.previous_site) == Some(false)
                && writes(record.site) == Some(true),
            previous_block: (record.previous_cta != UNKNOWN)
                .then(|| thread(launch, record.previous_cta, 0).block),
            ..log::Race::default()
        }
    }

    /// A race that cells have found is known in later launches of its kernel, if its threads are as far apart as they
    /// can be. Whether later launches look for it no longer.
    fn note_known(&mut self, launch: &log::Launch, race: &log::Race) -> bool {
        let space = race.space;
        let farthest = match space {
            log::Space::Global => Level::Grid,
            log::Space::Shared => Level::Cta,
        };
        let Some(module) = self.modules.get_mut(&launch.module) else {
            return false;
        };
        let provable = module.kernels.get(&launch.kernel).is_some_and(|of| of.own);
        let skips = self.options.prove == Prove::On && !self.options.look_again;
        // What a later block overwrites may be right in this launch and wrong in a later one.
        let same = race.decided && race.level == farthest && !race.later_block;
        if !provable || !same || !skips {
            return false;
        }
        let offset = |site| module.code.site(site).map(|site| site.offset);
        let (Some(a), Some(b)) = (offset(race.site), offset(race.previous_site)) else {
            return false;
        };
        let known = module.known.entry(launch.kernel.clone()).or_default();
        known.insert(RacedPair {
            space,
            offsets: [a.min(b), a.max(b)],
        });
        true
    }

    /// The variables that a kernel has in shared memory, in a launch of this size.
    pub fn set_shared(&mut self, key: ModuleKey, kernel: &str, variables: Vec<SharedVariable>) {
        if let Some(module) = self.modules.get_mut(&key.0) {
            module.shared.insert(kernel.to_owned(), variables);
        }
    }

    /// Names the variables that a race of a launch is about, and says whether it was in other memory too.
    fn name_variables(&self, launch: &log::Launch, race: &mut log::Race) {
        let Some(module) = self.modules.get(&launch.module) else {
            return;
        };
        let (own, variables) = (module.code.module(), module.code.variables());
        let shared = module.shared.get(&launch.kernel);
        let shared = shared.map_or(&[][..], Vec::as_slice);
        let name = |space, address, allocation: &mut Option<log::Allocation>| {
            variables.name(own, shared, space, address, allocation);
        };
        if !matches!(race.why, log::Why::Misuse(_)) {
            name(race.space, race.address, &mut race.allocation);
            let maker = race.allocation.as_ref().map(|of| of.api.as_str());
            race.elsewhere = match race.space {
                log::Space::Global => self.allocations.made_by_others(race.span, maker),
                log::Space::Shared => variables::made_by_others(shared, race.span, maker),
            };
        }
        if let Some(flag) = &mut race.flag {
            name(flag.space, flag.address, &mut flag.allocation);
        }
        for held in race.locks.iter_mut().flatten() {
            name(held.space, held.address, &mut held.allocation);
        }
    }

    /// Pairs of accesses that have raced in the launches that have ended.
    pub fn races(&self) -> u64 {
        self.races.len() as u64
    }

    /// Writes down the checked accesses of all modules so far.
    fn describe(&mut self) {
        for key in std::mem::take(&mut self.undescribed) {
            let module = self.modules.get(&key);
            let sites = module.map_or(&[][..], |module| &module.code.rewriting.sites);
            if !sites.is_empty() {
                let sites = sites.iter().map(names::site).collect();
                self.writer.write(Event::Sites { module: key, sites });
            }
        }
    }

    /// The lines in the PTX of all checked accesses, by site.
    pub(crate) fn lines(&self) -> HashMap<u32, u32> {
        let modules = self.modules.values();
        let sites = modules.flat_map(|module| &module.code.rewriting.sites);
        sites.map(|site| (site.id, site.ptx_line)).collect()
    }

    fn write(&mut self, event: Event) {
        if let Event::Race(race) = &event {
            // What a barrier is misused for has no memory.
            let misused = matches!(race.why, log::Why::Misuse(_));
            if !misused && !self.chooser.reports(race.space) {
                return;
            }
            self.describe();
            let sites = [race.previous_site, race.site];
            self.races.insert(sites);
            if self.options.record.is_some() && race.work.is_empty() && race.schedule.is_none() {
                let known = self.recorded.get(&sites);
                if known.is_none_or(|known| race.rank() > *known) {
                    self.recorded.insert(sites, race.rank());
                    self.says_more = true;
                }
            }
        }
        self.writer.write(event);
    }
}

pub(crate) fn is_shared(record: &Record) -> bool {
    record.access & ACCESS_SHARED != 0
}

/// Indices from linear numbers, x fastest.
pub fn thread(launch: &log::Launch, cta: u32, thread: u32) -> Thread {
    let split = |n: u32, dims: [u32; 3]| {
        let (x, y) = (dims[0].max(1), dims[1].max(1));
        [n % x, n / x % y, n / x / y]
    };
    Thread {
        block: split(cta, launch.grid),
        thread: split(thread, launch.block),
    }
}
