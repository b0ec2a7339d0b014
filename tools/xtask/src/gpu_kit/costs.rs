//! Compares what the driver's compiler makes of the benchmark programs without and with checks.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::apps::{Done, Run, Settings, builder, each, programs};
use crate::apps::MEASURED;
use crate::command;

/// Compiles the programs to PTX and runs `gpu-tests --costs` on it, which writes `costs.json`. Does nothing if the filters
/// match no program.
///
/// # Errors
/// When there is no nvcc, a program does not compile, or a file cannot be read or written.
pub fn run(settings: &Settings) -> Result<bool> {
    let builder = builder(settings)?;
    let measured = programs(settings, MEASURED)?;
    let folder = settings.results.join("ptx");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let all: Vec<_> = measured.iter().map(Run::clean).collect();
    let file = |name: &str| folder.join(format!("{name}.ptx"));
    let outcomes = each(settings, &all, |program, variant| {
        builder.ptx(program, variant, "", &file(&program.name))?;
        Ok(Done::Right)
    });
    if let Some(one) = outcomes.iter().find(|one| one.outcome != "right") {
        bail!("{}: {}: {}", one.program, one.outcome, one.why);
    }
    if measured.is_empty() {
        return Ok(true);
    }
    let mut gpu = Command::new(settings.kit.join("bin/gpu-tests"));
    // Otherwise the driver takes the code from its cache.
    gpu.env("CUDA_CACHE_DISABLE", "1").arg("--json");
    gpu.arg(settings.results.join("costs.json")).arg("--costs");
    gpu.args(measured.iter().map(|program| file(&program.name)));
    let left = settings.deadline.saturating_duration_since(Instant::now());
    let ended = command::finish_within(&mut gpu, left)?;
    print!("{}{}", ended.stdout, ended.stderr);
    Ok(ended.code == 0)
}
