//! One program, several times with the checks off and on.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use wait4::Wait4;

use crate::figures::{Checked, Row, Side, median};
use crate::latency;
use crate::manifest::Program;
use crate::report::{Device, Report};

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

/// Alternates between the two ways, so that a drift of the machine's speed meets both.
/// What goes wrong in one way leaves the figures of the other.
pub(crate) fn measure(settings: &Settings, program: &Program) -> Row {
    let mut ways = ["off", "on"].map(|check| Way {
        check,
        runs: Vec::new(),
        error: None,
    });
    for _ in 0..settings.runs.max(1) {
        for way in ways.iter_mut().filter(|way| way.error.is_none()) {
            match run(settings, program, way.check) {
                Ok(run) => way.runs.push(run),
                Err(error) => way.error = Some(error),
            }
        }
    }
    let [unchecked, checked] = ways;
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
        let first = &self.runs.first().context("no run")?.report;
        let stats = || self.runs.iter().map(|run| &run.report.stats);
        let counts = (first.tool.device == Device::Sim).then_some(first.stats.counts);
        if let Some(counts) = counts {
            ensure!(
                stats().all(|stats| stats.counts == counts),
                "two runs did not execute the same number of instructions, or touch as many sectors"
            );
        }
        let latencies = latency::merge(stats().flat_map(|stats| &stats.latencies))?;
        let kernel_seconds = median(stats().map(|stats| stats.launch_seconds).collect());
        let wall_seconds = median(self.runs.iter().map(|run| run.wall_seconds).collect());
        let resident = self.runs.iter().map(|run| run.resident_bytes);
        Ok(Side {
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

fn run(settings: &Settings, program: &Program, check: &str) -> Result<Run> {
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
    let start = Instant::now();
    let child = command.spawn();
    let child = child.with_context(|| format!("cannot start {}", settings.tool.display()))?;
    let used = child.wait4()?;
    let wall_seconds = start.elapsed().as_secs_f64();
    let Ok(text) = std::fs::read_to_string(&path) else {
        let said = tail(&mut said)?;
        let last = said.lines().last().unwrap_or_default();
        bail!("the tool made no report: {last}\n{said}");
    };
    if text.is_empty() {
        bail!("the tool ended with {}\n{}", used.status, tail(&mut said)?);
    }
    let report: Report = serde_json::from_str(&text).context("the report is not as expected")?;
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
    Ok(Run {
        wall_seconds,
        resident_bytes: used.rusage.maxrss,
        report,
    })
}

/// The end of what the program and the tool have said.
fn tail(file: &mut std::fs::File) -> Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}
