//! `cargo xtask fuzz`, `cargo xtask verdicts` and `cargo xtask instructions`: programs of `tools/filetests`.

use anyhow::{Context, Result};
use clap::Args;

use crate::workspace::Workspace;

/// Command line of `cargo xtask fuzz`.
#[derive(Args)]
pub struct FuzzOptions {
    /// Stop after so long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed of the first kernel; the next ones follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after so many kernels.
    #[arg(long)]
    kernels: Option<u64>,
    /// Print the kernel of the seed and stop.
    #[arg(long)]
    print: bool,
    /// Instead, run every kernel under so many schedules and list those of which some report something
    /// and others nothing.
    #[arg(long)]
    orders: Option<u64>,
    /// The memory model of that: `ptx`, `scoped`, or the default one.
    #[arg(long)]
    model: Option<String>,
    /// Kernels that do nothing but hand over data by flags.
    #[arg(long)]
    messages: bool,
    /// Instead, kernels with linear addresses, and what is proved of their launches.
    #[arg(long, conflicts_with_all = ["orders", "model", "messages"])]
    affine: bool,
}

/// Judges random kernels; false when the oracles disagree on one.
pub fn fuzz(workspace: &Workspace, options: &FuzzOptions) -> Result<bool> {
    let mut arguments = vec![format!("--seed={}", options.seed)];
    arguments.push(format!("--seconds={}", options.seconds));
    arguments.extend(options.kernels.map(|count| format!("--kernels={count}")));
    arguments.extend(options.print.then(|| "--print".to_owned()));
    arguments.extend(options.orders.map(|count| format!("--orders={count}")));
    let model = options.model.iter();
    arguments.extend(model.map(|model| format!("--model={model}")));
    arguments.extend(options.messages.then(|| "--messages".to_owned()));
    let program = if options.affine { "affine" } else { "fuzz" };
    run(workspace, program, &arguments)
}

/// Writes the tables of docs/verdicts.md.
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

fn run(workspace: &Workspace, program: &str, arguments: &[String]) -> Result<bool> {
    let mut cargo = workspace.cargo(&["run", "--quiet", "--release", "--package", "filetests"]);
    cargo.args(["--bin", program, "--"]).args(arguments);
    let status = cargo.status().context("cannot start cargo")?;
    Ok(status.success())
}
