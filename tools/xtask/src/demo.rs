//! `cargo xtask demo`: from a fresh checkout to a report of a race, in one command.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apps::{self, Variant, build, build::Builder};
use crate::command;
use crate::dist::{self, Profile};
use crate::toolkit;
use crate::workspace::Workspace;

/// What the tool exits with when it found a race.
const RACES_FOUND: i32 = 66;

/// Builds everything, compiles the program that has `//@ demo:` in its header, and shows the report.
pub fn run(workspace: &Workspace) -> Result<bool> {
    println!("[1/4] building cudarun-check");
    let dist = dist::build(workspace, Profile::Release)?;
    println!("[2/4] looking for nvcc");
    let toolkit = toolkit::ensure()?;
    toolkit.announce();

    let programs = apps::discover(&workspace.root.join("tests/apps"))?;
    let program = programs
        .into_iter()
        .find(|program| program.values("demo", Variant::Racy).next().is_some())
        .context("no program under tests/apps has a `//@ demo:` line")?;
    println!(
        "[3/4] nvcc -O2 -lineinfo -cudart shared -DRACY {}",
        program.path.display()
    );
    let builder = Builder {
        toolkit,
        dist,
        folder: workspace.target.join("apps"),
        arch: build::SIMULATED.to_owned(),
        until: None,
    };
    let built = builder.build(&program, Variant::Racy)?;

    println!(
        "[4/4] cudarun-check --device sim {}\n",
        built.program.display()
    );
    let mut tool = Command::new(builder.dist.tool());
    tool.args(["--device", "sim", "--"])
        .arg(&built.program)
        .args(&built.arguments);
    let status = tool
        .status()
        .with_context(|| format!("cannot start {}", command::describe(&tool)))?;
    if status.code() != Some(RACES_FOUND) {
        bail!(
            "cudarun-check was expected to find a race and exit with {RACES_FOUND}; it ended with {status}"
        );
    }
    println!(
        "\nThe race above is the point of this program: cudarun-check found it and exited with {RACES_FOUND}."
    );
    println!(
        "To check a program of yours: nvcc -lineinfo -cudart shared app.cu -o app && cudarun-check ./app"
    );
    println!("The command is {}", builder.dist.tool().display());
    Ok(true)
}
