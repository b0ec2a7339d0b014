//! `gpu-tests TESTS`: the files of `tests/race` and `tests/exec` on the driver of this machine; `gpu-tests --costs
//! PTX...`: compile time, registers and occupancy of kernels with and without checks.
//!
//! The driver is the one that `CUDARUN_CHECK_DRIVER` names, or the one that is installed. Exit codes:
//! 0 when nothing was wrong, 1 when something was, 2 when there is no device or a file makes no sense.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool says what it does"
)]

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Parser;
use driver::client::Client;
use driver::sys::simulated_stands_in;
use filetests::gpu::judge::Finding;
use filetests::gpu::table::{self, Report};
use filetests::gpu::{costs, pool, units, worker};

/// Runs the files of tests/race and tests/exec on a GPU.
#[derive(Parser)]
struct Arguments {
    /// The folder `tests`.
    tests: Option<PathBuf>,
    /// Only files whose name contains one of these.
    filters: Vec<String>,
    /// Worker processes at a time; each takes its part of the device's memory.
    #[arg(long, default_value_t = 4)]
    jobs: u16,
    /// A unit that takes more seconds hangs, and is killed.
    #[arg(long, default_value_t = 20)]
    limit: u64,
    /// Likewise for a unit that deadlocks or misuses barriers, as such a one may spin for ever.
    #[arg(long, default_value_t = 5)]
    hang_limit: u64,
    /// After so many seconds no unit is begun.
    #[arg(long, default_value_t = 600)]
    budget: u64,
    /// Write the results here as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Instead of running tests, compile these PTX files with and without checks and compare the two.
    #[arg(long, num_args = 1..)]
    costs: Vec<PathBuf>,
    /// Only print the device: name, compute capability as sm_NN, driver.
    #[arg(long)]
    device: bool,
    /// Run units for another process.
    #[arg(long, hide = true)]
    worker: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// True when nothing was wrong.
fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.device {
        let report = device()?;
        println!(
            "{}\t{}\t{}",
            report.capability, report.driver, report.device
        );
        return Ok(true);
    }
    if !arguments.costs.is_empty() {
        let modules = costs::measure(&arguments.costs)?;
        print!("{}", costs::render(&modules));
        write(arguments, &modules)?;
        return Ok(true);
    }
    let tests = arguments.tests.as_ref().context("which folder of tests?")?;
    let units = units(tests, &arguments.filters)?;
    if arguments.worker {
        let processes = u64::from(arguments.jobs);
        worker::run(
            &units,
            processes,
            std::io::stdin().lock(),
            std::io::stdout(),
        )?;
        return Ok(true);
    }
    ensure!(!units.is_empty(), "no file has such a name");
    let started = Instant::now();
    let mut report = device()?;
    let program = std::env::current_exe().context("where am I?")?;
    let settings = pool::Settings {
        jobs: usize::from(arguments.jobs),
        limit: Duration::from_secs(arguments.limit),
        hang_limit: Duration::from_secs(arguments.hang_limit),
        deadline: started + Duration::from_secs(arguments.budget),
    };
    let ended = pool::run(&units, settings, || {
        let mut command = Command::new(&program);
        command.args(["--worker", "--jobs", &arguments.jobs.to_string()]);
        command.arg(tests).args(&arguments.filters);
        command
    });
    ensure!(ended.len() == units.len(), "a thread has died");
    report.seconds = started.elapsed().as_secs_f64();
    (report.folders, report.others) = table::count(&units, &ended);
    println!(
        "{}, {}, driver for CUDA {}\n",
        report.device, report.capability, report.driver
    );
    print!("{}", table::render(&report.folders));
    for other in report.others.iter().filter(|other| other.finding.is_bad()) {
        if other.finding != Finding::NotRun {
            println!(
                "{} ({}): {}: {}",
                other.name, other.way, other.finding, other.why
            );
        }
    }
    println!("{} units in {:.1} s", units.len(), report.seconds);
    write(arguments, &report)?;
    Ok(!report.others.iter().any(|other| other.finding.is_bad()))
}

/// Writes results as JSON, if they are wanted.
fn write(arguments: &Arguments, results: &impl serde::Serialize) -> Result<()> {
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(results)? + "\n";
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// What is known before any unit has run.
fn device() -> Result<Report> {
    let client = Client::open().map_err(|why| anyhow!(why))?;
    let [major, minor] = client.capability()?;
    let found = client.found();
    Ok(Report {
        device: found.name.clone(),
        capability: format!("sm_{major}{minor}"),
        driver: format!("{}.{}", found.version / 1000, found.version % 1000 / 10),
        driver_path: found.path.display().to_string(),
        simulated: simulated_stands_in(),
        seconds: 0.0,
        folders: Vec::new(),
        others: Vec::new(),
    })
}
