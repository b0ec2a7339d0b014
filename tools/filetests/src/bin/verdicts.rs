//! `cargo xtask verdicts`: writes the tables of docs/verdicts.md and docs/verify.md.

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
    for page in table::pages(&root.join("tests/race"))? {
        let path = root.join(page.path);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let text = table::put_in(&text, &page.sections)?;
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
