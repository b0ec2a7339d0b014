//! Programs, several times with the checks off and on.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use report::Report;
use report::model::DeviceKind;
use wait4::{ResUse, Wait4};

use crate::figures::{Checked, Counts, Row, Side, median};
use crate::latency;
use crate::manifest::Program;

/// How everything is measured.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The cudarun-check command.
    pub(crate) tool: PathBuf,
    /// Runs of each program with and without checks.
    pub(crate) runs: u32,
    /// precise, fast or full.
    pub(crate) mode: String,
    /// Further options of the tool, for both ways.
    pub(crate) options: Vec<String>,
    /// The longest that a run may take.
    pub(crate) limit: Option<Duration>,
    /// No run begins later, and one that is not over then is ended, and does not count.
    pub(crate) deadline: Option<Instant>,
}

/// One run of one way.
struct Run {
    wall_seconds: f64,
    resident_bytes: u64,
    report: Report,
}

/// The last part of what a program said, in bytes, when it did not end well.
const TAIL: u64 = 2000;

/// Runs of one way, up to the first that went wrong.
struct Way {
    check: &'static str,
    runs: Vec<Run>,
    error: Option<anyhow::Error>,
}

/// All programs once, then all of them again, so that there are figures of each when the time is up.
/// Alternates between the two ways, so that a drift of the machine's speed meets both.
/// What goes wrong in one way leaves the figures of the other.
pub(crate) fn measure(settings: &Settings, programs: &[Program]) -> Vec<Row> {
    let way = |check| Way {
        check,
        runs: Vec::new(),
        error: None,
    };
    let mut all: Vec<[Way; 2]> = programs.iter().map(|_| ["off", "on"].map(way)).collect();
    for round in 1..=settings.runs {
        for (program, ways) in programs.iter().zip(&mut all) {
            eprintln!(
                "measuring {}, run {round} of {}",
                program.name, settings.runs
            );
            for way in ways.iter_mut().filter(|way| way.error.is_none()) {
                match run(settings, program, way.check) {
                    Ok(run) => way.runs.extend(run),
                    Err(error) => way.error = Some(error),
                }
            }
        }
    }
    let measured = programs.iter().zip(all);
    measured.map(|(program, ways)| row(program, ways)).collect()
}

/// What the runs of a program tell.
fn row(program: &Program, [unchecked, checked]: [Way; 2]) -> Row {
    let mut errors = Vec::new();
    let mut known = |way: &Way, side: Result<Side>| {
        side.map_err(|error| errors.push(format!("with --check {}: {error:#}", way.check)))
            .ok()
    };
    let rewriting = checked.runs.iter();
    let rewriting = median(
        rewriting
            .map(|run| run.report.stats.rewrite_seconds)
            .collect(),
    );
    let last = checked.runs.last();
    let (races, warnings, launches_checked, shadow_bytes) = last.map_or((0, 0, 0, 0), |run| {
        let (summary, report) = (&run.report.summary, &run.report);
        let checked = report.coverage.launches.checked;
        let shadow = report.stats.shadow_bytes;
        (summary.errors, summary.warnings, checked, shadow)
    });
    let row = Row {
        name: program.name.clone(),
        unchecked: known(&unchecked, unchecked.side()),
        checked: known(&checked, checked.side()).map(|side| Checked {
            side,
            races,
            warnings,
            launches_checked,
            rewrite_seconds: rewriting.unwrap_or_default(),
            shadow_bytes,
        }),
        not_measured: None,
    };
    let lines = errors.iter().filter_map(|error| error.lines().next());
    let why = lines.collect::<Vec<_>>().join("; ");
    for error in &errors {
        eprintln!("cannot measure {} {error}", program.name);
    }
    Row {
        not_measured: (!why.is_empty()).then_some(why),
        ..row
    }
}

impl Way {
    /// The figures, or why there are none: a run did not end as it should, or two runs of one way
    /// counted differently.
    fn side(&self) -> Result<Side> {
        if let Some(error) = &self.error {
            bail!("{error:#}");
        }
        let first = &self.runs.first().context("there was no time left")?.report;
        let stats = || self.runs.iter().map(|run| &run.report.stats);
        let simulated = first.tool.device == DeviceKind::Sim;
        let counts = simulated.then(|| Counts::from(&first.stats));
        if let Some(counts) = counts {
            ensure!(
                stats().all(|stats| Counts::from(stats) == counts),
                "two runs did not execute the same number of instructions, or touch as many sectors"
            );
        }
        let latencies = latency::merge(stats().flat_map(|stats| &stats.latencies))?;
        let kernel_seconds = median(stats().map(|stats| stats.launch_seconds).collect());
        let wall_seconds = median(self.runs.iter().map(|run| run.wall_seconds).collect());
        let resident = self.runs.iter().map(|run| run.resident_bytes);
        Ok(Side {
            runs: self.runs.len(),
            version: first.tool.version.clone(),
            device: first.tool.device,
            wall_seconds: wall_seconds.context("no run")?,
            kernel_seconds: kernel_seconds.filter(|_| latencies.is_some()),
            counts,
            launches: first.coverage.launches.total,
            program_bytes: first.stats.program_bytes,
            resident_bytes: resident.max().unwrap_or(0),
            latencies,
        })
    }
}

/// One run; none when there was no time for it.
fn run(settings: &Settings, program: &Program, check: &str) -> Result<Option<Run>> {
    let deadline = settings.deadline;
    let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let over = || left().is_some_and(|left| left.is_zero());
    if over() {
        return Ok(None);
    }
    let folder = tempfile::Builder::new()
        .prefix("bench-rodinia-")
        .tempdir()?;
    let path = folder.path().join("report.json");
    // A pipe would have to be drained beside the wait.
    let mut said = tempfile::tempfile()?;
    let mut command = Command::new(&settings.tool);
    command
        .args(["--check", check, "--mode", &settings.mode])
        .args(&settings.options)
        .arg("--format")
        .arg(format!("json:{}", path.display()))
        .arg("--")
        .arg(&program.program)
        .args(&program.arguments)
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said.try_clone()?);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    let limit = left().into_iter().chain(settings.limit).min();
    if limit.is_some() {
        // With everything that it starts, it can be ended as one.
        command.process_group(0);
    }
    let start = Instant::now();
    let child = command.spawn();
    let child = child.with_context(|| format!("cannot start {}", settings.tool.display()))?;
    let Some(used) = wait(child, limit)? else {
        let limit = settings.limit.unwrap_or_default().as_secs_f64();
        ensure!(over(), "it did not end within {limit} s");
        return Ok(None);
    };
    let wall_seconds = start.elapsed().as_secs_f64();
    let Ok(text) = std::fs::read_to_string(&path) else {
        let said = tail(&mut said)?;
        let last = said.lines().last().unwrap_or_default();
        bail!("the tool made no report: {last}\n{said}");
    };
    if text.is_empty() {
        bail!("the tool ended with {}\n{}", used.status, tail(&mut said)?);
    }
    let report = Report::from_json(&text).context("the report is not as expected")?;
    let exit = &report.run.exit;
    match (exit.signal, exit.code) {
        (None, Some(code)) if code == program.exit => {}
        (Some(signal), _) => bail!("ended by signal {signal}\n{}", tail(&mut said)?),
        (None, code) => {
            let code = code.map_or("none".to_owned(), |code| code.to_string());
            bail!("exit code {code}\n{}", tail(&mut said)?)
        }
    }
    if let Some(failure) = report.failures.first() {
        bail!("{}: {}", failure.kernel, failure.message);
    }
    Ok(Some(Run {
        wall_seconds,
        resident_bytes: used.rusage.maxrss,
        report,
    }))
}

/// What a process has used; none when it was ended at the limit, with its group.
fn wait(child: Child, limit: Option<Duration>) -> Result<Option<ResUse>> {
    let Some(limit) = limit else {
        return Ok(Some(child.wait4()?));
    };
    let group = format!("-{}", child.id());
    let (ended, end) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if late {
            // It may have ended by itself meanwhile.
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        }
        late
    });
    let used = child.wait4();
    drop(ended);
    let late = watch.join().unwrap_or_default();
    Ok((!late).then_some(used?))
}

/// The end of what the program and the tool have said.
fn tail(file: &mut std::fs::File) -> Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
