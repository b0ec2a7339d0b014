//! The part of the GPU kit that compiles and judges programs, and puts the results together (docs/gpu-kit.md).

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool says what it does"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use xtask::gpu_kit::{apps, costs, racecheck, summary};

/// Compiles and judges the programs of a GPU kit.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// Compile all programs with the nvcc at hand, and write a manifest for each that is to be measured.
    Build(KitArgs),
    /// Run the programs of tests/apps, and compare results and verdicts with what they expect.
    Run(KitArgs),
    /// Measure compile time, registers and occupancy of the benchmark programs without and with checks.
    Costs(KitArgs),
    /// Run the programs that are measured alone and under compute-sanitizer's racecheck.
    Racecheck(KitArgs),
    /// Put all results together.
    Summary {
        /// The folder of the results.
        results: PathBuf,
    },
}

#[derive(clap::Args)]
struct KitArgs {
    /// The kit's folder.
    kit: PathBuf,
    /// The folder of the results.
    results: PathBuf,
    /// The GPU's architecture, sm_NN.
    #[arg(long)]
    arch: String,
    /// Seconds after which nothing is begun.
    #[arg(long, default_value_t = 100)]
    budget: u64,
    /// Compilers or programs at a time.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Size of the programs that are measured: small, medium or large.
    #[arg(long, default_value = "medium")]
    size: String,
    /// Only programs whose name contains one of these.
    filters: Vec<String>,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().step {
        Step::Build(args) => apps::build(&args.settings()),
        Step::Run(args) => apps::run(&args.settings()),
        Step::Costs(args) => costs::run(&args.settings()),
        Step::Racecheck(args) => racecheck::run(&args.settings()),
        Step::Summary { results } => summary::write(&results),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

impl KitArgs {
    fn settings(self) -> apps::Settings {
        apps::Settings {
            deadline: Instant::now() + Duration::from_secs(self.budget),
            kit: self.kit,
            results: self.results,
            arch: self.arch,
            jobs: self.jobs,
            size: self.size,
            filters: self.filters,
        }
    }
}
