//! The report for people: races with source excerpts of both sides, then SUMMARY and COVERAGE.

use std::borrow::Cow;
use std::fmt::Write;

use textwrap::{WordSeparator, WordSplitter, WrapAlgorithm};

use crate::coverage::{self, coverage, summary};
use crate::excerpt;
use crate::known;
use crate::model::{Failure, Level, Report, Suppression};
use crate::rules::RuleId;
use crate::source::Sources;
use crate::words::{counted, number};
use crate::{stray, stuck, verified};

/// Columns that text has at least, however narrow the terminal is.
const NARROWEST: usize = 40;

/// How to render.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// ANSI colours.
    pub color: bool,
    /// Columns that lines are wrapped to, but for source code.
    pub width: Option<usize>,
    /// Races beyond this many are only counted.
    pub print_limit: Option<usize>,
    /// Only SUMMARY and COVERAGE when there is nothing to report.
    pub quiet: bool,
    /// Races that the baseline has are only counted.
    pub new_only: bool,
    /// Warnings are only counted.
    pub errors_only: bool,
}

impl Style {
    /// Whether races of a level are shown.
    pub(crate) fn shows(self, level: Level) -> bool {
        level == Level::Error || !self.errors_only
    }
}

/// The whole report, ending in a newline.
pub fn render(report: &Report, sources: &Sources, style: Style) -> String {
    let mut races = String::new();
    let shown = style.print_limit.unwrap_or(usize::MAX);
    let reported = || {
        let races = report.races.iter();
        let races = races.filter(|race| style.shows(race.level));
        races.filter(|race| race.counts() || race.is_in_baseline() && !style.new_only)
    };
    for race in reported().take(shown) {
        races.push_str(&excerpt::render(race, report, sources, style));
        races.push_str("\n\n");
    }
    let mut text = String::new();
    let hidden = reported().count().saturating_sub(shown);
    if hidden > 0 {
        put(
            &mut text,
            format_args!(
                "({} more not shown, --print-limit {shown})\n",
                number(hidden as u64)
            ),
        );
    }
    let counted_only = report.counted().filter(|race| !style.shows(race.level));
    let warnings = counted_only.count() as u64;
    if warnings > 0 {
        let warnings = counted(warnings, "warning");
        put(
            &mut text,
            format_args!("({warnings} not shown, --print-level error)\n"),
        );
    }
    for stray in &report.out_of_bounds {
        put(&mut text, format_args!("{}", stray::render(stray, sources)));
    }
    if !style.quiet {
        for line in known::lines(report, sources) {
            put(&mut text, format_args!("{line}"));
        }
    }
    // One that has expired explains a race that is back.
    let idle = report.suppressions.iter();
    let idle = idle.filter(|of| !style.quiet || of.expired);
    for warning in idle.filter_map(Suppression::warning) {
        put(&mut text, format_args!("warning: {warning}"));
    }
    for failure in &report.failures {
        put(
            &mut text,
            format_args!("{}", render_failure(failure, sources)),
        );
    }
    for launch in &report.coverage.incomplete {
        let found = match launch.reported {
            true => "races found until then are reported",
            false => "whether it had races is not known",
        };
        let which = coverage::incomplete(launch);
        put(
            &mut text,
            format_args!(
                "warning: the process ended in launch {which}; {found}{}",
                stuck::interrupted(&launch.threads, sources)
            ),
        );
    }
    for line in verified::lines(report, sources) {
        put(&mut text, format_args!("{line}"));
    }
    for what in &report.tool.errors {
        put(
            &mut text,
            format_args!(
                "internal error of cudarun-check: {what}; please report it, unless the program accesses memory outside of its allocations"
            ),
        );
    }
    for what in &report.coverage.missed {
        put(&mut text, format_args!("warning: {what}"));
    }
    if !style.quiet {
        for note in &report.notes {
            put(&mut text, format_args!("note: {note}"));
        }
    }
    put(&mut text, format_args!("{}", summary(report)));
    put(&mut text, format_args!("{}", coverage(report)));
    format!("{races}{}", wrapped(&text, style.width, "  "))
}

/// A text of which no line is wider than so many columns, if its words allow that; `indent` goes before what a long line
/// goes on with.
pub(crate) fn wrapped<'a>(text: &'a str, width: Option<usize>, indent: &str) -> Cow<'a, str> {
    let Some(width) = width else {
        return Cow::Borrowed(text);
    };
    let options = textwrap::Options::new(width.max(NARROWEST))
        .subsequent_indent(indent)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    let lines: Vec<String> = { text.split('\n') }
        .map(|line| textwrap::fill(line, &options))
        .collect();
    Cow::Owned(lines.join("\n"))
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

/// A failed launch, without the newline at its end.
pub(crate) fn render_failure(failure: &Failure, sources: &Sources) -> String {
    let level = match failure {
        Failure { deadlock: true, .. } => &format!("error[{}]", RuleId::Synchronisation),
        Failure {
            unsupported: true, ..
        } => "warning",
        _ => "note",
    };
    let at = failure.frames.first().map_or(String::new(), |frame| {
        format!(" ({}:{})", frame.file, frame.line)
    });
    let what = match failure.invalid {
        true => "was refused",
        false => "failed",
    };
    let times = match failure.count {
        1 => String::new(),
        n => format!(" ({})", counted(n, "time")),
    };
    let stuck = failure.stuck.as_ref();
    format!(
        "{level}: a launch of {} {what}{times}: {}{at}{}",
        failure.kernel,
        failure.message,
        stuck.map_or(String::new(), |stuck| stuck::render(stuck, sources))
    )
}
