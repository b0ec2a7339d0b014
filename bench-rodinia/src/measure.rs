//! One program, several times with the checks off and on.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use wait4::Wait4;

use crate::figures::{Figures, Side, median};
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

/// Alternates between the two ways, so that a drift of the machine's speed meets both.
///
/// # Errors
/// When a run does not end as it should, or counts differ between two runs of one way.
pub(crate) fn measure(settings: &Settings, program: &Program) -> Result<Figures> {
    let (mut unchecked, mut checked) = (Vec::new(), Vec::new());
    for _ in 0..settings.runs.max(1) {
        unchecked.push(run(settings, program, "off").context("with --check off")?);
        checked.push(run(settings, program, "on").context("checked")?);
    }
    let last = &checked[checked.len() - 1].report;
    let launches = &last.coverage.launches;
    let rewriting = checked.iter().map(|run| run.report.stats.rewrite_seconds);
    Ok(Figures {
        version: last.tool.version.clone(),
        device: last.tool.device,
        races: last.summary.errors,
        warnings: last.summary.warnings,
        checked_launches: [launches.checked, launches.total],
        rewrite_seconds: median(rewriting.collect()).unwrap_or_default(),
        shadow_bytes: last.stats.shadow_bytes,
        unchecked: side(&unchecked).context("with --check off")?,
        checked: side(&checked).context("checked")?,
    })
}

fn side(runs: &[Run]) -> Result<Side> {
    let stats = || runs.iter().map(|run| &run.report.stats);
    let first = runs.first().context("no run")?;
    let counts = (first.report.tool.device == Device::Sim).then_some(first.report.stats.counts);
    if let Some(counts) = counts {
        ensure!(
            stats().all(|stats| stats.counts == counts),
            "two runs did not execute the same number of instructions, or touch as many sectors"
        );
    }
    let latencies = latency::merge(stats().flat_map(|stats| &stats.latencies))?;
    let kernel_seconds = median(stats().map(|stats| stats.launch_seconds).collect());
    let wall_seconds = median(runs.iter().map(|run| run.wall_seconds).collect());
    Ok(Side {
        wall_seconds: wall_seconds.context("no run")?,
        kernel_seconds: kernel_seconds.filter(|_| latencies.is_some()),
        counts,
        program_bytes: first.report.stats.program_bytes,
        resident_bytes: runs.iter().map(|run| run.resident_bytes).max().unwrap_or(0),
        latencies,
    })
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
