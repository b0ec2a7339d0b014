//! Launches: what is asked of a device before one starts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::Device;
use shadow::layout::{ACCESS_POSSIBLE, Record, UNWRITTEN_WORDS, WITNESS_CTA_MASK};
use shadow::plan::Shape;

use super::{Checker, ModuleKey};
use crate::log;
use crate::options::{Mode, Model, Prove};
use crate::phases::SharedPlace;
use crate::proofs::{Assumptions, Depth, Proved, Raced};
use crate::shadow_memory::{OrderJudge, Refused, SharedShape, Watched};
use crate::streams::At;

/// Bytes of a CTA's window of shared memory that a device may keep for itself.
const SYSTEM_SHARED: u32 = 1024;
/// Bytes between static and dynamic shared memory, at most.
const MOST_ALIGNMENT: u32 = 1024;

/// Why the node of a graph is not checked whose launch has been proved.
const NO_LONGER_PROVED: &str =
    "its memory was freed or allocated anew after its graph was made executable";

/// The size of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// CTAs of a cluster in x, y and z; zeroes without clusters.
    pub cluster: [u32; 3],
    /// CTAs in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y and z.
    pub block: [u32; 3],
    /// Bytes of a CTA's shared memory, whatever the device keeps for itself included.
    pub shared: u32,
    /// Bytes of dynamic shared memory that the launch asks for.
    pub dynamic_shared: u32,
}

/// A kernel, and how a program launches it.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// Its module.
    pub key: ModuleKey,
    /// Its mangled name.
    pub kernel: &'a str,
    /// The size of the launch.
    pub extent: Extent,
    /// Values of its parameters, as its PTX lays them out: as many bytes as are known. Of a value that is
    /// not known, all loads are checked.
    pub parameters: &'a [u8],
}

impl Invocation<'_> {
    /// Whether grid and blocks extend along x only, whatever happens to the launch until it begins. Kernels on the
    /// device may change the grid of a graph's node as well as its parameters, which are not known then.
    fn is_flat(&self) -> bool {
        let Extent { grid, block, .. } = self.extent;
        !self.parameters.is_empty() && [grid, block].iter().all(|of| of[1..] == [1, 1])
    }
}

impl Extent {
    /// The same for a kernel that declares so many bytes of shared memory: [`Extent::shared`] is what this and dynamic
    /// shared memory take at most.
    pub fn with_static_shared(self, bytes: u32) -> Self {
        let gap = match bytes.min(self.dynamic_shared) {
            0 => 0,
            _ => MOST_ALIGNMENT,
        };
        let sizes = [bytes, self.dynamic_shared, gap, SYSTEM_SHARED];
        let shared = sizes.into_iter().fold(0, u32::saturating_add);
        Self { shared, ..self }
    }
}

/// What the device reports about a launch that ended.
#[derive(Clone, Debug, Default)]
pub struct LaunchOutcome {
    /// Executed warp instructions.
    pub warp_instructions: u64,
    /// Time on the device in seconds, where the device reports it.
    pub seconds: Option<f64>,
    /// Executed thread instructions.
    pub thread_instructions: u64,
    /// 32-byte sectors of global memory.
    pub sectors: u64,
    /// Fences, acquires and releases of gpu or sys scope.
    pub device_fences: u64,
    /// How often its threads have executed the instructions that access memory, by their byte offset in the loaded
    /// text, where the device reports it.
    pub executed: Option<BTreeMap<u32, u64>>,
    /// How it failed.
    pub error: Option<String>,
    /// It has never begun, so it has left nothing.
    pub refused: bool,
    /// It has never begun, because it asks for what its kernel or the device does not allow, checked or not.
    pub invalid: bool,
    /// It failed because the device lacks an instruction.
    pub unsupported: bool,
    /// It failed because all threads left waited for others.
    pub deadlock: bool,
    /// The threads that wait then, and what they wait for, where the device reports it.
    pub stuck: Option<Box<log::Stuck>>,
    /// Accesses outside of all memory, after which it went on.
    pub strays: Vec<log::Stray>,
    /// A signal has interrupted it.
    pub interrupted: bool,
    /// CTAs that had ended by then, where the device reports it.
    pub ended: Option<u64>,
    /// It may still run: only what lies in memory of the host is read.
    pub running: bool,
    /// Source lines of the instruction it failed at, innermost inlined function first.
    pub error_frames: Vec<log::Frame>,
}

/// A launch in flight.
#[derive(Debug)]
pub struct PendingLaunch {
    /// Value of the hidden parameter; none when the kernel has none.
    pub parameter: Option<u64>,
    /// Where the launch has its records, if it is checked on the device.
    pub(super) record_slot: Option<usize>,
    /// Where addresses in shared memory say whose it is, behind the offset.
    owner_shift: Option<u32>,
    /// Its position among the work of all streams, where that is known.
    pub(crate) at: Option<At>,
    pub(super) launch: log::Launch,
    release_capable: bool,
    /// The kernel keeps a journal, for happens-before to decide.
    pub(super) journaled: bool,
    /// The fence rule says which of the conflicts are races.
    fence_rule: bool,
    /// The cells judge the kernel, and can decide all its races.
    by_cells: bool,
    /// What the launch's arguments prove.
    pub(super) proved: Option<Arc<Proved>>,
    /// What the user's assumptions are in the launch, and what is proved of all launches that fulfil them.
    pub(super) assumed: Option<Assumptions>,
    /// How long the proof took.
    pub(super) proving: Duration,
    /// It runs the program's own code of its kernel, not that with checks.
    own: bool,
    /// Whether it can be recorded, or why not, where that was asked for.
    pub(super) recordable: Option<Result<(), String>>,
    pub(super) started: Instant,
}

/// A launch cannot be armed while others are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl PendingLaunch {
    /// The launch's number in the process, from 1.
    pub fn number(&self) -> u64 {
        self.launch.launch
    }

    /// Its position among the work of all streams.
    pub fn set_position(&mut self, at: Option<At>) {
        self.at = at;
    }

    /// The position that it was given.
    pub fn at(&self) -> Option<&At> {
        self.at.as_ref()
    }

    /// It can be recorded, or cannot, for the reason given.
    pub fn set_recordable(&mut self, recordable: Result<(), String>) {
        self.recordable = Some(recordable);
    }

    /// A kernel has launched it.
    pub fn set_launcher(&mut self, by: Option<log::Launcher>) {
        self.launch.launched_by = by;
    }

    /// Whether the launch is checked.
    pub fn is_checked(&self) -> bool {
        self.launch.checked
    }

    /// Whether the device checks it, with cells or a journal.
    pub(crate) fn is_on_device(&self) -> bool {
        self.record_slot.is_some()
    }

    /// Others ran beside the launch and used the same cells, if it uses any.
    pub fn overlaps(&mut self) {
        self.launch.counters.overlapped = self.is_on_device();
    }

    /// Whether happens-before listens to it.
    pub fn is_listened(&self) -> bool {
        self.launch.judge == log::Judge::HappensBefore
    }

    /// Whether it runs the program's own code of its kernel, under the [name](rewrite::own::name) that this has beside
    /// the code with checks, and so without the hidden parameter.
    pub fn runs_own(&self) -> bool {
        self.own
    }

    /// Whether its arguments prove that it has no races.
    pub(crate) fn is_proved(&self) -> bool {
        self.launch.judge == log::Judge::Proof
    }

    /// Whether the cells judge.
    pub(crate) fn cells_decide(&self) -> bool {
        self.by_cells
    }

    /// Whether the kernel can order threads unseen by the cells.
    pub(crate) fn is_release_capable(&self) -> bool {
        self.release_capable
    }

    /// Where an address in shared memory is, as a thread of `cta` has it.
    pub(crate) fn in_shared(&self, cta: u64, address: u64) -> SharedPlace {
        let (owner, offset) = match self.owner_shift {
            Some(shift) => (address >> shift, address & ((1 << shift) - 1)),
            None => (cta, address),
        };
        SharedPlace { owner, offset }
    }

    /// Whether a conflict of cells is known to be a race.
    pub(crate) fn is_decided(&self, record: &Record) -> bool {
        !self.release_capable || self.fence_rule && record.access & ACCESS_POSSIBLE == 0
    }
}

impl Checker {
    /// Arms a launch. On a device with several launches in flight it may stay
    /// unchecked; see [`Checker::try_begin`].
    pub fn begin(&mut self, device: &mut dyn Device, invocation: Invocation<'_>) -> PendingLaunch {
        match self.try_begin(device, invocation, None) {
            Ok(pending) => pending,
            Err(Busy) => {
                let why = "other launches are in flight and have not ended";
                self.begin_unchecked(device, invocation, why)
            }
        }
    }

    /// Arms a launch, in the record slot that the node of a graph keeps or in a free one. Without its
    /// parameters, every load is checked.
    ///
    /// # Errors
    /// When others have to end first.
    pub fn try_begin(
        &mut self,
        device: &mut dyn Device,
        invocation: Invocation<'_>,
        kept: Option<usize>,
    ) -> Result<PendingLaunch, Busy> {
        let Invocation { key, kernel, .. } = invocation;
        self.start(device);
        let mut pending = self.pending(invocation);
        match self.arm(device, invocation, kept, &mut pending) {
            Ok(()) => {
                pending.launch.checked = true;
                self.report_aliases(&pending);
            }
            Err(Refused::Busy) => return Err(Busy),
            Err(Refused::Cannot(why)) => {
                // The node has its record slot as a parameter, and runs all the same.
                if let Some(record_slot) = kept {
                    self.shadow(device).disarm(device, record_slot);
                }
                pending.own = kept.is_none() && self.has_own(key, kernel);
                pending.launch.why_not = Some(why);
            }
        }
        self.log_begin(&mut pending);
        pending.started = Instant::now();
        Ok(pending)
    }

    /// A launch that is not checked, for the reason given.
    pub fn begin_unchecked(
        &mut self,
        device: &mut dyn Device,
        invocation: Invocation<'_>,
        why: &str,
    ) -> PendingLaunch {
        let Invocation { key, kernel, .. } = invocation;
        self.start(device);
        let mut pending = self.pending(invocation);
        self.log_begin(&mut pending);
        let not_chosen = pending.launch.not_chosen;
        let why = not_chosen.map_or(why, |chosen| chosen.text());
        pending.launch.why_not = Some(why.to_owned());
        pending.own = self.has_own(key, kernel);
        if self.hidden_parameter(key, kernel).is_some() {
            pending.parameter = self.idle(device);
        }
        pending
    }

    /// A record slot for the node of a graph, and the value of its hidden parameter; see
    /// [`ShadowMemory::keep_slot`](crate::shadow_memory::ShadowMemory::keep_slot).
    ///
    /// # Errors
    /// Why there is none.
    pub fn keep_slot(&mut self, device: &mut dyn Device) -> Result<(usize, u64), String> {
        self.shadow(device).keep_slot(device)
    }

    /// Whether a launch would find a record slot without more memory.
    pub fn has_slot(&mut self, device: &dyn Device) -> bool {
        self.shadow(device).has_slot()
    }

    /// The device has been asked for a launch: asks for what it will have found.
    pub fn fetch(&mut self, device: &mut dyn Device, pending: &PendingLaunch) {
        if let Some(record_slot) = pending.record_slot {
            self.shadow(device).fetch(device, record_slot);
        }
    }

    /// So many launches are armed next, all before the first of them can end.
    pub fn expect(&mut self, device: &dyn Device, launches: usize) {
        self.shadow(device).expect(launches);
    }

    /// The node of a graph is gone, and so are its launches: others may have its record slot.
    pub fn free_slot(&mut self, device: &dyn Device, record_slot: usize) {
        self.shadow(device).free_slot(record_slot);
    }

    /// A launch of the node of a graph that is not checked, for the reason given.
    pub fn skip_kept(
        &mut self,
        device: &mut dyn Device,
        invocation: Invocation<'_>,
        record_slot: usize,
        why: &str,
    ) -> PendingLaunch {
        self.shadow(device).disarm(device, record_slot);
        self.begin_unchecked(device, invocation, why)
    }

    /// The hidden parameter of launches that are not checked, if the device has memory for it.
    pub fn idle(&mut self, device: &mut dyn Device) -> Option<u64> {
        self.shadow(device).idle(device).ok()
    }

    /// Races of a launch that may still run, as far as they lie in memory of the host.
    pub(crate) fn found_so_far(&mut self, device: &dyn Device, pending: &PendingLaunch) -> u64 {
        let shadow = self.shadow(device);
        let found = pending
            .record_slot
            .map(|record_slot| shadow.look(device, record_slot));
        found.map_or(0, |found| {
            found.map_or(0, |found| found.records.len() as u64)
        })
    }

    /// What a launch finds cannot be read; its record slot stays taken, because it may still run.
    pub fn abandon(&mut self, pending: PendingLaunch, why: &str) {
        let mut launch = pending.launch;
        launch.checked = false;
        launch.judge = log::Judge::Nobody;
        launch.why_not = Some(why.to_owned());
        self.write(log::Event::Launch(Box::new(launch)));
    }

    /// The number of the list of calls on the host that the calling thread is in; 0 where that is not to be known.
    pub(super) fn host_calls_here(&mut self) -> u32 {
        if !self.options.host_calls {
            return 0;
        }
        let (number, new) = self.host_calls.here();
        new.into_iter().for_each(|event| self.write(event));
        number
    }

    /// Counts a launch, and writes down that it is about to begin.
    fn log_begin(&mut self, pending: &mut PendingLaunch) {
        if self.options.check {
            pending.launch.host_calls = self.host_calls_here();
        }
        self.launches += 1;
        let launch = &pending.launch;
        self.chooser.started(&launch.kernel, launch.not_chosen);
        let launch = &pending.launch;
        self.write(log::Event::Pending(Box::new(log::Pending {
            launch: launch.launch,
            kernel: launch.kernel.clone(),
            grid: launch.grid,
        })));
    }

    /// Whether the CTAs of a kernel may run in any order, and at once, checks and all: those communicate
    /// in any order, but for a journal.
    pub fn is_order_free(&self, key: ModuleKey, kernel: &str) -> bool {
        let module = self.modules.get(&key.0);
        let known = module.and_then(|module| module.kernels.get(kernel));
        known.is_some_and(|info| info.order_free && !info.journaled)
    }

    /// The name under which the program's own code of a kernel has been loaded beside that with checks, if it has.
    pub fn own_name(&self, key: ModuleKey, kernel: &str) -> Option<String> {
        let module = self.modules.get(&key.0);
        let module = module.filter(|module| module.code.is_rewritten());
        let info = module.and_then(|module| module.kernels.get(kernel));
        let info = info.filter(|info| info.own && info.instrumented);
        info.map(|info| rewrite::own::name(&info.name))
    }

    /// The driver does not give the program's own code of a kernel: its launches run the code with checks.
    pub fn lacks_own(&mut self, key: ModuleKey, kernel: &str) {
        if let Some(module) = self.modules.get_mut(&key.0) {
            module.without_own.insert(kernel.to_owned());
        }
    }

    /// Whether launches of a kernel can run the program's own code.
    pub fn has_own(&self, key: ModuleKey, kernel: &str) -> bool {
        let module = self.modules.get(&key.0);
        let given = module.is_some_and(|module| !module.without_own.contains(kernel));
        given && self.own_name(key, kernel).is_some()
    }

    /// What the arguments of a launch prove, if anything is to be proved, and how long that took.
    fn proof(&self, invocation: Invocation<'_>) -> Option<(Arc<Proved>, Duration)> {
        let module = self.modules.get(&invocation.key.0)?;
        let code = &module.code;
        // A proof assumes that different addresses are different bytes.
        let proofs = code.proofs().filter(|_| !self.aliases.exist())?;
        let known = module.known.get(invocation.kernel);
        let known = known.unwrap_or(const { &Raced::new() });
        let depth = match self.options.verify {
            Some(_) => Depth::Bits,
            None => Depth::Linear,
        };
        proofs.of(code.module(), invocation, &self.allocations, known, depth)
    }

    /// Keeps what the arguments of a launch prove.
    fn prove(&self, pending: &mut PendingLaunch, invocation: Invocation<'_>) {
        let (proved, proving) = self.proof(invocation).unzip();
        (pending.proved, pending.proving) = (proved, proving.unwrap_or_default());
    }

    /// What the user's assumptions are in a launch, and what is proved of all launches that fulfil them.
    fn assumed(&self, invocation: Invocation<'_>) -> Option<Assumptions> {
        let texts = &self.options.assumptions;
        let code = &self.modules.get(&invocation.key.0)?.code;
        let proofs = code
            .proofs()
            .filter(|_| !texts.is_empty() && !self.aliases.exist())?;
        proofs.assumed(code.module(), invocation, &self.allocations, texts)
    }

    /// Whether a launch can run the program's own code because its arguments prove that it has no races.
    pub fn is_provable(&self, invocation: Invocation<'_>) -> bool {
        let Invocation { key, kernel, .. } = invocation;
        let options = &self.options;
        options.check
            && options.prove == Prove::On
            && !self.listens()
            && self.chooser.names(kernel).is_ok()
            && self.has_own(key, kernel)
            && self.proves_whole(invocation).is_some()
    }

    /// What the arguments of a launch prove, if that is that it has no races.
    fn proves_whole(&self, invocation: Invocation<'_>) -> Option<Arc<Proved>> {
        let (proved, _) = self.proof(invocation)?;
        proved.proof.whole.then_some(proved)
    }

    /// A launch of the node of a graph that runs the program's own code, because its arguments have proved that it has
    /// no races. If the memory that they point to is another one by now, it is not checked.
    pub fn begin_own(
        &mut self,
        device: &mut dyn Device,
        invocation: Invocation<'_>,
    ) -> PendingLaunch {
        self.start(device);
        let mut pending = self.pending(invocation);
        pending.own = true;
        pending.proved = self.proves_whole(invocation);
        match (pending.launch.not_chosen, &pending.proved) {
            (Some(why), _) => pending.launch.why_not = Some(why.text().to_owned()),
            (None, Some(_)) => {
                (pending.launch.checked, pending.launch.judge) = (true, log::Judge::Proof)
            }
            (None, None) => pending.launch.why_not = Some(NO_LONGER_PROVED.to_owned()),
        }
        self.log_begin(&mut pending);
        pending.started = Instant::now();
        pending
    }

    fn pending(&self, invocation: Invocation<'_>) -> PendingLaunch {
        let Invocation {
            key,
            kernel,
            extent,
            ..
        } = invocation;
        PendingLaunch {
            parameter: None,
            record_slot: None,
            owner_shift: None,
            at: None,
            launch: log::Launch {
                launch: self.launches + 1,
                module: key.0,
                kernel: kernel.to_owned(),
                grid: extent.grid,
                block: extent.block,
                dynamic_shared: extent.dynamic_shared,
                not_chosen: match self.options.check {
                    true => self.chooser.chooses(kernel).err(),
                    false => None,
                },
                ..log::Launch::default()
            },
            release_capable: false,
            journaled: false,
            fence_rule: false,
            by_cells: false,
            proved: None,
            assumed: None,
            proving: Duration::ZERO,
            own: false,
            recordable: None,
            started: Instant::now(),
        }
    }

    /// Reports the first launch in which a byte has several addresses. Cells and journals take these for different bytes.
    fn report_aliases(&mut self, pending: &PendingLaunch) {
        let launch = &pending.launch;
        if self.reported_aliases || self.listens() || !self.aliases.exist() {
            return;
        }
        self.reported_aliases = true;
        let (number, kernel) = (launch.launch, report::names::demangle(&launch.kernel));
        self.missed(format!(
            "from launch #{number} ({kernel}) on, memory was mapped at two addresses: races between accesses by different addresses of one byte are not found"
        ));
    }

    fn arm(
        &mut self,
        device: &mut dyn Device,
        invocation: Invocation<'_>,
        kept: Option<usize>,
        pending: &mut PendingLaunch,
    ) -> Result<(), Refused> {
        let Invocation {
            key,
            kernel,
            extent,
            parameters,
        } = invocation;
        let cannot = |why: &str| Err(Refused::Cannot(why.to_owned()));
        if !self.options.check {
            return cannot("checking is off");
        }
        let module = self.modules.get(&key.0);
        let known = module.and_then(|module| module.kernels.get(kernel));
        let info = known.ok_or("the kernel is not in the module's PTX".to_owned())?;
        let not_chosen = pending.launch.not_chosen;
        if self.listens() {
            if let Some(why) = not_chosen {
                return cannot(why.text());
            }
            self.prove(pending, invocation);
            pending.assumed = self.assumed(invocation);
            let whole = pending.proved.as_ref().is_some_and(|of| of.proof.whole);
            pending.launch.judge = match whole && self.options.prove == Prove::On {
                true => log::Judge::Proof,
                false => log::Judge::HappensBefore,
            };
            return Ok(());
        }
        if !info.instrumented {
            return Err(info.why_not.clone().unwrap_or_default().into());
        }
        let proves = self.options.prove == Prove::On;
        if not_chosen.is_none() {
            self.prove(pending, invocation);
        }
        let proved = pending.proved.as_deref();
        let over = proved.is_some_and(Proved::is_over) && proves;
        // The node of a graph has been made with the checked code, whatever its launches prove.
        if over && kept.is_none() && self.has_own(key, kernel) {
            pending.launch.judge = match proved.is_some_and(|of| of.proof.whole) {
                true => log::Judge::Proof,
                false => log::Judge::Known,
            };
            pending.own = true;
            return Ok(());
        }
        pending.release_capable = info.release_capable;
        pending.journaled = info.journaled;
        let beyond = info.release_capable || info.beyond_cells || !info.not_understood.is_empty();
        pending.by_cells = !(beyond || info.journaled);
        // The fence rule wants an acquire, which the scoped model does without.
        let counted = self.options.mode == Mode::Fast
            && self.options.model != Some(Model::Scoped)
            && info.orders_counted;
        let shape = Shape {
            ctas: extent.grid.iter().map(|&n| u64::from(n)).product(),
            window_bytes: 0,
            index_bits: 0,
            granule_log2: info.granule_log2,
            // Entries of the journal are counted in the place of barriers.
            barriers: info.barriers || info.journaled,
            warp_barriers: info.warp_barriers && !info.journaled,
            grid_barriers: info.grid_barriers && !info.journaled,
            shared_tag: 0,
        };
        // A witness distinguishes that many CTAs.
        let unjudged = match () {
            () if self.options.model == Some(Model::Ptx) => log::Unjudged::Nothing,
            () if info.journaled && info.swaps => log::Unjudged::Locks,
            () if info.journaled => log::Unjudged::Nothing,
            () if info.stores_strongly || info.swaps => log::Unjudged::Everything,
            () => log::Unjudged::Nothing,
        };
        pending.fence_rule = counted && shape.ctas <= WITNESS_CTA_MASK + 1;
        let shared = info.shared_granule_log2.map(|granule_log2| SharedShape {
            bytes: u64::from(extent.shared),
            granule_log2,
            clusters: info.clusters,
        });
        let pointers = info.pointers.as_ref().filter(|_| !self.aliases.exist());
        let unwritten = pointers.map_or(0, |of| self.allocations.unwritten(of, parameters));
        let unwritten = match info.own {
            true => spared(info, proved.filter(|_| proves), unwritten),
            false => unwritten,
        };
        let known = known_among_writes(info, proved.filter(|_| proves));
        // A journal shows how mbarriers are used, and no other barriers.
        let misusable = info.misusable || info.mbarriers && !info.journaled;
        let copies_unjudged = info.copies && !info.journaled;
        let sizes_unjudged = info.strong_sizes_differ && !info.journaled;
        let reads_only = proved.is_some_and(|of| of.proof.read_only_path);
        let read_only_unjudged = info.writes_read_only && !info.journaled && !reads_only;
        let armed = if let Some(why) = not_chosen {
            Err(Refused::Cannot(why.text().to_owned()))
        } else {
            let windows = self.allocations.windows(parameters);
            let order = match () {
                () if info.journaled => OrderJudge::Journal,
                () if pending.fence_rule => OrderJudge::FenceRule,
                () => OrderJudge::Barriers,
            };
            let watched = Watched {
                windows,
                shared,
                order,
                unwritten,
                known,
                flat: invocation.is_flat(),
            };
            self.shadow(device).arm(device, kept, watched, shape)
        };
        let shadow = self.shadow(device);
        if let Some(text) = shadow.shrunk() {
            self.note(text);
        }
        match armed {
            Ok(armed) => {
                pending.launch.judge = match pending.journaled {
                    true => log::Judge::Journal,
                    false => log::Judge::Cells,
                };
                pending.launch.unjudged = unjudged;
                pending.launch.barriers_unjudged = misusable;
                pending.launch.copies_unjudged = copies_unjudged;
                pending.launch.sizes_unjudged = sizes_unjudged;
                pending.launch.read_only_unjudged = read_only_unjudged;
                pending.parameter = Some(armed.parameter);
                pending.record_slot = Some(armed.record_slot);
                pending.owner_shift = armed.owner_shift;
                pending.launch.counters.cleared = armed.cleared;
                Ok(())
            }
            Err(Refused::Busy) => Err(Refused::Busy),
            Err(why) => {
                // The kernel has the parameter, so it needs some value.
                pending.parameter = self.idle(device);
                Err(why)
            }
        }
    }
}

/// The bits of a launch for the [groups](rewrite::KernelInfo::groups) of accesses that need no check: all of a group are
/// proved, have only known races left, or load what is never written, by their sets in `unwritten`.
fn spared(info: &rewrite::KernelInfo, proved: Option<&Proved>, unwritten: u64) -> u64 {
    let free = |access: &rewrite::proved::Grouped| {
        let set = access.unwritten;
        set.is_some_and(|set| unwritten >> set & 1 != 0)
            || proved.is_some_and(|of| of.spares(access.statement))
    };
    unwritten & UNWRITTEN_WORDS | bits(info, free)
}

/// The bits of a launch for the groups of accesses whose races with writes are all known.
fn known_among_writes(info: &rewrite::KernelInfo, proved: Option<&Proved>) -> u64 {
    proved.map_or(0, |proved| {
        bits(info, |access| {
            proved.is_known_among_writes(access.statement)
        })
    })
}

/// The bits of the groups of which all accesses are such.
fn bits(info: &rewrite::KernelInfo, such: impl Fn(&rewrite::proved::Grouped) -> bool) -> u64 {
    let groups = info.groups.iter().enumerate();
    let of_such = groups.filter(|(_, group)| group.iter().all(&such));
    of_such.fold(0, |bits, (n, _)| bits | 1 << n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_flat_if_it_is_known_and_extends_along_x_only() {
        let is_flat = |grid, block, parameters| {
            let extent = Extent {
                grid,
                block,
                ..Extent::default()
            };
            let invocation = Invocation {
                key: ModuleKey(0),
                kernel: "k",
                extent,
                parameters,
            };
            invocation.is_flat()
        };
        assert!(is_flat([7, 1, 1], [64, 1, 1], &[0; 8]));
        assert!(!is_flat([7, 2, 1], [64, 1, 1], &[0; 8]));
        assert!(!is_flat([7, 1, 1], [8, 1, 8], &[0; 8]));
        // Of a graph's node that kernels on the device may change.
        assert!(!is_flat([7, 1, 1], [64, 1, 1], &[]));
    }
}
