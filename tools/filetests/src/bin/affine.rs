//! `cargo xtask fuzz --affine`: random kernels with linear addresses until the time is up, proofs at the launch against
//! what the threads do.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool says what it does"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use filetests::affine::judge::{Tally, judge};
use filetests::affine::make::kernel;
use filetests::affine::run::Runner;

/// Holds proofs at the launch against random kernels.
#[derive(Parser)]
struct Options {
    /// Stop after so long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed of the first kernel; the next ones follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after so many kernels.
    #[arg(long)]
    kernels: Option<u64>,
    /// Stop after so many findings.
    #[arg(long, default_value_t = 5)]
    findings: u64,
    /// Print the kernel of the seed and stop.
    #[arg(long)]
    print: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<bool> {
    if options.print {
        let kernel = kernel(options.seed);
        println!("{}", kernel.text);
        println!(
            "{:?}",
            filetests::affine::make::Kernel {
                text: String::new(),
                ..kernel
            }
        );
        return Ok(true);
    }
    let started = Instant::now();
    let (mut tally, mut findings, mut next) = (Tally::default(), 0, options.seed);
    let mut runner = Runner::new()?;
    while started.elapsed() < Duration::from_secs(options.seconds)
        && options
            .kernels
            .is_none_or(|most| next - options.seed < most)
        && findings < options.findings
    {
        match judge(&kernel(next), &mut runner) {
            Ok(found) => tally += found,
            Err(finding) => {
                println!("seed {next}: {finding:#}");
                findings += 1;
            }
        }
        next += 1;
    }
    println!(
        "{tally}\nseeds from {}, {} s, {findings} findings",
        options.seed,
        started.elapsed().as_secs()
    );
    Ok(findings == 0)
}
