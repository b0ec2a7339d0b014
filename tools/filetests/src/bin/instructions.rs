//! `cargo xtask instructions`: writes docs/instructions.md, or says whether it is current.

#![allow(
    clippy::print_stderr,
    reason = "a command-line tool says what went wrong"
)]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use filetests::instructions;

fn main() -> ExitCode {
    let check = std::env::args().any(|argument| argument == "--check");
    match run(check) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("docs/instructions.md is not current: run `cargo xtask instructions`");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(check: bool) -> Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = instructions::page(&root.join("tests/exec"))?;
    let path = root.join("docs/instructions.md");
    if check {
        return Ok(std::fs::read_to_string(&path).is_ok_and(|current| current == page));
    }
    std::fs::write(&path, page).with_context(|| path.display().to_string())?;
    Ok(true)
}
