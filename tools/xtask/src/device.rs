//! `cargo xtask device`: the committed PTX of the race rule, made again from its Rust source.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};

use crate::workspace::Workspace;

/// Compiles the source and writes `device/check.ptx`; with `check`, only says whether that would change it.
pub fn run(workspace: &Workspace, check: bool) -> Result<bool> {
    let folder = workspace.root.join("device");
    let committed = folder.join("check.ptx");
    let rustc = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    let scratch = tempfile::tempdir()?;
    let text =
        device::build(&folder, &rustc, scratch.path()).map_err(|error| anyhow!("{error}"))?;
    let current = std::fs::read_to_string(&committed).is_ok_and(|old| old == text);
    match (current, check) {
        (true, _) => println!("{} is current", committed.display()),
        (false, true) => println!("{} is stale: run `cargo xtask device`", committed.display()),
        (false, false) => {
            std::fs::write(&committed, text)
                .with_context(|| format!("cannot write {}", committed.display()))?;
            println!("{} written", committed.display());
        }
    }
    Ok(current || !check)
}
