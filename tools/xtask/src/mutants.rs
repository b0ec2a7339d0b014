//! `cargo xtask mutate`: synchronisation that is taken away, in files of `tests/race`, and in launches of programs.
//!
//! A program runs once, and the first launch of each of its kernels is recorded. Its mutants run from that recording, so
//! each sees what the program has put into memory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::apps::build::{Builder, SIMULATED};
use crate::apps::{self, Expect, Program, Variant};
use crate::command;
use crate::dist::{self, Profile};
use crate::oracles;
use crate::toolkit;
use crate::workspace::Workspace;

/// The variables of the checked process: the folder for its log and recordings, and its options.
const FOLDER: &str = "CUDARUN_CHECK_DIR";
const OPTIONS: &str = "CUDARUN_CHECK_RUN";
/// What is proved is checked too: only launches that happens-before listens to are recorded.
const RECORDING: &str = r#"{"record": 1073741824, "record_first": true, "prove": "off"}"#;

/// Longer than any program runs.
const LIMIT: Duration = Duration::from_secs(120);

/// Command line of `cargo xtask mutate`.
#[derive(Args)]
pub struct Options {
    /// A folder of tests/race; without it, all of them.
    folder: Option<String>,
    /// Instead, launches of the clean programs of tests/apps and bench-rodinia whose names contain this; all of them
    /// without it.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with = "folder")]
    programs: Option<String>,
}

/// Writes docs/mutants.md, or prints what became of some mutants; false when the tool fails.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let arguments: Vec<String> = match &options.programs {
        None => options.folder.iter().cloned().collect(),
        Some(name) => {
            let folder = record(workspace, name)?;
            let print = (!name.is_empty()).then(|| "--print".to_owned());
            let launches = ["--launches".to_owned(), folder.display().to_string()];
            launches.into_iter().chain(print).collect()
        }
    };
    oracles::run(workspace, "mutate", &arguments)
}

/// Records launches of programs, in a folder for each.
fn record(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let builder = Builder {
        dist: dist::build(workspace, Profile::Release)?,
        toolkit: toolkit::ensure()?,
        folder: workspace.target.join("apps"),
        arch: SIMULATED.to_owned(),
        until: None,
    };
    let folder = workspace.target.join("launches");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let programs = ["tests/apps", apps::MEASURED].map(|of| workspace.root.join(of));
    for of in programs {
        for program in apps::discover(&of)? {
            let right = program.expect(Variant::Clean)? == Expect::NoRace;
            if right && !program.ends_badly() && program.name.contains(name) {
                let folder = folder.join(&program.name);
                run_once(&builder, &program, &folder).with_context(|| program.name.clone())?;
            }
        }
    }
    Ok(folder)
}

/// Runs the clean variant of a program, and leaves its recordings in a folder.
fn run_once(builder: &Builder, program: &Program, folder: &Path) -> Result<()> {
    let built = builder.build(program, Variant::Clean)?;
    std::fs::create_dir_all(folder)?;
    let work = tempfile::tempdir()?;
    let mut command = Command::new(&built.program);
    command.args(&built.arguments).current_dir(work.path());
    command.env("LD_LIBRARY_PATH", builder.dist.libraries());
    command.env(FOLDER, folder).env(OPTIONS, RECORDING);
    command::finish_within(&mut command, LIMIT).map(drop)
}
