//! What checking costs, per program: the programs of a manifest, run with the checks off and on.
//!
//! Counts (executed warp-instructions, global 32-byte sectors) come from the simulated device and are exact; wall time
//! is the median of several runs of the whole process.
//! `cargo xtask bench` makes the manifest.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool prints its results"
)]

mod measure;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

/// Measures checked against unchecked runs.
#[derive(Parser)]
struct Arguments {
    /// The manifest: the tool, and each program with its arguments.
    manifest: PathBuf,
    /// Runs of each program with and without checks; the median counts.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// The mode of the runs with checks: precise, fast or full.
    #[arg(long, default_value = "precise")]
    mode: String,
    /// Write the figures here as JSON too.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let path = &arguments.manifest;
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: measure::Manifest = serde_json::from_str(&text)
        .with_context(|| format!("{} is not a manifest", path.display()))?;
    let mut figures = Vec::new();
    for program in &manifest.programs {
        eprintln!("measuring {}", program.name);
        let measured = measure::measure(
            &manifest.tool,
            program,
            &arguments.mode,
            arguments.runs.max(1),
        );
        figures.push(measured.with_context(|| format!("cannot measure {}", program.name))?);
    }
    println!("{}", table::render(&figures));
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&figures)? + "\n";
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
