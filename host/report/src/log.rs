//! What a checked process leaves behind: one file of JSON lines, written as things happen, so that a
//! crash loses nothing. The command line reads the files of all processes and runs.

mod call;
mod fault;
mod file;
mod repair;
mod site;
mod stray;
mod stuck;
mod verified;

pub use events::{Gap, Misuse, Scope, Semantics};
use serde::{Deserialize, Serialize};

use crate::choice::NotChosen;
use crate::executed::Executed;

pub use call::Call;
pub use fault::VARIABLE as FAULT_VARIABLE;
pub use file::{EXTENSION, LogFile, Lost, Writer, log_of, read, read_lost, refused};
pub use repair::{
    Around, Barrier, Cause, CodeLocation, Counted, EarlyArrival, Locked, Neighbour, Outside,
    Passed, Point, Repair, Unwaited, Update, Word,
};
pub use site::{Act, Op, Site};
pub use stray::{Stray, StraySpace};
pub use stuck::{On, Stuck, Wait};
pub use verified::{Answer, Assumption, Because, Family, Standing, Verified};

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The device was first used.
    Start {
        /// The process.
        pid: u32,
        /// Its command line.
        #[serde(default)]
        argv: Vec<String>,
        /// What a person calls the device.
        device: String,
        /// Seed of the schedule, if any.
        seed: Option<u64>,
        /// Whether checks were put in.
        checking: bool,
    },
    /// A module was loaded.
    Module(Box<Module>),
    /// Accesses of a module that was loaded.
    Sites {
        /// The module.
        module: u32,
        /// All that are checked come before the first race of the log; accesses that no check names follow when they race.
        sites: Vec<Site>,
    },
    /// Calls on the host that launches are made in.
    HostCalls {
        /// What launches call the list.
        number: u32,
        /// Innermost first.
        calls: Vec<HostCall>,
        /// Lines of Python that are executed, innermost first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        python: Vec<HostFrame>,
    },
    /// A launch was asked for; when nothing is said of its end, the process ended before, or the log lacks it.
    Pending(Box<Pending>),
    /// A launch ended.
    Launch(Box<Launch>),
    /// A pair of sites raced in a launch.
    Race(Box<Race>),
    /// Pieces of work of streams were forgotten before all that may run beside them had come.
    Forgotten {
        /// How many.
        pieces: u64,
    },
    /// Two pieces of work touch the same memory, and are ordered only if threads of the host tell each other what they have
    /// waited for.
    Assumed(Launches),
    /// Two pieces of work that nothing orders may touch the same memory: of one of them, it is not known exactly what it
    /// has touched.
    Unfollowed(Launches),
    /// Work of different streams was not compared everywhere, as the mode or the device does not.
    Uncompared {},
    /// The program has memory that host and device can access, and accesses by the host are not looked for everywhere.
    HostUnwatched {},
    /// The host has touched memory of which work that it has not waited for writes a part. It is not known whether it has
    /// touched that part.
    HostUndecided {
        /// How many pages.
        pages: u64,
    },
    /// What kernels have launched or asked for was not compared with what it may run beside.
    Unordered {
        /// How many launches, copies and fills.
        pieces: u64,
    },
    /// A kernel without PTX was launched, and ran unchecked.
    WithoutPtx {
        /// Its mangled name.
        kernel: String,
        /// Why there is none: one line, no final period.
        why: String,
        /// Launches since the last event of this kernel.
        launches: u64,
    },
    /// Something of the run could not be checked, or was not kept.
    Missed {
        /// What, and why: one line, no final period.
        text: String,
    },
    /// The tool has caught itself in an error: nothing that it says of the run can be relied on.
    ToolError {
        /// What is wrong: one line, no final period.
        text: String,
    },
    /// Something the user should know.
    Note {
        /// One line, lower case, no final period.
        text: String,
    },
}

/// A loaded module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// Its number in the process.
    pub module: u32,
    /// Where it came from.
    pub origin: String,
    /// Its kernels.
    pub kernels: Vec<Kernel>,
    /// Device functions left unchecked, with the reason.
    pub unchecked_functions: Vec<(String, String)>,
    /// Wall time of parsing and rewriting it, in seconds.
    #[serde(default)]
    pub rewrite_seconds: f64,
}

/// A kernel of a module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Mangled name.
    pub name: String,
    /// Whether its accesses are checked.
    pub instrumented: bool,
    /// Why not.
    pub why_not: Option<String>,
    /// Static accesses to global or generic memory.
    pub accesses: u32,
    /// Those with a check.
    pub checked: u32,
    /// Accesses to shared memory that are not checked.
    pub shared: u32,
    /// Its conflicts are candidates because of these instructions.
    pub release_sites: Vec<String>,
    /// Instructions the check does not follow.
    pub not_understood: Vec<String>,
}

/// A source position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// File as recorded by the compiler.
    pub file: String,
    /// Line from 1.
    pub line: u32,
    /// Column from 1, 0 when unknown.
    pub column: u32,
    /// Mangled name of an inlined function.
    pub function: Option<String>,
}

/// A launch that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// Its number in the process, from 1.
    pub launch: u64,
    /// Its kernel, mangled.
    pub kernel: String,
    /// CTAs.
    pub grid: [u32; 3],
}

/// A launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Its number in the process, from 1.
    pub launch: u64,
    /// Its module.
    pub module: u32,
    /// Its kernel, mangled.
    pub kernel: String,
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads per CTA.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    #[serde(default)]
    pub dynamic_shared: u32,
    /// Whether it was checked.
    pub checked: bool,
    /// Why not.
    pub why_not: Option<String>,
    /// It is not among the launches that the user wants checked.
    #[serde(default)]
    pub not_chosen: Option<NotChosen>,
    /// What has judged it.
    #[serde(default)]
    pub judge: Judge,
    /// What its arguments prove, where that was tried.
    #[serde(default)]
    pub proof: Option<Box<Proof>>,
    /// What `verify` says of it.
    #[serde(default)]
    pub verified: Option<Box<Verified>>,
    /// The accesses of its threads, where the device counts them.
    #[serde(default)]
    pub executed: Option<Executed>,
    /// Schedules under which it was run again.
    #[serde(default)]
    pub explored: u32,
    /// What the cells counted.
    pub counters: Counters,
    /// What happens-before on the host needed, where it judged the launch.
    #[serde(default)]
    pub clocks: Option<Clocks>,
    /// Executed warp instructions, checks included; simulated device only.
    pub warp_instructions: u64,
    /// Executed thread instructions, checks included.
    pub thread_instructions: u64,
    /// 32-byte sectors of global memory, checks included.
    pub sectors: u64,
    /// Fences, acquires and releases of gpu or sys scope, those of checks included.
    #[serde(default)]
    pub device_fences: u64,
    /// Time in seconds: wall-clock time on the simulated device.
    pub seconds: f64,
    /// Bytes that the program has allocated on the device, its modules' variables included.
    #[serde(default)]
    pub program_bytes: u64,
    /// Bytes reserved for cells, witnesses and what goes with them, and those that the journal has used.
    #[serde(default)]
    pub shadow_bytes: u64,
    /// How it failed.
    pub error: Option<String>,
    /// It has never begun, because it asks for what its kernel or the device does not allow, checked or not: the
    /// program's own error, of which it knows.
    #[serde(default)]
    pub invalid: bool,
    /// It failed because the device lacks an instruction, which says nothing about the program.
    #[serde(default)]
    pub unsupported: bool,
    /// It failed because all of its threads that had not ended waited for others.
    #[serde(default)]
    pub deadlock: bool,
    /// The threads that wait then, and what they wait for, where the device reports it; of an interrupted launch, all
    /// threads.
    #[serde(default)]
    pub stuck: Option<Box<Stuck>>,
    /// Accesses outside of all memory, after which it went on.
    #[serde(default)]
    pub strays: Vec<Stray>,
    /// Source lines of the instruction it failed at, innermost inlined function first.
    #[serde(default)]
    pub error_frames: Vec<Frame>,
    /// A signal has interrupted it; what it had found by then is reported.
    #[serde(default)]
    pub interrupted: bool,
    /// What it had found by then could not be read, because the device still ran it.
    #[serde(default, rename = "untold")]
    pub unread: bool,
    /// CTAs that had ended when it was interrupted, where the device reports it.
    #[serde(default)]
    pub ended: Option<u64>,
    /// The kernel that has launched it, if not the host has.
    #[serde(default)]
    pub launched_by: Option<Launcher>,
    /// The list of calls on the host that it was made in; 0 where that is not known.
    #[serde(default)]
    pub host_calls: u32,
    /// The source of these calls, innermost first. The command fills it in when it reads the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_stack: Vec<HostFrame>,
    /// What nobody has judged that is no data race.
    #[serde(default)]
    pub unjudged: Unjudged,
    /// Whether it uses its barriers as it should was not judged: checks in the kernel do not record it.
    #[serde(default)]
    pub barriers_unjudged: bool,
    /// Nobody has judged when its asynchronous copies are made: cells take them for made when they are issued.
    #[serde(default)]
    pub copies_unjudged: bool,
    /// Whether strong accesses of several sizes overlap was not judged: cells do not know sizes.
    #[serde(default)]
    pub sizes_unjudged: bool,
    /// Whether it writes what it loads through the read-only path was not judged, where barriers order both.
    #[serde(default)]
    pub read_only_unjudged: bool,
    /// The name of its recording, if it was recorded.
    #[serde(default)]
    pub recorded: Option<String>,
}

/// How many of a kernel's accesses the arguments of a launch prove to be free of races, by what proves them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// All accesses are proved, and so is that the launch misuses no barrier.
    pub whole: bool,
    /// No thread writes the bytes.
    pub read_only: u64,
    /// No other thread accesses the bytes.
    pub private: u64,
    /// Barriers order all conflicting accesses.
    pub barriers: u64,
    /// All conflicting accesses are atomics that include each other.
    pub atomic: u64,
    /// Not proved.
    pub unproved: u64,
    /// The steps that a proof may take ran out before all accesses were decided.
    #[serde(default)]
    pub out_of_steps: bool,
    /// How long it took; 0 where an earlier launch had the same arguments.
    #[serde(default)]
    pub nanoseconds: u64,
    /// What is in the way of those.
    pub reasons: Vec<Unproved>,
}

/// What is in the way of a proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Unproved {
    /// The access's line in the program's own PTX.
    pub ptx_line: u32,
    /// What is in the way.
    pub why: String,
}

/// What decides which accesses of a launch race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judge {
    /// It is not checked.
    #[default]
    Nobody,
    /// Happens-before, which listens to the simulated device.
    HappensBefore,
    /// Happens-before, which reads the device's journal.
    Journal,
    /// The cells on the device.
    Cells,
    /// Nobody has to: its arguments prove that it has no races.
    Proof,
    /// Nobody has to: its arguments prove that it has no races but those that earlier launches have shown.
    Known,
}

/// What nobody has judged in a launch, of strong conflicts without order (CR011) and of lock-order-dependent accesses (CR012).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unjudged {
    /// All was, or there was nothing to judge.
    #[default]
    Nothing,
    /// What happens under locks: a journal does not record the values that are swapped.
    Locks,
    /// The same, and data that is read under versions that are swapped.
    LocksAndVersions,
    /// Everything: the cells know nothing of it.
    Everything,
}

/// A kernel that launches others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launcher {
    /// Its name, mangled.
    pub kernel: String,
    /// Its launch.
    pub launch: u64,
    /// Source of the instruction, innermost inlined function first.
    pub frames: Vec<Frame>,
}

/// A call on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCall {
    /// The program or library.
    pub file: String,
    /// The instruction's place in it.
    pub offset: u64,
}

/// The source of a call on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostFrame {
    /// Source file.
    pub file: String,
    /// Line from 1.
    pub line: u32,
    /// The function that makes the call, demangled.
    pub function: String,
}

/// Counts of one launch; see `shadow::layout::Counters`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Conflicting accesses.
    pub conflicts: u64,
    /// Granules forgotten because another needed their cell.
    pub evictions: u64,
    /// Conflicts left undecided: a saturated epoch, a mixed class, or an order that a journal does
    /// not tell.
    pub undecided: u64,
    /// Accesses outside the checked window.
    pub outside: u64,
    /// Conflicts that the fence rule of `fast` mode calls races.
    #[serde(default)]
    pub unreleased: u64,
    /// Conflicts that it takes for ordered.
    #[serde(default)]
    pub ordered: u64,
    /// Race records that found no room.
    pub dropped: u64,
    /// The cells were cleared before this launch because the generations had run out.
    pub cleared: bool,
    /// Other launches ran beside this one on the same cells, so either may have missed races.
    #[serde(default)]
    pub overlapped: bool,
}

/// Counts of the happens-before engine in one launch; see `shadow::hb::Stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// Accesses of single threads.
    pub accesses: u64,
    /// Fences, barriers and the like, by warp.
    pub synchronisations: u64,
    /// Warps that did anything.
    pub warps: u64,
    /// Warps whose clocks were ever in another format than CONVERGED.
    pub left_converged: u64,
    /// Of these, warps whose clocks were in the format DIVERGED at most.
    #[serde(default)]
    pub diverged: u64,
    /// Likewise, NESTEDDIVERGED.
    #[serde(default)]
    pub nested_diverged: u64,
    /// Warps whose clocks were ever in the format SPARSEVC.
    pub sparse: u64,
    /// Bytes of memory that the process had resident at most until the launch had been judged; 0 when
    /// the system does not report it.
    #[serde(default)]
    pub peak_resident: u64,
}

/// A pair of sites that raced in one launch, with the first witness.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Race {
    /// The launch.
    pub launch: u64,
    /// The seed of the schedule under which the launch was run again and raced; none for the program's own run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<u64>,
    /// False for a conflict in a kernel whose fences, flags or partial barriers may order it.
    pub decided: bool,
    /// Which level conflicted.
    pub level: Level,
    /// Which memory.
    #[serde(default)]
    pub space: Space,
    /// Why it is a race.
    #[serde(default)]
    pub why: Why,
    /// What comes nearest to ordering the two accesses.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// The earlier access is an asynchronous copy, and the later one is not even ordered behind the instruction that
    /// started it.
    #[serde(default)]
    pub precedes_issue: bool,
    /// The flag or counter by which it would.
    #[serde(default)]
    pub flag: Option<Word>,
    /// What the control flow says about ordering them, when both stand in one function.
    #[serde(default)]
    pub repair: Option<Repair>,
    /// Barriers in the code around the earlier and the later access, where that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<Around>,
    /// Locks that the earlier and the later thread held; empty when neither held one.
    #[serde(default)]
    pub locks: Vec<Vec<Lock>>,
    /// Site of the later access.
    pub site: u32,
    /// Site of the earlier access.
    pub previous_site: u32,
    /// How often in this launch.
    pub count: u64,
    /// It was more often, and not counted further.
    #[serde(default)]
    pub at_least: bool,
    /// Address of the granule, or its offset in shared memory.
    pub address: u64,
    /// The lowest and the highest address, or offset, at which the pair raced in this launch.
    #[serde(skip)]
    pub span: [u64; 2],
    /// What lies there.
    pub allocation: Option<Allocation>,
    /// The pair raced in this launch in memory that something else has made, or may have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// Thread of the later access.
    pub thread: Thread,
    /// Thread of the earlier access, as far as it is known.
    pub previous_thread: Option<Thread>,
    /// `blockIdx` of the earlier access, when only that is known.
    #[serde(default)]
    pub previous_block: Option<[u32; 3]>,
    /// Both sides are stores, and whenever they raced they wrote the same bytes.
    #[serde(default)]
    pub same_value: bool,
    /// Whenever the pair raced in this launch, a block had read what a later block of the grid then wrote. Of what cells have
    /// found, that is known of the first race alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later_block: bool,
    /// What the later access read or wrote, as far as it is known.
    #[serde(default)]
    pub value: Value,
    /// What the earlier access read or wrote, as far as it is known.
    #[serde(default)]
    pub previous_value: Value,
    /// What the earlier and the later access belong to, for a race between pieces of work of
    /// different streams ([`Why::Streams`]); else empty. The race's launch is then that of the later
    /// one, of the earlier one if that is a launch and the later is none, or 0.
    #[serde(default)]
    pub work: Vec<Work>,
    /// Why nothing orders the two pieces of work, for a race between them.
    #[serde(default)]
    pub apart: Apart,
}

impl Race {
    /// How much its witness says: whether it is certain, how far apart its threads are, and whether it shows more than
    /// one value.
    pub fn rank(&self) -> Rank {
        Rank {
            is_certain: self.decided,
            reach: self.level.reach(),
            values_differ: !self.same_value,
        }
    }
}

/// How much the witness of a race says, by the first field in which two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// The race is certain.
    pub is_certain: bool,
    /// How far apart its threads are.
    pub reach: u32,
    /// It shows more than one value.
    pub values_differ: bool,
}

/// What a person calls the stream that is there without having been made.
pub const DEFAULT_STREAM: &str = "the default stream";

/// What a person calls it where the host does something itself, in no stream.
pub const HOST: &str = "the host";

/// What a person's name of a stream begins with for the nodes of a graph that is launched into it.
pub const OF_GRAPH: &str = "a graph in ";

/// Two pieces of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launches {
    /// The earlier and the later launch; none for a call on the host.
    pub launches: [Option<u64>; 2],
}

/// A piece of work of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The launch; none for a call on the host.
    pub launch: Option<u64>,
    /// The stream, as a person calls it.
    pub stream: String,
    /// Its place among all work, in the order in which that ran.
    #[serde(default)]
    pub number: u64,
    /// As in [`Launch`], for a call on the host.
    #[serde(default)]
    pub host_calls: u32,
    /// As there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_stack: Vec<HostFrame>,
}

/// Why two pieces of work that race are not ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Apart {
    /// They are in different streams.
    #[default]
    Streams,
    /// They are in streams of different devices, each of which has a default stream of its own.
    Devices,
    /// They are nodes of one graph.
    Nodes,
    /// The later one is a programmatic dependent launch. It makes its access before it waits for the launch ahead of it.
    Early,
}

/// What an access found, and what it left: bits of the element that the other side accesses too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// What a load or an atomic has read.
    pub old: Option<u64>,
    /// What a store or an atomic has written.
    pub new: Option<u64>,
}

/// A memory that threads share, by the name of its field in the log and in reports.
pub use events::Memory as Space;

/// The rule that makes two accesses a race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Nothing orders them, and they are not both strong with scopes that include each other.
    #[default]
    Unordered,
    /// Both are strong, of different size or overlapping in part.
    Overlap,
    /// One reads through the read-only path what the other writes in the same launch.
    ReadOnly,
    /// One is an asynchronous copy that was not waited for.
    Asynchronous,
    /// A bulk copy reads what was written without a fence between the proxies.
    Proxy,
    /// They belong to work of different streams, which nothing orders.
    Streams,
    /// One is made by a kernel that has launched the other's, and not before it has.
    Child,
    /// They belong to work that kernels have launched, which nothing orders.
    Siblings,
    /// No data race: both are strong, in each other's scope, and not ordered although the program
    /// means them to be.
    Strong,
    /// No race in this run: only the order in which locks were taken has ordered them.
    LockOrder,
    /// No race in this run: only the order in which `fence.sc`s came has ordered them.
    Fences,
    /// The same, by the order in which atomics have counted threads, or that of `fence.sc`s.
    Counted,
    /// No race: a barrier or a warp operation is misused. The sides are the instructions by which
    /// threads came there.
    Misuse(Misuse),
}

/// A lock that a thread held when it accessed memory; see `shadow::hb::Held`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Which memory.
    pub space: Space,
    /// Address of the word, or its offset in shared memory.
    pub address: u64,
    /// What lies there.
    pub allocation: Option<Allocation>,
    /// Site that took it.
    pub taken: u32,
    /// Site that gave it back, if that came before the race.
    pub released: Option<u32>,
    /// Scope of what took it.
    pub scope: Scope,
    /// It was taken as by a reader: several threads may hold it so at once.
    pub shared: bool,
    /// Scope of the acquire behind taking it, if there was one.
    pub entry: Option<Scope>,
    /// Scope of the release before giving it back, if there was one.
    pub exit: Option<Scope>,
}

/// Which threads conflicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Hash, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Of different CTAs.
    #[default]
    Grid,
    /// Of different warps of one CTA.
    Cta,
    /// Of one warp.
    Warp,
}

impl Level {
    /// How far apart its threads are.
    pub(crate) fn reach(self) -> u32 {
        match self {
            Self::Warp => 0,
            Self::Cta => 1,
            Self::Grid => 2,
        }
    }
}

/// A thread by its block and thread index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// `blockIdx`
    pub block: [u32; 3],
    /// `threadIdx`
    pub thread: [u32; 3],
}

/// A piece of device memory, or a variable in shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Its number in the process, from 1; 0 in shared memory.
    pub id: u64,
    /// First address, or its offset in shared memory.
    pub base: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// The call that made it, or the variable's name.
    pub api: String,
    /// The element of a variable, as the program writes it: `tile[1][0]`, or `tile+0x84` if its type is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}
