//! What a report finds, in the one shape that all formats show.

use std::ops::Range;
use std::rc::Rc;

use crate::excerpt::{self, Place, labels};
use crate::model::{FrameAt, Level, Race, Report};
use crate::rules::Rule;
use crate::side::shown;
use crate::source::Sources;
use crate::{misuse, stray, stuck, text};

/// The name of the rule of accesses outside of all memory.
pub(crate) const OUT_OF_BOUNDS: &str = "out-of-bounds";

/// A race, a deadlock, or accesses out of bounds.
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
    /// The line, or the instruction where the source was not found.
    pub(crate) shown: String,
    /// Demangled.
    pub(crate) function: &'a str,
}

impl Finding<'_> {
    /// What is wrong, in a few words.
    pub(crate) fn title(&self) -> &'static str {
        match Rule::find(self.rule) {
            Some(rule) => rule.title,
            None => "access out of bounds",
        }
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
            text,
        }
    });
    let deadlocks = report.failures.iter().filter(|failure| failure.deadlock);
    let deadlocks = deadlocks.map(|failure| {
        let waits = failure.stuck.iter().flat_map(|stuck| &stuck.waits);
        let spots = waits.filter_map(|wait| spot(&wait.frames, stuck::who(wait), sources));
        Finding {
            rule: misuse::RULE,
            level: Level::Error,
            message: failure.message.clone(),
            help: { &failure.stuck }
                .as_ref()
                .map_or(String::new(), |stuck| stuck.help.clone()),
            kernel: &failure.kernel,
            spots: spots.collect(),
            race: None,
            text: text::render_failure(failure, sources),
        }
    });
    races.chain(strays).chain(deadlocks).collect()
}

fn of_race<'a>(race: &'a Race, report: &Report, sources: &Sources) -> Finding<'a> {
    let sides = race.accesses.iter().zip(labels(race));
    let sides = sides.filter(|(access, _)| !access.is_call());
    let spots = sides.map(|(access, label)| {
        let function = access
            .shown()
            .map_or(&access.function, |frame| &frame.function);
        Spot::of(excerpt::place(access, sources), label, function)
    });
    Finding {
        rule: &race.rule,
        level: race.level,
        message: race.message.clone(),
        help: race.help.clone(),
        kernel: &race.kernel.name,
        spots: spots.collect(),
        race: Some(race),
        text: excerpt::render(race, report, sources, false),
    }
}

fn spot<'a>(frames: &'a [FrameAt], label: String, sources: &Sources) -> Option<Spot<'a>> {
    let frame = shown(frames)?;
    let place = excerpt::place_of_frame(frame, "", false, sources);
    Some(Spot::of(place, label, &frame.function))
}

impl<'a> Spot<'a> {
    fn of(place: Place, label: String, function: &'a str) -> Self {
        let Place {
            path,
            text,
            line,
            span,
            is_source,
        } = place;
        if !is_source {
            return Self {
                path,
                line,
                columns: None,
                label,
                source: None,
                shown: text.to_string(),
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
            source: Some(text),
            function,
        }
    }
}
