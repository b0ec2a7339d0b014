//! Assembles PTX files with and without checks, and writes docs/registers.md and a table of all kernels.
//! `cargo xtask ptxas-table` makes the files.

#![allow(clippy::print_stderr, reason = "a command-line tool says what it does")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use bench_rodinia::registers::table::{self, Module, Target};
use bench_rodinia::registers::{Assembled, assemble, serves};
use clap::Parser;

/// Assembles PTX files with and without checks.
#[derive(Parser)]
struct Arguments {
    /// The assembler.
    #[arg(long)]
    ptxas: PathBuf,
    /// What to assemble for.
    #[arg(long = "target", required = true)]
    targets: Vec<String>,
    /// Where to write the page.
    #[arg(long)]
    out: PathBuf,
    /// Where to write every kernel.
    #[arg(long)]
    csv: PathBuf,
    /// The PTX files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// False when ptxas refuses a version of some module.
fn run(arguments: &Arguments) -> Result<bool> {
    let mut texts = Vec::new();
    for path in &arguments.files {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_stem().unwrap_or_default();
        texts.push((name.to_string_lossy().into_owned(), text));
    }
    let jobs: Vec<Job<'_>> = arguments
        .targets
        .iter()
        .flat_map(|target| texts.iter().map(|(_, text)| Job { text, target }))
        .collect();
    let results = all(&arguments.ptxas, &jobs);
    let mut results = results.into_iter();
    let mut targets = Vec::new();
    for name in &arguments.targets {
        let modules = texts.iter().map(|(module, _)| Module {
            name: module.clone(),
            assembled: results.next().flatten(),
        });
        targets.push(Target {
            name: name.clone(),
            modules: modules.collect(),
        });
    }
    let text = table::render(&targets, &version(&arguments.ptxas)?);
    for (out, text) in [
        (&arguments.out, text),
        (&arguments.csv, table::csv(&targets)?),
    ] {
        std::fs::write(out, text).with_context(|| format!("cannot write {}", out.display()))?;
    }
    let refusals: Vec<String> = targets.iter().flat_map(Target::refusals).collect();
    refusals.iter().for_each(|refusal| eprintln!("{refusal}"));
    Ok(refusals.is_empty())
}

/// A text to assemble for a target.
struct Job<'a> {
    text: &'a str,
    target: &'a str,
}

/// Does the jobs on all cores; none for a text that does not serve its target.
fn all(ptxas: &Path, jobs: &[Job<'_>]) -> Vec<Option<Assembled>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&Job { text, target }) = jobs.get(index) else {
                break;
            };
            let result = serves(text, target).then(|| assemble(ptxas, text, target));
            if let Ok(mut done) = done.lock() {
                done.push((index, result));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What the assembler calls itself.
fn version(ptxas: &Path) -> Result<String> {
    let output = Command::new(ptxas).arg("--version").output();
    let output = output.with_context(|| format!("cannot run {}", ptxas.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let release = text.lines().find_map(|line| line.split_once("release "));
    ensure!(release.is_some(), "{} is no ptxas", ptxas.display());
    let number = release.and_then(|(_, rest)| rest.split(',').next());
    Ok(format!("ptxas {}", number.unwrap_or_default()))
}
