//! `cargo xtask verdicts`: writes the tables of docs/verdicts.md.

#![allow(
    clippy::print_stderr,
    reason = "a command-line tool says what went wrong"
)]

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use filetests::table;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("docs/verdicts.md");
    let page = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let page = table::put_in(&page, &table::sections(&root.join("tests/race"))?)?;
    std::fs::write(&path, page).with_context(|| path.display().to_string())
}
