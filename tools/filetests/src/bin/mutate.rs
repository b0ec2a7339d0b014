//! `cargo xtask mutate`: takes synchronisation away from the right files of `tests/race`, and prints what became of
//! that.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command-line tool says what it found"
)]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/race");
    let only = std::env::args().nth(1);
    let folder = only.map_or(folder.clone(), |only| folder.join(only));
    match filetests::mutate::run(&folder) {
        Ok(mutants) => {
            println!("{mutants}");
            for line in mutants.neither {
                println!("{line}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
