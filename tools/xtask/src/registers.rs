//! `cargo xtask ptxas-table`: compiles every program to PTX, and has `bench-rodinia` write docs/registers.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::apps::{self, Program, Variant};
use crate::command;
use crate::toolkit::{self, Toolkit};
use crate::workspace::Workspace;

/// What nvcc is asked for, the oldest first.
const ARCHITECTURES: [&str; 3] = ["compute_75", "compute_80", "compute_90"];

/// Command line of `cargo xtask ptxas-table`.
#[derive(Args)]
pub struct Options {
    /// What to assemble for.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "sm_75,sm_80,sm_86,sm_90,sm_100"
    )]
    targets: Vec<String>,
    /// Where to write the table [default: docs/registers.md].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Only programs whose name contains one of these.
    filter: Vec<String>,
}

/// Writes the table; false when ptxas refuses a rewritten module.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let toolkit = toolkit::ensure()?;
    let folder = workspace.target.join("ptx");
    std::fs::create_dir_all(&folder)?;
    let mut files = Vec::new();
    for suite in ["tests/apps", apps::MEASURED] {
        for program in apps::discover(&workspace.root.join(suite))? {
            let mut parts = options.filter.iter();
            let wanted =
                options.filter.is_empty() || parts.any(|part| program.name.contains(part.as_str()));
            if wanted && program.is_assembled() {
                files.extend(compile(&toolkit, &program, suite, &folder)?);
            }
        }
    }
    let mut cargo = workspace.cargo(&[
        "run",
        "--quiet",
        "--release",
        "--package",
        "bench-rodinia",
        "--bin",
        "registers",
        "--",
        "--ptxas",
    ]);
    cargo.arg(ptxas(&toolkit)?);
    cargo.arg("--out").arg(match &options.out {
        Some(path) => std::path::absolute(path)?,
        None => workspace.root.join("docs/registers.md"),
    });
    for target in &options.targets {
        cargo.arg("--target").arg(target);
    }
    command::succeeds(cargo.args(files))
}

/// The assembler beside nvcc.
pub fn ptxas(toolkit: &Toolkit) -> Result<PathBuf> {
    let place = toolkit.nvcc.with_file_name("ptxas");
    match command::is_executable(&place) {
        true => Ok(place),
        false => bail!("no {}", place.display()),
    }
}

/// PTX of each file of a program.
fn compile(
    toolkit: &Toolkit,
    program: &Program,
    suite: &str,
    folder: &Path,
) -> Result<Vec<PathBuf>> {
    let further = program.words("ptx", Variant::Clean);
    let mut texts = Vec::new();
    for file in program.files() {
        // Both suites have programs of the same name.
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let suite = suite.rsplit('/').next().unwrap_or_default();
        let output = folder.join(format!("{suite}-{stem}.ptx"));
        let mut last = Ok(String::new());
        for architecture in ARCHITECTURES {
            let mut nvcc = Command::new(&toolkit.nvcc);
            toolkit.prepare(&mut nvcc);
            nvcc.args(["-ptx", "-O2", "-lineinfo", "-arch", architecture])
                .args(&further)
                .arg("-o")
                .arg(&output)
                .arg(&file);
            last = command::output(&mut nvcc);
            if last.is_ok() {
                break;
            }
        }
        last.with_context(|| format!("{} compiles for no target", file.display()))?;
        texts.push(output);
    }
    Ok(texts)
}
