//! What `verify` says of the launches of a kernel.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::log::{self, Answer};
use crate::model::{FrameAt, Race, Report};
use crate::names::demangle;
use crate::side::{frames, shown};
use crate::source::Sources;
use crate::words::{counted, put_in};

/// Most reasons of a kernel that are kept.
const REASONS: usize = 16;

/// What `verify` says of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verified {
    /// Demangled.
    pub kernel: String,
    /// The weakest answer of its launches.
    pub answer: Answer,
    /// Its launches by their answers.
    pub launches: Answers,
    /// What is in the way of a better answer.
    pub because: Vec<Because>,
    /// The user allows launches that are not proved.
    pub allowed: bool,
    /// Lanes of a warp that execute an access together are taken to go on together.
    pub warp_synchronous: bool,
    /// The user's assumptions about launches.
    pub assumptions: Vec<Assumption>,
    /// What is proved of all launches that fulfil conditions.
    pub families: Vec<Family>,
    /// Why not all launches are proved that fulfil the assumptions, where these hold; empty if they are.
    pub open_family: String,
}

/// An assumption of the user's about the launches of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Assumption {
    /// As the user has written it.
    pub text: String,
    /// Launches in which it held.
    pub held: u64,
    /// Launches in which it did not hold.
    pub broken: u64,
    /// The values in the first of these.
    pub values: String,
    /// Why it says nothing of the kernel, if so.
    pub unfit: String,
}

/// Launches of a kernel that are proved for all schedules and all contents of memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Family {
    /// What they have in common.
    pub conditions: Vec<String>,
    /// Those of the run that belong to it.
    pub launches: u64,
}

/// Launches by their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// Proved for all schedules and all contents of memory.
    pub all_data: u64,
    /// Proved for all schedules, and for what memory contained.
    pub this_data: u64,
    /// Neither proved nor refuted.
    pub unknown: u64,
    /// Accesses raced, or a barrier was misused.
    pub race: u64,
}

impl Answers {
    fn add(&mut self, other: Self) {
        self.all_data += other.all_data;
        self.this_data += other.this_data;
        self.unknown += other.unknown;
        self.race += other.race;
    }

    fn of(answer: Answer) -> Self {
        let mut one = Self::default();
        match answer {
            Answer::AllData => one.all_data = 1,
            Answer::ThisData => one.this_data = 1,
            Answer::Unknown => one.unknown = 1,
            Answer::Race => one.race = 1,
        }
        one
    }

    fn total(self) -> u64 {
        self.all_data + self.this_data + self.unknown + self.race
    }
}

/// What is in the way of a better answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Because {
    /// What it is.
    pub text: String,
    /// Launches in whose way it is.
    pub launches: u64,
    /// Line in the program's own PTX, 0 for none.
    pub ptx_line: u32,
    /// Source, innermost inlined function first.
    pub frames: Vec<FrameAt>,
    /// The line of the instruction that has brought the value, or of the access before, 0 for none.
    pub from_ptx_line: u32,
    /// Its source.
    pub from_frames: Vec<FrameAt>,
}

impl Assumption {
    fn of(logged: &log::Assumption) -> Self {
        let mut one = Self {
            text: logged.text.clone(),
            ..Self::default()
        };
        match &logged.standing {
            log::Standing::Holds => one.held = 1,
            log::Standing::Broken(values) => (one.broken, one.values) = (1, values.clone()),
            log::Standing::Unfit(why) => one.unfit.clone_from(why),
        }
        one
    }

    fn add(&mut self, other: Self) {
        self.held += other.held;
        self.broken += other.broken;
        if self.values.is_empty() {
            self.values = other.values;
        }
    }

    /// A line for a person.
    fn line(&self) -> String {
        let Self {
            text,
            held,
            broken,
            values,
            unfit,
        } = self;
        match (unfit.is_empty(), *broken) {
            (false, _) => format!("assumption `{text}` says nothing of this kernel: {unfit}"),
            (true, 0) => format!("assumption `{text}` held in {}", counted(*held, "launch")),
            (true, _) => format!(
                "assumption `{text}` is broken in {broken} of {}, first by {values}",
                counted(held + broken, "launch")
            ),
        }
    }
}

/// Adds what is said of a launch.
pub(crate) fn add(all: &mut Vec<Verified>, launch: &log::Launch) {
    let Some(of) = &launch.verified else {
        return;
    };
    let because = of.because.iter().map(|of| Because {
        text: of.text.clone(),
        launches: 1,
        ptx_line: of.ptx_line,
        frames: frames(&of.frames, &launch.kernel),
        from_ptx_line: of.from_ptx_line,
        from_frames: frames(&of.from_frames, &launch.kernel),
    });
    let one = Verified {
        kernel: demangle(&launch.kernel),
        answer: of.answer,
        launches: Answers::of(of.answer),
        because: because.collect(),
        allowed: false,
        warp_synchronous: false,
        assumptions: of.assumptions.iter().map(Assumption::of).collect(),
        families: match &of.family {
            Some(log::Family::Proved(conditions)) => vec![Family {
                conditions: conditions.clone(),
                launches: 1,
            }],
            _ => Vec::new(),
        },
        open_family: match &of.family {
            Some(log::Family::Open(why)) => why.clone(),
            _ => String::new(),
        },
    };
    join(all, one);
}

/// Adds what is said of launches of a kernel.
pub(crate) fn join(all: &mut Vec<Verified>, other: Verified) {
    let Some(known) = all.iter_mut().find(|known| known.kernel == other.kernel) else {
        return all.push(other);
    };
    known.launches.add(other.launches);
    known.allowed &= other.allowed;
    known.warp_synchronous |= other.warp_synchronous;
    for of in other.assumptions {
        let same = |known: &&mut Assumption| known.text == of.text;
        match known.assumptions.iter_mut().find(same) {
            Some(known) => known.add(of),
            None => known.assumptions.push(of),
        }
    }
    for of in other.families {
        let same = |known: &&mut Family| known.conditions == of.conditions;
        match known.families.iter_mut().find(same) {
            Some(known) => known.launches += of.launches,
            None => known.families.push(of),
        }
    }
    if known.open_family.is_empty() {
        known.open_family = other.open_family;
    }
    // What is in the way of the weakest answer.
    match other.answer.cmp(&known.answer) {
        Ordering::Greater => return,
        Ordering::Equal => {}
        Ordering::Less => {
            known.answer = other.answer;
            known.because.clear();
        }
    }
    for reason in other.because {
        let place = |of: &Because| (of.text.clone(), of.ptx_line, of.from_ptx_line);
        let same = |of: &&mut Because| place(of) == place(&reason);
        let room = known.because.len() < REASONS;
        match known.because.iter_mut().find(same) {
            Some(known) => known.launches += reason.launches,
            None if room => known.because.push(reason),
            None => {}
        }
    }
}

/// Why a run is incomplete: what `verify` was asked to prove and has not.
pub(crate) fn incomplete(report: &Report) -> Option<String> {
    let kernels = report.verified.iter().map(|of| of.launches);
    let open: u64 = kernels.map(|of| of.unknown + of.race).sum();
    if open > 0 {
        return Some(format!("{} not proved", counted(open, "launch")));
    }
    let mut kernels = report.verified.iter();
    if let Some(of) = kernels.find(|of| !of.open_family.is_empty()) {
        return Some(format!(
            "not all launches of {} that fulfil the assumptions are proved",
            of.kernel
        ));
    }
    let all = || report.verified.iter().flat_map(|of| &of.assumptions);
    if let Some(of) = all().find(|of| of.broken > 0) {
        return Some(of.line());
    }
    // About no kernel of the run: its names may be misspelled.
    let mut texts = all().map(|of| &of.text);
    let unfit = texts.find(|text| all().all(|of| of.text != **text || !of.unfit.is_empty()));
    unfit.map(|text| format!("assumption `{text}` says nothing of any kernel that was launched"))
}

/// The answers, a line for each kernel and for each reason.
pub(crate) fn lines(report: &Report, sources: &Sources) -> Vec<String> {
    let mut lines = Vec::new();
    let counts = report.races.iter().any(Race::counts);
    for of in &report.verified {
        let answer = match of.answer {
            Answer::AllData => "PROVED (all schedules, all data)",
            Answer::ThisData => "PROVED (all schedules, this data)",
            Answer::Unknown => "UNKNOWN",
            Answer::Race => "RACE",
        };
        // Only if each launch belongs to it.
        let family = match &of.families[..] {
            [family] if of.answer == Answer::AllData && family.launches == of.launches.total() => {
                Some(format!(
                    "PROVED for launches with {}",
                    family.conditions.join(", ")
                ))
            }
            _ => None,
        };
        let answer = family.as_deref().unwrap_or(answer);
        let mut line = format!(
            "{answer}: {}, {}",
            of.kernel,
            counted(of.launches.total(), "launch")
        );
        let (better, how) = match of.answer {
            Answer::AllData => (0, ""),
            Answer::ThisData => (of.launches.all_data, "for all data"),
            Answer::Unknown | Answer::Race => {
                (of.launches.all_data + of.launches.this_data, "proved")
            }
        };
        if better > 0 {
            put_in(&mut line, format_args!(", {better} of them {how}"));
        }
        if of.warp_synchronous {
            line += ", if lanes of a warp that execute an access together go on together";
        }
        lines.push(line);
        if of.answer == Answer::Race && !report.races.is_empty() && !counts {
            lines.push("  its races do not count: they are known or suppressed".to_owned());
        }
        // Several instructions of a line may have the same reason.
        let mut reasons: Vec<String> = Vec::new();
        for because in &of.because {
            let text = format!("  {}", reason(because, sources));
            if !reasons.contains(&text) {
                reasons.push(text);
            }
        }
        lines.extend(reasons);
        let others = of.families.iter().filter(|_| family.is_none());
        lines.extend(others.map(|family| {
            format!(
                "  PROVED for launches with {}: {} of them",
                family.conditions.join(", "),
                family.launches
            )
        }));
        if !of.open_family.is_empty() {
            lines.push(format!(
                "  not proved for all launches that fulfil the assumptions: {}",
                of.open_family
            ));
        }
        let assumptions = of.assumptions.iter();
        lines.extend(assumptions.map(|of| format!("  {}", of.line())));
    }
    lines
}

/// A reason with its places.
pub(crate) fn reason(of: &Because, sources: &Sources) -> String {
    let place = |frames: &[FrameAt], line: u32| match shown(frames) {
        Some(frame) => format!("{}:{}", sources.shown(&frame.file), frame.line),
        None => format!("PTX line {line}"),
    };
    let mut text = match of.ptx_line {
        0 => of.text.clone(),
        line => format!("{}: {}", place(&of.frames, line), of.text),
    };
    if of.from_ptx_line != 0 {
        let from = place(&of.from_frames, of.from_ptx_line);
        put_in(&mut text, format_args!(" (from {from})"));
    }
    text
}
