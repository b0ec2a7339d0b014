//! `cargo xtask verdicts`: what every oracle says of the files of `tests/race`, counted by folder.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool says what it does"
)]

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use filetests::{files, table};

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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/race");
    print!("{}", table::of(&root, &files::below(&root, "ptx")?)?);
    Ok(())
}
