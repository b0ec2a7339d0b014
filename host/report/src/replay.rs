//! A race of a launch that was run again, with what its two threads did in between.

use serde::{Deserialize, Serialize};
use strum::Display;

use crate::excerpt;
use crate::log::{Scope, Semantics};
use crate::model::{FrameAt, Race, Report};
use crate::side;
use crate::source::Sources;
use crate::words::{counted, number, scope as scope_word};

/// A race as a replay has seen it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Replay {
    /// The race, with the values of this run.
    pub race: Race,
    /// Whether the launch did what it did when it was recorded.
    pub faithful: bool,
    /// What was different, if it did not.
    pub differences: Vec<String>,
    /// Instructions that the launch executed, each for the threads of a warp that were together.
    pub warp_instructions: u64,
    /// From the first access to the second, in the order of the run: both, and what the two threads did in between to
    /// order themselves.
    pub steps: Vec<Step>,
    /// Steps that are left out in the middle.
    pub left_out: u64,
    /// Accesses of all threads to the word that races, in the order of the run, if they were asked for.
    pub trace: Option<Vec<Step>>,
    /// Accesses that are left out at its end.
    pub trace_left_out: u64,
}

/// Something that a thread does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Its position in the launch, among everything that accesses shared or global memory or orders threads; from 1.
    pub number: u64,
    /// Which of the two threads it is.
    pub role: Role,
    /// Linear index of its block.
    pub cta: u64,
    /// Linear index of the thread in its block; none for the end of a barrier.
    pub thread: Option<u32>,
    /// What it does.
    pub did: Did,
    /// How often in a row.
    pub times: u64,
    /// Line of the instruction in the module's PTX; 0 for the end of a barrier or of a thread.
    pub ptx_line: u32,
    /// Source, innermost inlined function first.
    pub frames: Vec<FrameAt>,
}

impl Step {
    /// The [frames](Self::frames) of an instruction, whose outermost function is `function`, mangled.
    pub fn source(frames: &[crate::log::Frame], function: &str) -> Vec<FrameAt> {
        side::frames(frames, function)
    }

    /// Whether the step is one more of this one.
    pub fn is_again(&self, next: &Self) -> bool {
        let place = |of: &Self| (of.role, of.cta, of.thread, of.ptx_line);
        place(self) == place(next) && self.did == next.did
    }
}

/// Which of the two threads of a race does something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// That of the first access.
    First,
    /// That of the second access.
    Second,
    /// Both.
    Both,
    /// Another one.
    #[default]
    Other,
}

/// How a thread accesses memory, as PTX calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Reads.
    Ld,
    /// Writes.
    St,
    /// Reads and writes in one step.
    Atom,
    /// The same, and the program does not use what was read.
    Red,
}

/// What a fence orders, as PTX calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FenceOrder {
    /// Everything, and all such fences one behind the other.
    Sc,
    /// What comes before it and what comes after it.
    AcqRel,
    /// What comes after it.
    Acquire,
    /// What comes before it.
    Release,
    /// Ordinary accesses and those of bulk copies.
    #[serde(rename = "proxy.async")]
    #[strum(serialize = "proxy.async")]
    ProxyAsync,
    /// Initialisations of mbarriers.
    MbarrierInit,
}

/// What a thread does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Did {
    /// Accesses memory.
    Access {
        /// How.
        op: Op,
        /// Its semantics.
        order: Semantics,
        /// Scope of a strong access.
        scope: Option<Scope>,
        /// Where, an offset in shared memory.
        address: u64,
        /// It is shared memory.
        shared: bool,
        /// It is the word that races.
        racing: bool,
    },
    /// Executes a fence.
    Fence {
        /// What it orders.
        order: FenceOrder,
        /// Its scope, if it has one.
        scope: Option<Scope>,
    },
    /// Arrives at a barrier of the block.
    Arrive {
        /// Which.
        barrier: u32,
        /// And waits there.
        waits: bool,
    },
    /// A barrier of the block is over.
    Complete {
        /// Which.
        barrier: u32,
    },
    /// Passes a barrier of the warp.
    WarpBarrier,
    /// Arrives at the barrier of the cluster.
    ClusterArrive {
        /// Without ordering anything.
        relaxed: bool,
    },
    /// Goes on after the barrier of the cluster.
    ClusterWait,
    /// Issues an asynchronous copy.
    Copy {
        /// A bulk copy.
        bulk: bool,
        /// It reads or writes the word that races.
        racing: bool,
    },
    /// Ends a group of asynchronous copies.
    Commit {
        /// Of bulk copies.
        bulk: bool,
    },
    /// Waits for asynchronous copies.
    WaitForCopies,
    /// Operates on an mbarrier.
    Mbarrier {
        /// Its offset in shared memory.
        address: u64,
        /// Arrives.
        arrives: bool,
        /// Waits, or tests.
        waits: bool,
        /// The phase is over.
        over: bool,
    },
    /// Copies have ended a phase of an mbarrier.
    MbarrierComplete {
        /// Its offset in shared memory.
        address: u64,
    },
    /// Ends.
    #[default]
    Exit,
}

impl Did {
    fn words(&self) -> String {
        let within = |scope: &Option<Scope>| {
            scope.map_or(String::new(), |of| format!(", {} scope", scope_word(of)))
        };
        match self {
            Self::Access {
                op,
                order,
                scope,
                address,
                shared,
                racing,
            } => {
                let did = match op {
                    Op::Ld => "reads",
                    Op::St => "writes",
                    Op::Atom | Op::Red => "updates atomically",
                };
                let space = if *shared { "shared memory " } else { "" };
                let how = match order {
                    Semantics::Weak => String::new(),
                    order => format!(" ({order}{})", within(scope)),
                };
                match racing {
                    true => format!("{did} the word that races{how}"),
                    false => format!("{did} {space}{address:#x}{how}"),
                }
            }
            Self::Fence { order, scope } => format!("fence ({order}{})", within(scope)),
            Self::Arrive {
                barrier,
                waits: true,
            } => format!("arrives at barrier {barrier} of the block and waits"),
            Self::Arrive { barrier, .. } => format!("arrives at barrier {barrier} of the block"),
            Self::Complete { barrier } => format!("barrier {barrier} of the block completes"),
            Self::WarpBarrier => "passes a barrier of the warp".to_owned(),
            Self::ClusterArrive { relaxed: true } => {
                "arrives at the barrier of the cluster (relaxed)".to_owned()
            }
            Self::ClusterArrive { .. } => "arrives at the barrier of the cluster".to_owned(),
            Self::ClusterWait => "has waited at the barrier of the cluster".to_owned(),
            Self::Copy { bulk, racing } => {
                let of = if *racing {
                    " of the word that races"
                } else {
                    ""
                };
                let bulk = if *bulk { "bulk " } else { "" };
                format!("issues an asynchronous {bulk}copy{of}")
            }
            Self::Commit { .. } => "ends a group of asynchronous copies".to_owned(),
            Self::WaitForCopies => "waits for asynchronous copies".to_owned(),
            Self::Mbarrier {
                address,
                arrives,
                waits,
                over,
            } => {
                let over = match (over, *waits) {
                    (true, _) => ", the phase is over",
                    (false, true) => ", the phase is not over",
                    (false, false) => "",
                };
                let did = match (arrives, waits) {
                    (true, _) => "arrives at",
                    (_, true) => "waits for",
                    _ => "operates on",
                };
                format!("{did} the mbarrier at {address:#x}{over}")
            }
            Self::MbarrierComplete { address } => {
                format!("copies end a phase of the mbarrier at {address:#x}")
            }
            Self::Exit => "ends".to_owned(),
        }
    }
}

/// The race as text: its report, the steps in between, and what would have ordered its accesses. `report` is that of the
/// replay.
pub fn render(replay: &Replay, report: &Report, sources: &Sources, color: bool) -> String {
    let race = &replay.race;
    let mut text = excerpt::render_without_help(race, report, sources, color);
    text.push_str("\n\n");
    text += &between(replay, sources);
    if let Some(trace) = &replay.trace {
        text += &format!(
            "\naccesses of all threads to the word that races ({}):\n",
            race.address.value
        );
        text += &list(trace, race, sources);
        if replay.trace_left_out > 0 {
            text += &format!("  … and {} more\n", number(replay.trace_left_out));
        }
    }
    text += &format!("\nhelp: {}\n", race.help);
    match replay.faithful {
        true => {
            text += &format!(
                "replayed launch #{}: the same race in the same run of {}\n",
                race.kernel.launch,
                counted(replay.warp_instructions, "warp instruction")
            );
        }
        false => {
            for what in &replay.differences {
                text += &format!("not the recorded run: {what}\n");
            }
        }
    }
    text
}

fn between(replay: &Replay, sources: &Sources) -> String {
    let race = &replay.race;
    let steps = &replay.steps[..];
    if steps.is_empty() {
        return "no steps: the race is not between two accesses of threads\n".to_owned();
    }
    let inner = steps.len().saturating_sub(2) as u64 + replay.left_out;
    let what = match (steps.len(), inner) {
        (1, _) => "one instruction makes both accesses".to_owned(),
        (_, 0) => {
            "from the first access to the second; neither thread synchronises in between".to_owned()
        }
        (_, n) => format!(
            "from the first access to the second, {} of the two threads in between",
            counted(n, "step")
        ),
    };
    let mut text = format!("{what}:\n");
    match replay.left_out {
        0 => text += &list(steps, race, sources),
        left_out => {
            let (before, after) = steps.split_at(steps.len() / 2);
            text += &list(before, race, sources);
            text += &format!("  … {} more …\n", number(left_out));
            text += &list(after, race, sources);
        }
    }
    text
}

fn list(steps: &[Step], race: &Race, sources: &Sources) -> String {
    let rows: Vec<[String; 4]> = steps
        .iter()
        .map(|step| {
            let thread_text = match (step.role, step.thread) {
                (Role::First, _) => "first".to_owned(),
                (Role::Second, _) => "second".to_owned(),
                (Role::Both, _) => "both".to_owned(),
                (Role::Other, Some(thread)) => {
                    let index = |n: u64, [x, y, _]: [u32; 3]| {
                        let (x, y) = (u64::from(x.max(1)), u64::from(y.max(1)));
                        format!("({},{},{})", n % x, n / x % y, n / x / y)
                    };
                    let (grid, block) = (race.kernel.grid, race.kernel.block);
                    format!(
                        "thread {} block {}",
                        index(u64::from(thread), block),
                        index(step.cta, grid)
                    )
                }
                (Role::Other, None) => String::new(),
            };
            let times = match step.times {
                0 | 1 => String::new(),
                n => format!(", {} times", number(n)),
            };
            let place = match (side::shown(&step.frames), step.ptx_line) {
                (Some(frame), _) => format!("{}:{}", sources.shown(&frame.file), frame.line),
                (None, 0) => String::new(),
                (None, line) => format!("PTX line {line}"),
            };
            [
                number(step.number),
                thread_text,
                format!("{}{times}", step.did.words()),
                place,
            ]
        })
        .collect();
    let width = |n: usize| {
        rows.iter()
            .map(|row| row[n].chars().count())
            .max()
            .unwrap_or(0)
    };
    let [a, b, c] = [0, 1, 2].map(width);
    let line = |[at, thread_text, did, place]: &[String; 4]| {
        let line = format!("  {at:>a$}  {thread_text:<b$}  {did:<c$}  {place}");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}
