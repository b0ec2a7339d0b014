//! What a report finds, in the one shape that all formats show.

use std::ops::Range;
use std::rc::Rc;

use crate::excerpt::{self, Excerpt, Shows, labels};
use crate::log::Answer;
use crate::model::{self, Failure, FrameAt, Race, Report, Verified};
use crate::rules::{Rule, RuleId};
use crate::side::shown;
use crate::source::Sources;
use crate::text::Style;
use crate::words::counted;
use crate::{stray, stuck, text, verified};

/// The name of the rule of accesses outside of all memory.
const OUT_OF_BOUNDS: &str = "out-of-bounds";
/// That of launches that `verify` was asked to prove and has not.
const NOT_PROVED: &str = "not-proved";
/// That of launches that failed for another reason.
const FAILED: &str = "launch-failed";

/// What is not in the table of rules: the name, and what it is in a few words.
pub(crate) const OTHERS: [(&str, &str); 3] = [
    (OUT_OF_BOUNDS, "access out of bounds"),
    (NOT_PROVED, "launch not proved"),
    (FAILED, "launch failed"),
];

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// It is wrong.
    Error,
    /// It may be wrong.
    Warning,
    /// It may be wrong, and the user allows that; or something else than a race.
    Note,
}

impl From<model::Level> for Level {
    fn from(level: model::Level) -> Self {
        match level {
            model::Level::Error => Self::Error,
            model::Level::Warning => Self::Warning,
        }
    }
}

/// A race, a deadlock, accesses out of bounds, a launch that failed, or what keeps launches from being proved.
pub(crate) struct Finding<'a> {
    /// Such as `CR003`.
    pub(crate) rule: &'a str,
    pub(crate) level: Level,
    pub(crate) message: String,
    pub(crate) help: String,
    /// Demangled.
    pub(crate) kernel: &'a str,
    /// Where, the first access first.
    pub(crate) spots: Vec<Spot<'a>>,
    /// All of it, if it is a race.
    pub(crate) race: Option<&'a Race>,
    /// The processes that had the race, where the report is of several.
    pub(crate) processes: Vec<String>,
    /// As in the text report.
    pub(crate) text: String,
}

/// A place in a source file, or in PTX where no source is known.
pub(crate) struct Spot<'a> {
    /// As a person here would write it.
    pub(crate) path: String,
    /// From 1.
    pub(crate) line: usize,
    /// From 1, in characters; not known without a column.
    pub(crate) columns: Option<Range<usize>>,
    /// What a thread did here.
    pub(crate) label: String,
    /// The whole file, where it was found.
    pub(crate) source: Option<Rc<str>>,
    /// The line, or the instruction.
    pub(crate) shown: String,
    pub(crate) shows: Shows,
    /// Demangled.
    pub(crate) function: &'a str,
}

impl Finding<'_> {
    /// What is wrong, in a few words.
    pub(crate) fn title(&self) -> &'static str {
        let other = OTHERS.iter().find(|(name, _)| *name == self.rule);
        let other = other.map_or("", |(_, title)| title);
        Rule::find(self.rule).map_or(other, |rule| rule.title)
    }

    /// Why it does not count, if it does not.
    pub(crate) fn suppressed(&self) -> Option<&str> {
        let race = self.race?;
        let by = race.suppressed_by.as_ref();
        let reason = by.map(|by| by.reason.as_str());
        reason.or_else(|| race.is_in_baseline().then_some("known from the baseline"))
    }
}

/// All findings of a report, also those that do not count.
pub(crate) fn all<'a>(report: &'a Report, sources: &Sources) -> Vec<Finding<'a>> {
    let races = { &report.races }
        .iter()
        .map(|race| of_race(race, report, sources));
    let strays = report.out_of_bounds.iter().map(|of| {
        let text = stray::render(of, sources);
        let first = text.lines().next().unwrap_or_default();
        let label = format!("{} of {} memory", of.op, of.space);
        Finding {
            rule: OUT_OF_BOUNDS,
            level: Level::Error,
            message: first.trim_start_matches("error: ").to_owned(),
            help: of.distance.clone(),
            kernel: &of.kernel,
            spots: spot(&of.frames, label, sources).into_iter().collect(),
            race: None,
            processes: Vec::new(),
            text,
        }
    });
    let failures = { &report.failures }
        .iter()
        .map(|failure| of_failure(failure, sources));
    let unproved = report.verified.iter();
    let unproved = unproved.flat_map(|of| not_proved(of, report, sources));
    races
        .chain(strays)
        .chain(failures)
        .chain(unproved)
        .collect()
}

fn of_race<'a>(race: &'a Race, report: &Report, sources: &Sources) -> Finding<'a> {
    let sides = race.accesses.iter().zip(labels(race));
    let sides = sides.filter(|(access, _)| !access.is_call());
    let spots = sides.map(|(access, label)| {
        let function = access
            .shown()
            .map_or(&access.function, |frame| &frame.function);
        Spot::of(excerpt::of_access(access, sources), label, function)
    });
    Finding {
        rule: race.rule.as_str(),
        level: race.level.into(),
        message: race.message.clone(),
        help: race.help.clone(),
        kernel: &race.kernel.name,
        spots: spots.collect(),
        race: Some(race),
        processes: excerpt::processes(race, report),
        text: excerpt::render(race, report, sources, Style::default()),
    }
}

/// A launch that failed. Only a deadlock is an error of how threads synchronise.
fn of_failure<'a>(failure: &'a Failure, sources: &Sources) -> Finding<'a> {
    let stuck = failure.stuck.as_ref();
    let waits = stuck.iter().flat_map(|stuck| &stuck.waits);
    let waits = waits.filter_map(|wait| spot(&wait.frames, stuck::waiting(wait), sources));
    let (rule, level, spots) = match failure.deadlock {
        true => (
            RuleId::Synchronisation.as_str(),
            Level::Error,
            waits.collect(),
        ),
        false => {
            let at = spot(&failure.frames, "it failed here".to_owned(), sources);
            (FAILED, Level::Note, at.into_iter().collect())
        }
    };
    Finding {
        rule,
        level,
        message: failure.message.clone(),
        help: stuck.map_or(String::new(), |stuck| stuck.help.clone()),
        kernel: &failure.kernel,
        spots,
        race: None,
        processes: Vec::new(),
        text: text::render_failure(failure, sources),
    }
}

/// What keeps launches of a kernel from being proved, a finding for each reason.
fn not_proved<'a>(of: &'a Verified, report: &'a Report, sources: &Sources) -> Vec<Finding<'a>> {
    let finding = |launches: u64, why: &str, spots, text| Finding {
        rule: NOT_PROVED,
        level: match of.allowed {
            true => Level::Note,
            false => Level::Warning,
        },
        message: format!(
            "{} of {} not proved{why}",
            counted(launches, "launch"),
            of.kernel
        ),
        help: String::new(),
        kernel: &of.kernel,
        spots,
        race: None,
        processes: Vec::new(),
        text,
    };
    // The reasons are those of the weakest answer.
    if of.answer != Answer::Unknown || of.because.is_empty() {
        let text = || format!("UNKNOWN: {}", of.kernel);
        let unknown = Some(of.launches.unknown).filter(|&launches| launches > 0);
        let finding = unknown.map(|launches| finding(launches, "", Vec::new(), text()));
        return finding.into_iter().collect();
    }
    let module = { &report.coverage.kernels }
        .iter()
        .find(|kernel| kernel.name == of.kernel)
        .map_or("", |kernel| &kernel.module);
    let spot = |frames: &'a [FrameAt], line: u32, label: &str| {
        if line == 0 {
            return None;
        }
        let in_ptx = || {
            let excerpt = excerpt::of_ptx(module.to_owned(), line, "");
            Spot::of(excerpt, label.to_owned(), &of.kernel)
        };
        Some(spot(frames, label.to_owned(), sources).unwrap_or_else(in_ptx))
    };
    let mut findings: Vec<Finding<'a>> = Vec::new();
    for because in &of.because {
        let text = format!(
            "UNKNOWN: {}\n  {}",
            of.kernel,
            verified::reason(because, sources)
        );
        // Several instructions of a line may have the same reason.
        if findings.iter().any(|known| known.text == text) {
            continue;
        }
        let here = spot(&because.frames, because.ptx_line, &because.text);
        let from = spot(&because.from_frames, because.from_ptx_line, "from here");
        let spots = here.into_iter().chain(from).collect();
        findings.push(finding(
            because.launches,
            &format!(": {}", because.text),
            spots,
            text,
        ));
    }
    findings
}

fn spot<'a>(frames: &'a [FrameAt], label: String, sources: &Sources) -> Option<Spot<'a>> {
    let frame = shown(frames)?;
    let excerpt = excerpt::of_frame(frame, "", false, sources);
    Some(Spot::of(excerpt, label, &frame.function))
}

impl<'a> Spot<'a> {
    fn of(excerpt: Excerpt, label: String, function: &'a str) -> Self {
        let Excerpt {
            path,
            text,
            line,
            span,
            shows,
        } = excerpt;
        if shows != Shows::Source {
            return Self {
                path,
                line,
                columns: None,
                label,
                source: None,
                shown: text.to_string(),
                shows,
                function,
            };
        }
        let before = &text[..span.start];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = text[start..span.start].chars().count() + 1;
        let line_text = text[start..].lines().next().unwrap_or_default();
        Self {
            path,
            line: line + before.matches('\n').count(),
            columns: Some(column..column + text[span].chars().count()),
            label,
            shown: line_text.to_owned(),
            shows,
            source: Some(text),
            function,
        }
    }
}
