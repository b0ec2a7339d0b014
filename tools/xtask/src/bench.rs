//! `cargo xtask bench`: builds what `bench-rodinia` measures, and hands it a manifest.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::apps::{self, Variant, build::Builder};
use crate::command;
use crate::dist;
use crate::toolkit;
use crate::workspace::Workspace;

/// Command line of `cargo xtask bench`.
#[derive(Args)]
pub struct Options {
    /// Runs of each program, checked and unchecked.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// The checked runs' mode: precise, fast or full.
    #[arg(long, default_value = "precise")]
    mode: String,
    /// Measure this built tool instead of building one.
    #[arg(long)]
    tool: Option<PathBuf>,
    /// Only programs whose name contains one of these.
    filter: Vec<String>,
    /// Write the figures here as JSON too.
    #[arg(long)]
    json: Option<PathBuf>,
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

/// Builds the tool and the clean variants, and runs the measurement.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let dist = dist::build(workspace)?;
    let builder = Builder {
        toolkit: toolkit::ensure()?,
        dist,
        folder: workspace.target.join("apps"),
    };
    let mut manifest = Manifest {
        tool: options.tool.clone().unwrap_or_else(|| builder.dist.tool()),
        programs: Vec::new(),
    };
    for program in apps::discover(&workspace.root.join("tests/apps"))? {
        let mut parts = options.filter.iter();
        let wanted =
            options.filter.is_empty() || parts.any(|part| program.name.contains(part.as_str()));
        if !wanted || program.ends_badly() {
            continue;
        }
        let built = builder.build(&program, Variant::Clean)?;
        let sizes: Vec<&str> = program.values("bench-args", Variant::Clean).collect();
        for size in if sizes.is_empty() { vec![""] } else { sizes } {
            let more = size.split_whitespace().map(str::to_owned);
            manifest.programs.push(Entry {
                name: format!("{} {size}", program.name).trim_end().to_owned(),
                program: built.program.clone(),
                arguments: built.arguments.iter().cloned().chain(more).collect(),
            });
        }
    }
    let path = workspace.target.join("apps/manifest.json");
    std::fs::write(&path, serde_json::to_string_pretty(&manifest)?)?;
    let mut cargo = workspace.cargo(&[
        "run",
        "--quiet",
        "--release",
        "--package",
        "bench-rodinia",
        "--",
    ]);
    cargo.arg(&path).arg("--runs").arg(options.runs.to_string());
    cargo.arg("--mode").arg(&options.mode);
    if let Some(json) = &options.json {
        cargo.arg("--json").arg(std::path::absolute(json)?);
    }
    command::run(&mut cargo)?;
    Ok(true)
}
