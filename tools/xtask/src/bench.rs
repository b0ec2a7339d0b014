//! `cargo xtask bench`: builds what `bench-rodinia` measures, and hands it a manifest.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::apps::{self, Program, Variant, build, build::Builder, build::Built};
use crate::command;
use crate::dist::{self, Profile};
use crate::toolkit;
use crate::workspace::Workspace;

/// Command line of `cargo xtask bench`.
#[derive(Args)]
pub struct Options {
    /// What to measure.
    #[arg(long, value_enum, default_value_t = Suite::Rodinia)]
    suite: Suite,
    /// Size of the programs of `bench-rodinia/programs`.
    #[arg(long, value_enum, default_value_t = Size::Small)]
    size: Size,
    /// Runs of each program, checked and unchecked.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// The checked runs' mode: precise, fast or full.
    #[arg(long, default_value = "precise")]
    mode: String,
    /// A further option for the tool, such as --exact or --as-gpu; repeatable.
    #[arg(long = "option", allow_hyphen_values = true)]
    options: Vec<String>,
    /// Measure this built tool instead of building one.
    #[arg(long)]
    tool: Option<PathBuf>,
    /// Only programs whose name contains one of these.
    filter: Vec<String>,
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

/// A folder of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Those of `bench-rodinia/programs`.
    Rodinia,
    /// The clean variants of `tests/apps`.
    Apps,
}

/// How much a program of `bench-rodinia/programs` computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    Small,
    Medium,
    Large,
}

/// What `bench-rodinia` reads.
#[derive(Serialize)]
struct Manifest {
    tool: PathBuf,
    programs: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
}

/// Builds the tool and the clean variants, and runs the measurement; false when a program could not be measured.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let dist = dist::build(workspace, Profile::Release)?;
    let builder = Builder {
        toolkit: toolkit::ensure()?,
        dist,
        folder: workspace.target.join("apps"),
        arch: build::SIMULATED.to_owned(),
        until: None,
    };
    let tool = options.tool.as_ref().map(std::path::absolute).transpose()?;
    let mut manifest = Manifest {
        tool: tool.unwrap_or_else(|| builder.dist.tool()),
        programs: Vec::new(),
    };
    let folder = match options.suite {
        Suite::Rodinia => apps::MEASURED,
        Suite::Apps => "tests/apps",
    };
    for program in apps::discover(&workspace.root.join(folder))? {
        let mut parts = options.filter.iter();
        let wanted =
            options.filter.is_empty() || parts.any(|part| program.name.contains(part.as_str()));
        if wanted && !program.ends_badly() {
            let built = builder.build(&program, Variant::Clean)?;
            manifest
                .programs
                .extend(entries(&program, &built, options.size));
        }
    }
    ensure!(!manifest.programs.is_empty(), "no program has such a name");
    let path = workspace.target.join("apps/manifest.json");
    std::fs::write(&path, serde_json::to_string_pretty(&manifest)?)?;
    measure(workspace, options, &path)
}

/// One program at the sizes that are wanted.
fn entries(program: &Program, built: &Built, size: Size) -> Vec<Entry> {
    let entry = |name: String, arguments: Vec<String>| Entry {
        name,
        program: built.program.clone(),
        arguments,
    };
    if program.is_measured() {
        let size = format!("{size:?}").to_lowercase();
        return vec![entry(program.name.clone(), vec![size])];
    }
    let sizes: Vec<&str> = program.values("bench-args", Variant::Clean).collect();
    let sizes = if sizes.is_empty() { vec![""] } else { sizes };
    let sized = |size: &&str| {
        let more = size.split_whitespace().map(str::to_owned);
        let name = format!("{} {size}", program.name);
        entry(
            name.trim_end().to_owned(),
            built.arguments.iter().cloned().chain(more).collect(),
        )
    };
    sizes.iter().map(sized).collect()
}

fn measure(workspace: &Workspace, options: &Options, manifest: &Path) -> Result<bool> {
    let mut cargo = workspace.cargo(&[
        "run",
        "--quiet",
        "--release",
        "--package",
        "bench-rodinia",
        "--bin",
        "bench-rodinia",
        "--",
    ]);
    cargo.arg(manifest);
    cargo.arg("--runs").arg(options.runs.to_string());
    cargo.arg("--mode").arg(&options.mode);
    for option in &options.options {
        cargo.arg(format!("--option={option}"));
    }
    for (flag, path) in [
        ("--json", &options.json),
        ("--csv", &options.csv),
        ("--plot", &options.plot),
    ] {
        if let Some(path) = path {
            cargo.arg(flag).arg(std::path::absolute(path)?);
        }
    }
    command::succeeds(&mut cargo)
}
