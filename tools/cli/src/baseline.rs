//! `baseline` keeps a list of known races, and `diff` compares two reports.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use report::Report;
use report::baseline::{Baseline, Difference};
use report::model::Pair;
use report::words::counted;

use crate::args::{BaselineArgs, BaselineCommand, DiffArgs};
use crate::exit::{BAD_INPUT, INCOMPLETE, INTERNAL, RACES, Stop, USAGE};
use crate::{console, saved};

/// Makes or changes a baseline, or prints it.
pub(crate) fn run(command: &BaselineCommand) -> Result<u8, Stop> {
    match command {
        BaselineCommand::Create(args) => {
            let (path, report) = (&args.file.baseline, saved(args)?);
            let mut baseline = Baseline::default();
            baseline.add(&report);
            let mut file = File::create_new(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    let path = path.display();
                    let text = format!("{path} is there already; add to it by `baseline update`");
                    Stop::new(USAGE, text)
                }
                _ => cannot_write(path, &error),
            })?;
            let written = file.write_all(baseline.to_json().as_bytes());
            written.map_err(|error| cannot_write(path, &error))?;
            let races = pairs(&baseline);
            console::out(format_args!("{}: {races}", path.display()));
        }
        BaselineCommand::Update(args) => {
            let (path, report) = (&args.file.baseline, saved(args)?);
            let mut baseline = read(path)?;
            let added = baseline.add(&report);
            write(path, &baseline)?;
            let races = pairs(&baseline);
            console::out(format_args!("{}: {races}, {added} added", path.display()));
        }
        BaselineCommand::Prune(args) => {
            let (path, report) = (&args.of.file.baseline, saved(&args.of)?);
            if !args.allow_incomplete && !lacking(&report).is_empty() {
                let text = "no race was removed, because such a run may lack races that the program has; \
                            --allow-incomplete removes them";
                return Err(Stop::new(INCOMPLETE, text));
            }
            let mut baseline = read(path)?;
            let gone = baseline.prune(&report, args.allow_incomplete);
            write(path, &baseline)?;
            for known in &gone {
                console::out(format_args!("removed {}: {}", known.id, known.what));
            }
            let races = pairs(&baseline);
            let removed = gone.len();
            console::out(format_args!(
                "{}: {races}, {removed} removed",
                path.display()
            ));
            let unchecked = baseline.unchecked(&report) as u64;
            if unchecked > 0 {
                let kept = counted(unchecked, "pair");
                console::say(format_args!(
                    "cudarun-check: {kept} of accesses kept, because the run has no checked launch of their kernels; \
                     --allow-incomplete removes them"
                ));
            }
        }
        BaselineCommand::Show(file) => {
            for known in read(&file.baseline)?.races() {
                let level = match known.level {
                    report::model::Level::Error => "error",
                    report::model::Level::Warning => "warning",
                };
                let (rule, id, what) = (&known.rule, &known.id, &known.what);
                console::out(format_args!("{level}[{rule}] {id}: {what}"));
            }
        }
    }
    Ok(0)
}

/// How many a baseline has: a report lists all that have one cause as one race.
fn pairs(baseline: &Baseline) -> String {
    let pairs = counted(baseline.races().len() as u64, "pair");
    format!("{pairs} of accesses")
}

/// The reports of a command as one. An incomplete one may lack races.
fn saved(args: &BaselineArgs) -> Result<Report, Stop> {
    let report = saved::read_all(&args.runs)?;
    warn(&report, "the run");
    Ok(report)
}

fn warn(report: &Report, what: &str) {
    let why = lacking(report);
    if !why.is_empty() {
        console::say(format_args!(
            "cudarun-check: warning: {what} is incomplete and may lack races: {}",
            why.join("; ")
        ));
    }
}

/// Why a report may lack races that the program has.
fn lacking(report: &Report) -> Vec<String> {
    let mut why = report.coverage.incomplete_because.clone();
    let left_out = report::left_out(report);
    why.extend(left_out.into_iter().filter(|part| {
        !report
            .coverage
            .incomplete_because
            .iter()
            .any(|of| of.starts_with(part))
    }));
    let run = &report.run;
    if run.timed_out {
        why.push("the time of --timeout was over".to_owned());
    } else if run.interrupted {
        why.push("the run was interrupted".to_owned());
    } else if let Some(signal) = run.exit.signal {
        why.push(format!("the program was killed by signal {signal}"));
    } else if let Some(code) = run.exit.code.filter(|code| *code != 0) {
        why.push(format!("the program exited with {code}"));
    }
    why
}

/// Reads a baseline.
pub(crate) fn read(path: &Path) -> Result<Baseline, Stop> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let text = format!(
            "{name}: cannot read the baseline: {error}; `cudarun-check baseline create RUN` makes one"
        );
        Stop::new(BAD_INPUT, text)
    })?;
    Baseline::from_json(&text).map_err(|error| {
        if Report::from_json(&text).is_ok() {
            let text = format!(
                "{name}: this is a saved report; `cudarun-check baseline create {name}` makes a baseline of it"
            );
            return Stop::new(BAD_INPUT, text);
        }
        let text = format!(
            "{name}: no baseline that this version reads: {error}; make it again by `cudarun-check baseline create RUN`"
        );
        Stop::new(BAD_INPUT, text)
    })
}

fn write(path: &Path, baseline: &Baseline) -> Result<(), Stop> {
    std::fs::write(path, baseline.to_json()).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Stop {
    let text = format!("cannot write the baseline to {}: {error}", path.display());
    Stop::new(INTERNAL, text)
}

/// Prints what is different; the exit code of races if there are new ones.
pub(crate) fn diff(args: &DiffArgs) -> Result<u8, Stop> {
    let (old, new) = (saved::read(&args.old)?, saved::read(&args.new)?);
    for (report, path) in [(&old, &args.old), (&new, &args.new)] {
        warn(report, &path.display().to_string());
    }
    let Difference {
        new,
        gone,
        same,
        left_out,
    } = Difference::of(&old, &new);
    let print = |what: &str, races: &[Vec<Pair<'_>>]| {
        for (n, pair) in races.iter().flat_map(|pairs| pairs.iter().enumerate()) {
            // The others of the cause.
            let what = if n == 0 { what } else { "also" };
            console::out(format_args!("{what:<5}{}", pair.text()));
        }
    };
    print("new", &new);
    print("gone", &gone);
    print("same", &same);
    let numbers = [&new, &gone, &same].map(Vec::len);
    let [added, gone, same] = numbers;
    let left_out = match left_out {
        [0, 0] => String::new(),
        [old, new] => {
            format!(
                "; left out as suppressed or in a baseline: {old} of the old report, {new} of the new one"
            )
        }
    };
    console::out(format_args!(
        "SUMMARY: {added} new, {gone} gone, {same} same{left_out}"
    ));
    Ok(if added > 0 { RACES } else { 0 })
}
