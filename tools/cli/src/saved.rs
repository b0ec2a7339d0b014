//! Saved reports: reading them, and `report`, which shows them again.

use std::path::{Path, PathBuf};

use report::Report;
use report::model::{Race, RunOutcome};
use report::source::Sources;

use crate::archive::{self, Saved};
use crate::args::{FailOn, ReportArgs};
use crate::console;
use crate::exit::{self, BAD_INPUT, Stop, USAGE};
use crate::output::{Outputs, Stream};
use crate::run::without_races;

/// Shows the reports as one; the exit code is that of the worst.
pub(crate) fn run(args: &ReportArgs) -> Result<u8, Stop> {
    Outputs::may_overwrite(&args.output, args.runs.iter())?;
    let mut report = read_all(&args.runs)?;
    count_by(args.fail_on, &mut report);
    let marked = |race: &Race| race.baseline.is_some();
    if args.output.new_only && !report.races.is_empty() && !report.races.iter().any(marked) {
        let text = "--new-only: none of these runs had a baseline; make them with `--baseline FILE --save RUN`, or compare two by `cudarun-check diff`";
        return Err(Stop::new(USAGE, text));
    }
    let mut outputs = Outputs::open(&args.output, Stream::Output)?;
    outputs.write(&report, &sources(&args.output.source_root))?;
    let outcome = match outcome(&report, args.fail_on) {
        RunOutcome::Incomplete if args.allow_incomplete => RunOutcome::Clean,
        other => other,
    };
    match exit::of_run(outcome, &report.run, args.error_exitcode) {
        0 if report.summary.suppressions_fail => Ok(BAD_INPUT),
        code => Ok(code),
    }
}

/// Applies `--fail-on`. Without it, findings count as in the runs, but as errors do where they never counted.
fn count_by(fail_on: Option<FailOn>, report: &mut Report) {
    let summary = &mut report.summary;
    summary.findings_pass = fail_on == Some(FailOn::Never);
    if let Some(fail_on) = fail_on {
        summary.warnings_fail = fail_on == FailOn::Warning;
    }
}

/// How the runs came out, where races of another level may count than did then.
fn outcome(report: &Report, fail_on: Option<FailOn>) -> RunOutcome {
    let summary = report.summary;
    let deadlock = report.failures.iter().any(|failure| failure.deadlock);
    let fails = summary.errors > 0 || deadlock || !report.out_of_bounds.is_empty();
    match (fail_on, summary.outcome) {
        (_, RunOutcome::ToolError) => RunOutcome::ToolError,
        (Some(FailOn::Warning), _) if summary.races > 0 => RunOutcome::Races,
        (Some(FailOn::Error), _) if fails => RunOutcome::Races,
        (Some(FailOn::Error | FailOn::Never), _) => without_races(report),
        (Some(FailOn::Warning) | None, outcome) => outcome,
    }
}

/// Where sources are looked for when the program's folder is not known.
pub(crate) fn sources(roots: &[PathBuf]) -> Sources {
    let mut roots = roots.to_vec();
    roots.extend(std::env::current_dir());
    Sources::new(roots)
}

/// One report of several files. A run whose report is there twice counts once.
pub(crate) fn read_all(paths: &[impl AsRef<Path>]) -> Result<Report, Stop> {
    let mut reports: Vec<(&Path, Report)> = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let report = read(path)?;
        // No two runs say the same: they have processes and times.
        match reports.iter().find(|(_, known)| *known == report) {
            Some((first, _)) => console::say(format_args!(
                "cudarun-check: warning: {} has the same run as {}, which counts once",
                path.display(),
                first.display()
            )),
            None => reports.push((path, report)),
        }
    }
    let reports = reports.into_iter().map(|(_, report)| report);
    Ok(Report::merge(reports.collect()))
}

/// A report that `--save` has written, with recorded launches or without.
pub(crate) fn read(path: &Path) -> Result<Report, Stop> {
    let bytes = bytes(path)?;
    let text = match archive::is_archive(&bytes) {
        true => Saved::new(path, bytes)?.report()?,
        false => String::from_utf8(bytes).map_err(|error| unreadable(path, &error))?,
    };
    parse(path, &text)
}

/// The bytes of a file.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Stop> {
    std::fs::read(path).map_err(|error| {
        let text = format!("{}: cannot read: {error}", path.display());
        Stop::new(BAD_INPUT, text)
    })
}

/// Reads the JSON of a report.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Report, Stop> {
    Report::from_json(text).map_err(|error| unreadable(path, &error))
}

/// The entry that an id names or begins, and the whole id: of the entry, or else of a pair of accesses of its cause.
pub(crate) fn named<'r>(report: &'r Report, id: &str) -> Result<(&'r Race, &'r str), Stop> {
    let begins = |of: &str| {
        of.starts_with(id) || of.strip_prefix("CR-").is_some_and(|of| of.starts_with(id))
    };
    let races = report.races.iter();
    let pairs: Vec<(&Race, &str)> = races
        .flat_map(|race| race.pairs().map(move |pair| (race, pair.id)))
        .filter(|(_, of)| begins(of))
        .collect();
    if let Some(exact) = pairs.iter().find(|(_, of)| *of == id) {
        return Ok(*exact);
    }
    let entries: Vec<_> = pairs.iter().filter(|(race, of)| race.id == *of).collect();
    let found = match entries.is_empty() {
        true => pairs.iter().collect(),
        false => entries,
    };
    let ids = |of: &mut dyn Iterator<Item = &str>| of.collect::<Vec<_>>().join(", ");
    let text = match &found[..] {
        [one] => return Ok(**one),
        [] if report.races.is_empty() => format!("no race has the id `{id}`; there are no races"),
        [] => format!(
            "no race has the id `{id}`; there are {}",
            ids(&mut report.races.iter().map(|race| race.id.as_str()))
        ),
        many => format!(
            "several races have an id that begins with `{id}`: {}",
            ids(&mut many.iter().map(|(_, of)| *of))
        ),
    };
    Err(Stop::new(USAGE, text))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Stop {
    let text = format!(
        "{}: no report that this version reads: {error}; make one with `cudarun-check --save FILE`",
        path.display()
    );
    Stop::new(BAD_INPUT, text)
}
