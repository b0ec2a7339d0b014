//! The facts of a report, in the shape of its JSON (`docs/report.schema.json`).

mod access;
mod kind;
mod related;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use self::access::{Access, BarrierAt, Barriers, FrameAt, HeldLock, PtxLine, Value};
pub use self::kind::{Certainty, DeviceKind, Misused, Op, PtxSource, RaceKind, Role, Space};
pub use self::related::{Pair, Related};
pub use crate::choice::Unchosen;
pub use crate::executed::{Executed, Tally};
pub use crate::known::{SuppressedBy, Suppression};
pub use crate::log::{Act, HostFrame, Semantics};
pub use crate::stray::Stray;
pub use crate::stuck::{Stuck, Wait, WaitKind};
pub use crate::unjudged::Unjudged;
pub use crate::verified::{Answers, Assumption, Because, Family, Verified};
pub use crate::work_pairs::WorkPairs;

use crate::log;
use crate::rules::RuleId;
use crate::words::shortened;

/// Version of the JSON's shape; a new minor version only adds fields.
pub const SCHEMA_VERSION: &str = "1.29";

/// All that is known after a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// [`SCHEMA_VERSION`].
    pub schema_version: String,
    /// What made it.
    pub tool: Tool,
    /// What was run.
    pub run: Run,
    /// The result in numbers.
    pub summary: Summary,
    /// What was checked and what was not.
    pub coverage: Coverage,
    /// The races, certain ones first.
    pub races: Vec<Race>,
    /// What became of the suppressions that the user gave.
    pub suppressions: Vec<Suppression>,
    /// Launches that failed.
    pub failures: Vec<Failure>,
    /// Accesses outside of all memory, after which launches went on.
    pub out_of_bounds: Vec<Stray>,
    /// What `verify` says of each kernel.
    pub verified: Vec<Verified>,
    /// Remarks.
    pub notes: Vec<String>,
    /// What the device counted, checks included.
    pub stats: Stats,
}

/// What made the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tool {
    /// `cudarun-check`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Where the kernels ran.
    pub device: DeviceKind,
    /// Seed of the first schedule; 0 is round robin.
    pub seed: u64,
    /// Number of schedules.
    pub schedules: u32,
    /// One word of memory of so many was checked.
    pub sample: u32,
    /// Errors of the tool itself that it has found in this run, such as a race that a proof excludes.
    pub errors: Vec<String>,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The command line.
    pub argv: Vec<String>,
    /// The other command lines of a report that was merged from several.
    pub others: Vec<Vec<String>>,
    /// Processes that used a device.
    pub pids: Vec<u32>,
    /// The same processes with what they ran.
    pub processes: Vec<Process>,
    /// How the program ended; of several schedules, the first that did not end well.
    pub exit: ExitStatus,
    /// Name of the machine.
    pub host: String,
    /// When it started, RFC 3339, UTC.
    pub start: String,
    /// Wall time of all schedules.
    pub seconds: f64,
    /// The devices.
    pub devices: Vec<DeviceName>,
    /// A signal has ended the program, or a launch, or kept further schedules from being run.
    pub interrupted: bool,
    /// The time of `--timeout` was over.
    pub timed_out: bool,
}

impl Run {
    /// What was run, one line for each command line.
    pub fn programs(&self) -> Vec<String> {
        let all = std::iter::once(&self.argv).chain(&self.others);
        all.map(|argv| argv.join(" ")).collect()
    }

    /// Whether several processes used a device in one schedule, so that a launch has to be named with its process.
    pub fn has_several_processes(&self) -> bool {
        let mut seeds = BTreeSet::new();
        !self.processes.iter().all(|of| seeds.insert(of.seed))
    }

    /// Number and command line of a process, with the machine where there are several.
    pub fn process(&self, index: usize) -> Option<String> {
        let Process {
            pid, host, argv, ..
        } = self.processes.get(index)?;
        let host = match self.host.contains(", ") {
            true => format!(" on {host}"),
            false => String::new(),
        };
        // Arguments may hold line ends.
        let what = shortened(&argv.join(" ")).replace(char::is_control, " ");
        Some(format!("{pid}{host} ({what})"))
    }
}

/// A process that used a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Name of the machine.
    pub host: String,
    /// Seed of its schedule; 0 is round robin.
    pub seed: u64,
    /// Its command line.
    pub argv: Vec<String>,
}

/// How a process ended: by a code or by a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExitStatus {
    /// Exit code.
    pub code: Option<i32>,
    /// Signal number.
    pub signal: Option<i32>,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceName {
    /// Its number.
    pub index: u32,
    /// What a person calls it.
    pub name: String,
}

/// How a run came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Races of at least the level that counts.
    Races,
    /// No such races, and enough was checked.
    Clean,
    /// Nothing, or not enough, was checked.
    #[default]
    Incomplete,
    /// The program failed.
    AppFailed,
    /// The tool has caught itself in an error ([`Tool::errors`]).
    ToolError,
}

/// The result in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Reported pairs of places, whatever is wrong there.
    pub races: usize,
    /// Those that are no races but misuse barriers or warp operations (CR007).
    pub synchronisation_errors: usize,
    /// Those that are errors.
    pub errors: usize,
    /// The others.
    pub warnings: usize,
    /// Hidden by a suppression.
    pub suppressed: usize,
    /// Known from a baseline.
    pub baseline: usize,
    /// Warnings fail the run as errors do (`--fail-on warning`).
    pub warnings_fail: bool,
    /// No finding fails the run (`--fail-on never`).
    pub findings_pass: bool,
    /// Suppressions that are unused or have expired fail the run (`--strict`), and there are some.
    #[serde(default)]
    pub suppressions_fail: bool,
    /// How it came out.
    pub outcome: RunOutcome,
}

/// What was checked and what was not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// Every kernel seen, by name.
    pub kernels: Vec<Kernel>,
    /// Device functions left unchecked.
    pub unchecked_functions: Vec<UncheckedFunction>,
    /// Launches.
    pub launches: Launches,
    /// Launches that had not ended when their process did, in the order in which they began.
    pub incomplete: Vec<Incomplete>,
    /// What processes could not write to their logs.
    pub lost: Vec<LostEvents>,
    /// Processes that still ran when the report was made; what they did later is not in it.
    pub running: Vec<u32>,
    /// Pieces of work of streams that were forgotten, for want of room, before all that may run beside them had come.
    pub forgotten: u64,
    /// Work that touches the same memory and that only threads of the host order.
    pub host_threads: WorkPairs,
    /// Work in different streams that may race, as it is not known exactly what it touches or whether flags order it.
    pub unfollowed: WorkPairs,
    /// Work of different streams was not compared everywhere, as the mode or the device does not.
    pub uncompared: bool,
    /// The program has memory that host and device can access, and accesses by the host were not looked for everywhere, as the
    /// mode or the device does not, or there is too much of them.
    pub host_unwatched: bool,
    /// Pages that the host has touched, and that work it has not waited for writes in part. It is not known whether the two
    /// have accessed the same bytes.
    pub host_undecided: u64,
    /// Launches, copies and fills by kernels that were not compared with what they may run beside.
    pub unordered: u64,
    /// Launches that ran unchecked because the user wants it so.
    pub unchosen: Unchosen,
    /// The memory whose races the user wants reported.
    pub spaces: Vec<log::Space>,
    /// Launches in which CR011 and CR012 were not judged.
    pub unjudged: Unjudged,
    /// What else could not be checked, or was not kept, in words.
    pub missed: Vec<String>,
    /// Why the run may have missed something; empty for a complete one.
    pub incomplete_because: Vec<String>,
    /// Race records.
    pub records: Records,
    /// The accesses of all threads; none where the device does not count them.
    pub executed: Option<Executed>,
    /// What the cells could not keep.
    pub cells: Cells,
    /// What happens-before on the host was asked.
    pub clocks: Clocks,
}

/// What happens-before on the host was asked, over all launches, and the formats of its clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clocks {
    /// Launches it judged, or the shared memory of.
    pub launches: u64,
    /// Accesses of single threads.
    pub accesses: u64,
    /// Fences, barriers and the like, by warp.
    pub synchronisations: u64,
    /// Warps: the sum of those in the four formats.
    pub warps: u64,
    /// Those whose clocks were ever in another format than CONVERGED.
    pub left_converged: u64,
    /// Those whose clocks were always in the format CONVERGED.
    pub converged: u64,
    /// Those whose clocks were in DIVERGED at most: two sets of lanes with a clock each.
    pub diverged: u64,
    /// Those whose clocks were in NESTEDDIVERGED at most: more such sets.
    pub nested_diverged: u64,
    /// Those whose clocks were ever in the format SPARSEVC.
    pub sparse: u64,
    /// Bytes of memory that a checked process had resident at most, until its last launch that was judged
    /// so; 0 when the system does not report it.
    pub peak_resident: u64,
}

/// A kernel and how far it was checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kernel {
    /// Demangled.
    pub name: String,
    /// As the linker knows it.
    pub mangled: String,
    /// Whether PTX of it was seen.
    pub ptx_source: PtxSource,
    /// Where its module came from.
    pub module: String,
    /// Whether its accesses are checked.
    pub instrumented: bool,
    /// Why not.
    pub why_not: Option<String>,
    /// Its instructions that access memory.
    pub accesses: Accesses,
    /// Instructions that the check does not follow.
    pub unsupported: Vec<String>,
    /// Instructions that may order its threads in ways the cells do not follow.
    pub may_order: Vec<String>,
    /// Launches.
    pub launches: u64,
    /// Those that were run again under other schedules, because the order of their threads matters.
    pub explored: u64,
    /// What judged them.
    pub judged_by: crate::judges::Judges,
    /// What their arguments prove.
    pub proofs: crate::proofs::Proofs,
    /// The accesses of their threads; none where the device does not count them.
    pub executed: Option<Executed>,
    /// Those that ran unchecked.
    pub skipped: u64,
    /// Why they did.
    pub skipped_because: Vec<String>,
}

/// Static counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Accesses {
    /// To global or generic memory.
    pub total: u64,
    /// Those with a check.
    pub checked: u64,
    /// To shared memory, where that is not checked; not part of the total.
    pub shared: u64,
}

/// A function that runs as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UncheckedFunction {
    /// Demangled.
    pub name: String,
    /// Why.
    pub why: String,
}

/// Launches by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Launches {
    /// All.
    pub total: u64,
    /// Checked, to their end or to their failure, but not merely until their process ended.
    pub checked: u64,
    /// Failed.
    pub failed: u64,
    /// Never begun, for what they asked.
    pub invalid: u64,
    /// Ran unchecked although their kernels have PTX and no option leaves them out.
    pub unchecked: u64,
}

/// A launch that had not ended when its process did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Incomplete {
    /// Its kernel, demangled.
    pub kernel: String,
    /// Its kernel, mangled.
    pub mangled: String,
    /// Its number in its process, from 1.
    pub launch: u64,
    /// Its blocks.
    pub blocks: u64,
    /// Those that had ended, where that is known.
    pub ended: Option<u64>,
    /// What it had found by then is in the report.
    #[serde(alias = "told")]
    pub reported: bool,
    /// Where its threads were, and what they waited for, if anything: the first 16 places, where they are known.
    pub threads: Vec<crate::stuck::Wait>,
}

/// What a process could not write to its log: races, launches or notes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LostEvents {
    /// The process, where its log says so.
    pub pid: Option<u32>,
    /// How many lines of the log.
    pub events: u64,
    /// The last error.
    pub why: String,
}

/// Race records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Records {
    /// Conflicts that the device saw.
    pub conflicts: u64,
    /// Records it wrote, one per pair of sites and launch.
    pub emitted: u64,
    /// Records that found no room.
    pub dropped: u64,
}

/// What the cells could not keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cells {
    /// Granules forgotten because another needed their cell.
    pub evictions: u64,
    /// Conflicts left undecided: a saturated epoch, loads and writes of different strength mixed, or
    /// an order of two accesses that a journal does not record.
    pub undecided: u64,
    /// Accesses outside the checked window.
    pub outside: u64,
    /// Conflicts that the fence rule of `fast` mode calls races.
    pub unreleased: u64,
    /// Conflicts that it takes for ordered.
    pub ordered: u64,
    /// Times the cells were cleared because the generations had run out.
    pub cleared: u64,
    /// Launches beside which others ran on the same cells.
    pub overlapped: u64,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A race.
    #[default]
    Error,
    /// A possible race, or one that has always written the same value.
    Warning,
}

/// A race: one pair of places, however often it was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Race {
    /// Short name, from the fingerprint.
    pub id: String,
    /// Stays the same when other code is edited.
    pub fingerprint: String,
    /// What is wrong.
    pub rule: RuleId,
    /// How bad.
    pub level: Level,
    /// Both sides are writes, and wrote the same bytes whenever they raced.
    pub same_value: bool,
    /// Both sides are writes, and not all that they wrote is known: they may always have written the same bytes.
    pub values_unknown: bool,
    /// What both sides do.
    pub kind: RaceKind,
    /// The memory that it is in.
    pub space: Space,
    /// How sure it is.
    pub certainty: Certainty,
    /// One line.
    pub message: String,
    /// What would order the accesses.
    pub help: String,
    /// How often, over all launches and schedules.
    pub count: u64,
    /// It was more often, and not counted further.
    pub at_least: bool,
    /// Launches that had it, by ordinal in their process.
    pub launches: Vec<u64>,
    /// Processes that had it, as indices of [`Run::processes`].
    pub processes: Vec<usize>,
    /// Seeds of the schedules that had it, as certain as it is, of the program's own runs.
    pub seeds: Vec<u64>,
    /// Seeds of the schedules that had it when launches were run again.
    pub explored: Vec<u64>,
    /// The kernel of the first witness.
    pub kernel: KernelLaunch,
    /// All kernels that had it, without parameters and template arguments, sorted.
    pub kernels: Vec<String>,
    /// First and second access.
    pub accesses: [Access; 2],
    /// Where.
    pub address: Address,
    /// What may have ordered the accesses, when it is only possible.
    pub may_order: Vec<String>,
    /// What the first and the second access belong to, when that is different work of streams.
    pub work: Vec<Work>,
    /// Why it does not count, if it does not.
    pub suppressed_by: Option<SuppressedBy>,
    /// Whether the baseline has it, if there is one; a race that is known does not count.
    pub baseline: Option<Standing>,
    /// Other pairs of accesses that the help repairs.
    pub related: Vec<Related>,
}

impl Race {
    /// Whether it counts: no suppression is for it, and no baseline has it.
    pub fn counts(&self) -> bool {
        self.suppressed_by.is_none() && !self.is_in_baseline()
    }

    /// Whatever names processes by their place among those of the run.
    pub(crate) fn process_indices(&mut self) -> impl Iterator<Item = &mut usize> {
        let Self {
            kernel,
            work,
            processes,
            ..
        } = self;
        let work = work.iter_mut().filter_map(|of| of.kernel.as_mut());
        let kernels = std::iter::once(kernel).chain(work);
        let of_kernels = kernels.filter_map(|of| of.process.as_mut());
        of_kernels.chain(processes)
    }

    /// Whether a baseline has it, and no suppression is for it.
    pub fn is_in_baseline(&self) -> bool {
        self.suppressed_by.is_none() && self.baseline == Some(Standing::Known)
    }
}

impl Report {
    /// The entries that count.
    pub fn counted(&self) -> impl Iterator<Item = &Race> {
        self.races.iter().filter(|race| race.counts())
    }

    /// Counts the entries.
    pub(crate) fn count(&mut self) {
        let of = |is: fn(&Race) -> bool| self.counted().filter(|&race| is(race)).count();
        let baseline = self.races.iter().filter(|race| race.is_in_baseline());
        let baseline = baseline.count();
        let races = of(|_| true);
        let errors = of(|race| race.level == Level::Error);
        self.summary = Summary {
            races,
            synchronisation_errors: of(|race| race.rule == RuleId::Synchronisation),
            errors,
            warnings: races - errors,
            suppressed: self.races.len() - races - baseline,
            baseline,
            ..self.summary
        };
    }
}

/// Whether a baseline has a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It does not.
    New,
    /// It has.
    Known,
}

/// A piece of work of a stream, or of a graph launched into it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// Which.
    pub role: Role,
    /// The launch, if it is one.
    pub kernel: Option<KernelLaunch>,
    /// The call on the host, if it is one.
    pub call: Option<String>,
    /// The stream.
    pub stream: String,
    /// The source of the calls on the host that a call is made in, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_stack: Vec<HostFrame>,
}

/// The launch of the first witness.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelLaunch {
    /// Demangled.
    pub name: String,
    /// As the linker knows it.
    pub mangled: String,
    /// Ordinal in its process.
    pub launch: u64,
    /// Its process, as an index of [`Run::processes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<usize>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// The kernel that has launched it, demangled, and where, as far as that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launched_by: Option<String>,
    /// The name of its recording, if it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// The source of the calls on the host that the launch was made in, innermost first; empty without debug
    /// information of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_stack: Vec<HostFrame>,
}

/// Where a race was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Address {
    /// Hexadecimal.
    pub value: String,
    /// What lies there.
    pub allocation: Option<Allocation>,
    /// The element of a variable, as the program writes it: `tile[1][0]`, or `tile+0x84` if its type is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
}

/// Memory that the program asked for, or a variable in shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allocation {
    /// Ordinal in the process; 0 in shared memory.
    pub id: u64,
    /// First address, or its offset in shared memory, hexadecimal.
    pub base: String,
    /// Bytes.
    pub size: u64,
    /// Of the racy address.
    pub offset: u64,
    /// The call that made it, or `variable NAME`.
    pub api: String,
}

/// A launch that failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// Demangled.
    pub kernel: String,
    /// What happened, with PTX line and thread where known.
    pub message: String,
    /// It asked for what its kernel or the device does not allow, so nothing of it has run; the program
    /// knows from the call.
    pub invalid: bool,
    /// The device lacks something; nothing is wrong with the program.
    pub unsupported: bool,
    /// All of its threads that had not ended waited for others: a synchronisation error, which
    /// counts as a race does in the outcome.
    pub deadlock: bool,
    /// Who waits for what then; null where that is not known, and of other failures.
    pub stuck: Option<Stuck>,
    /// Source, innermost inlined function first.
    pub frames: Vec<FrameAt>,
    /// How many launches failed like this.
    pub count: u64,
}

/// What the device counted, over all launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Instructions issued for a warp.
    pub warp_instructions: u64,
    /// Instructions executed by threads.
    pub thread_instructions: u64,
    /// 32-byte sectors of global memory touched.
    pub global_sectors: u64,
    /// Fences, acquires and releases of gpu or sys scope, issued for a warp.
    pub device_fences: u64,
    /// Time inside launches: wall time on the simulated device, with what happens-before takes.
    pub launch_seconds: f64,
    /// Wall time that modules took to be parsed and rewritten.
    pub rewrite_seconds: f64,
    /// Most bytes of device memory that a process had allocated at the end of a launch, its modules' variables
    /// included.
    pub program_bytes: u64,
    /// Most bytes that a process had reserved for cells, witnesses and what goes with them, with what a journal
    /// has used.
    pub shadow_bytes: u64,
    /// How long launches took, by kernel.
    pub latencies: Vec<Latency>,
}

/// How long the launches of a kernel took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Demangled.
    pub kernel: String,
    /// Ascending; empty ones are left out.
    pub bins: Vec<Bin>,
}

/// Launches that took about the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bin {
    /// The longest time that falls into it, at most 0.1 % longer than the shortest.
    pub nanoseconds: u64,
    /// How many there were.
    pub launches: u64,
}
