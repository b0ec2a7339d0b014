//! What checking costs, per program: the programs of a manifest, run with the checks off and on.
//!
//! Counts (executed warp-instructions, global 32-byte sectors) come from the simulated device and are exact; times are
//! medians of several runs.
//! [`manifest`]: what is measured. [`measure`]: how. [`table`], [`csv`], [`plot`]: what comes out.
//! `cargo xtask bench` makes the manifest of our own programs; docs/benchmarks.md says how to make another.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool prints its results"
)]

mod csv;
mod figures;
mod latency;
mod manifest;
mod measure;
mod plot;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use serde::Serialize;

use crate::figures::{RATIOS, Row, geometric_mean};
use crate::measure::Settings;

/// Measures checked against unchecked runs.
#[derive(Parser)]
struct Arguments {
    /// The manifest: each program with its arguments, or a folder of programs.
    manifest: PathBuf,
    /// Runs of each program with and without checks; medians count.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Seconds after which no run begins, and one that is not over is ended; every program runs once before any of them
    /// runs again.
    #[arg(long)]
    budget: Option<u64>,
    /// Seconds after which a run is ended, as one that hangs.
    #[arg(long)]
    limit: Option<u64>,
    /// The mode of the runs with checks: precise, fast or full.
    #[arg(long, default_value = "precise")]
    mode: String,
    /// The cudarun-check command [default: the manifest's, or the one on PATH].
    #[arg(long)]
    tool: Option<PathBuf>,
    /// A further option for the tool, such as --exact or --timeout=60; repeatable.
    #[arg(long = "option", allow_hyphen_values = true)]
    options: Vec<String>,
    /// Write the figures here as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write the figures here as CSV.
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Draw the ratios here, as SVG.
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// All there is to know, as JSON.
#[derive(Serialize)]
struct All<'a> {
    mode: &'a str,
    runs: u32,
    options: &'a [String],
    programs: &'a [Row],
    /// Of the ratios that are known: the mean, and how many those are.
    geometric_means: BTreeMap<&'static str, Option<(f64, usize)>>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// True when everything could be measured.
fn run(arguments: &Arguments) -> Result<bool> {
    let manifest = manifest::read(&arguments.manifest)?;
    let tool = arguments.tool.clone().or(manifest.tool);
    let budget = arguments.budget.map(Duration::from_secs);
    let settings = Settings {
        tool: tool.unwrap_or_else(|| PathBuf::from("cudarun-check")),
        runs: arguments.runs.max(1),
        mode: arguments.mode.clone(),
        options: arguments.options.clone(),
        limit: arguments.limit.map(Duration::from_secs),
        deadline: budget.map(|budget| Instant::now() + budget),
    };
    let rows = measure::measure(&settings, &manifest.programs);
    println!("{}", table::render(&rows));
    if let Some(path) = &arguments.json {
        let means = RATIOS.map(|(name, of)| {
            let ratios = rows.iter().map(of);
            (name, geometric_mean(ratios))
        });
        let all = All {
            mode: &settings.mode,
            runs: settings.runs,
            options: &settings.options,
            programs: &rows,
            geometric_means: means.into_iter().collect(),
        };
        write(path, &(serde_json::to_string_pretty(&all)? + "\n"))?;
    }
    if let Some(path) = &arguments.csv {
        write(path, &csv::render(&rows)?)?;
    }
    if let Some(path) = &arguments.plot {
        write(path, &plot::render(&rows, &settings.mode)?)?;
    }
    Ok(rows.iter().all(|row| row.not_measured.is_none()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
