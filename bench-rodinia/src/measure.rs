//! One program, several times with the checks off and on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// What to measure, and with which tool.
#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    /// The cudarun-check command.
    pub(crate) tool: PathBuf,
    pub(crate) programs: Vec<Program>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Program {
    pub(crate) name: String,
    program: PathBuf,
    arguments: Vec<String>,
}

/// The figures of one program.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) name: String,
    /// With `--check off`.
    pub(crate) unchecked: Run,
    pub(crate) checked: Run,
}

/// The figures of one way to run it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Run {
    /// Median of the whole process, with start and report.
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) counts: Counts,
}

/// What the device counted, over all launches.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
pub(crate) struct Counts {
    pub(crate) warp_instructions: u64,
    pub(crate) thread_instructions: u64,
    /// 32-byte sectors of global memory that the accesses touched.
    pub(crate) global_sectors: u64,
    /// Wall time inside launches.
    pub(crate) launch_seconds: f64,
}

#[derive(Deserialize)]
struct Report {
    stats: Counts,
}

/// Alternates between the two ways, so that a drift of the machine's speed meets both.
pub(crate) fn measure(tool: &Path, program: &Program, mode: &str, runs: u32) -> Result<Figures> {
    let mut unchecked = Vec::new();
    let mut checked = Vec::new();
    for _ in 0..runs {
        unchecked.push(run(tool, program, mode, "off")?);
        checked.push(run(tool, program, mode, "on")?);
    }
    Ok(Figures {
        name: program.name.clone(),
        unchecked: median(unchecked),
        checked: median(checked),
    })
}

fn run(tool: &Path, program: &Program, mode: &str, check: &str) -> Result<Run> {
    let report = std::env::temp_dir().join(format!("bench-rodinia-{}.json", std::process::id()));
    let mut command = Command::new(tool);
    command
        .args(["--check", check, "--mode", mode, "--format"])
        .arg(format!("json:{}", report.display()));
    command
        .arg("--")
        .arg(&program.program)
        .args(&program.arguments)
        .stdout(Stdio::null());
    let start = Instant::now();
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", tool.display()))?;
    let seconds = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr);
    // Unchecked runs end with "nothing was checked", which is what we asked for.
    let code = output.status.code();
    ensure!(
        code == Some(0) || (check == "off" && code == Some(75)),
        "it ended with {}\n{said}",
        output.status
    );
    let text = std::fs::read_to_string(&report).context("no JSON report")?;
    std::fs::remove_file(&report)?;
    let report: Report = serde_json::from_str(&text).context("no `stats` in the JSON report")?;
    Ok(Run {
        seconds,
        counts: report.stats,
    })
}

/// The middle time with the counts of its run; the counts are the same in all runs of one way.
fn median(mut runs: Vec<Run>) -> Run {
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    runs[runs.len() / 2]
}
