//! `cargo xtask mutate`: takes synchronisation away from the right files of `tests/race` and from recorded launches, and
//! writes what became of that into docs/mutants.md.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command-line tool says what it found"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use filetests::mutate::Mutants;
use filetests::table::{self, Section};

/// Take synchronisation away, one instruction at a time, and print how many such mutants are reported, how many are
/// proved equivalent, and what is known of the others.
#[derive(Parser)]
struct Arguments {
    /// A folder of tests/race; without it, all of them.
    folder: Option<PathBuf>,
    /// Mutate the recorded launches in this folder, and no files.
    #[arg(long, conflicts_with = "folder")]
    launches: Option<PathBuf>,
    /// Print what would be written.
    #[arg(long)]
    print: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut mutants = Mutants::default();
    let progress = |line: &str| eprintln!("{line}");
    let name = match &arguments.launches {
        Some(folder) => {
            mutants.of_launches(folder, &progress)?;
            "launches"
        }
        None => {
            let folder = root.join("tests/race");
            let only = arguments.folder.as_ref();
            let folder = only.map_or(folder.clone(), |only| folder.join(only));
            mutants.of_files(&folder, &|_| ())?;
            "files"
        }
    };
    let text = mutants.section();
    if arguments.print || arguments.folder.is_some() {
        print!("{text}");
        return Ok(());
    }
    let path = root.join("docs/mutants.md");
    let page = std::fs::read_to_string(&path).context("docs/mutants.md")?;
    let page = table::put_in_by("mutate", &page, &[Section { name, text }])?;
    std::fs::write(&path, page).context("docs/mutants.md")
}
