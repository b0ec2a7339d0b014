//! `cargo xtask fuzz`, `cargo xtask verdicts` and `cargo xtask instructions`: programs of `tools/filetests`.

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Asks for kernels with linear addresses, and what is proved of their launches.
const AFFINE: &str = "--affine";

/// Judges random kernels; false when the oracles disagree on one. All arguments are the fuzzer's, but for [`AFFINE`],
/// which picks another one.
pub fn fuzz(workspace: &Workspace, arguments: &[String]) -> Result<bool> {
    let is_affine = |argument: &String| argument == AFFINE;
    let program = match arguments.iter().any(is_affine) {
        true => "affine",
        false => "fuzz",
    };
    let rest = arguments.iter().filter(|argument| !is_affine(argument));
    run(workspace, program, &rest.cloned().collect::<Vec<_>>())
}

/// Writes the tables of docs/verdicts.md and docs/verify.md.
pub fn verdicts(workspace: &Workspace) -> Result<bool> {
    let mut cargo = workspace.cargo(&["run", "--quiet", "--package", "filetests"]);
    cargo.args(["--bin", "verdicts"]);
    let status = cargo.status().context("cannot start cargo")?;
    Ok(status.success())
}

/// Writes docs/instructions.md, or says whether it is current.
pub fn instructions(workspace: &Workspace, check: bool) -> Result<bool> {
    let mut cargo = workspace.cargo(&["run", "--quiet", "--package", "filetests"]);
    cargo.args(["--bin", "instructions", "--"]);
    cargo.args(check.then_some("--check"));
    let status = cargo.status().context("cannot start cargo")?;
    Ok(status.success())
}

/// Runs a program of `tools/filetests`; false when it fails.
pub(crate) fn run(workspace: &Workspace, program: &str, arguments: &[String]) -> Result<bool> {
    let mut cargo = workspace.cargo(&["run", "--quiet", "--release", "--package", "filetests"]);
    cargo.args(["--bin", program, "--"]).args(arguments);
    let status = cargo.status().context("cannot start cargo")?;
    Ok(status.success())
}
