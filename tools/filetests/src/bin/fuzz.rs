//! `cargo xtask fuzz`: random kernels until the time is up, and what disagrees made small.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool says what it does"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use filetests::random::kernel::Kernel;
use filetests::random::{found, judge, make, shrink, tally::Tally, text};
use runtime::Model;

/// Holds the oracles against each other on random kernels.
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
    /// Schedules per kernel: round robin and seeds.
    #[arg(long, default_value_t = 2)]
    schedules: u64,
    /// Threads; as many as there are cores when not given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Stop after so many findings.
    #[arg(long, default_value_t = 5)]
    findings: u64,
    /// Print the kernel of the seed and stop.
    #[arg(long)]
    print: bool,
    /// Instead, run every kernel under so many schedules and list those of which some report something
    /// and others nothing.
    #[arg(long)]
    orders: Option<u64>,
    /// The memory model of that: `ptx`, `scoped`, or the default one.
    #[arg(long)]
    model: Option<String>,
    /// Kernels that do nothing but hand over data by flags.
    #[arg(long)]
    messages: bool,
    /// Kernels use mbarriers before that is ordered behind their initialisation.
    #[arg(long)]
    early: bool,
    /// Where test files of what disagrees go.
    #[arg(long, default_value = "tests/race/found")]
    folder: PathBuf,
}

/// What the threads share.
struct Work {
    options: Options,
    next: AtomicU64,
    stop: AtomicBool,
    total: Mutex<(Tally, u64)>,
    started: Instant,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<bool> {
    if options.print {
        print!("{}", text::write(&options.kernel(options.seed)).whole());
        return Ok(true);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.unwrap_or(cores).max(1);
    let work = Work {
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        total: Mutex::default(),
        started: Instant::now(),
        options,
    };
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(|| work.work())).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| anyhow::bail!("a judge panicked"))
            })
            .collect()
    });
    results.into_iter().collect::<Result<()>>()?;
    let total = work.total.lock().ok().context("a judge panicked")?;
    let (tally, findings) = &*total;
    let seconds = work.started.elapsed().as_secs();
    println!(
        "\n{tally}\nseeds from {}, {} schedules each, {seconds} s, {findings} findings",
        work.options.seed, work.options.schedules
    );
    Ok(*findings == 0)
}

impl Options {
    /// The kernel of a seed.
    fn kernel(&self, seed: u64) -> Kernel {
        let mut kernel = match self.messages {
            true => make::messages(seed),
            false => make::kernel(seed),
        };
        kernel.early = self.early;
        kernel
    }
}

impl Work {
    /// Judges kernels until the time is up.
    fn work(&self) -> Result<()> {
        let limit = Duration::from_secs(self.options.seconds);
        while !self.stop.load(Ordering::Relaxed) && self.started.elapsed() < limit {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if self.options.kernels.is_some_and(|most| number >= most) {
                break;
            }
            let seed = self.options.seed.wrapping_add(number);
            let kernel = self.options.kernel(seed);
            if let Some(schedules) = self.options.orders {
                self.orders(&kernel, schedules)?;
                continue;
            }
            let schedules = judge::schedules(&kernel, self.options.schedules);
            let judged = judge::judge(&kernel, &schedules);
            let finding = match judged {
                Ok(tally) => {
                    self.count(tally)?;
                    continue;
                }
                Err(finding) => finding,
            };
            self.write(&kernel, &finding)?;
            self.has_found()?;
            let time_left = || self.started.elapsed() < limit;
            let (small, finding) = shrink::shrink(&kernel, finding, &schedules, &time_left);
            if small != kernel {
                self.write(&small, &finding)?;
            }
        }
        Ok(())
    }

    /// Lists a kernel whose verdict depends on who came first.
    fn orders(&self, kernel: &Kernel, schedules: u64) -> Result<()> {
        let model = match self.options.model.as_deref() {
            None => None,
            Some("ptx") => Some(Model::Ptx),
            Some("scoped") => Some(Model::Scoped),
            Some(other) => anyhow::bail!("no model is called `{other}`"),
        };
        let schedules: Vec<u64> = (0..schedules).collect();
        let orders = judge::orders(kernel, &schedules, model)?;
        let mut total = self.total.lock().ok().context("a judge panicked")?;
        total.0.kernels += 1;
        total.0.runs += orders.schedules as u64;
        total.0.racy_runs += orders.reporting as u64;
        if orders.differ() {
            total.0.depends += 1;
            println!(
                "seed {}: {} of {} schedules report something",
                kernel.seed, orders.reporting, orders.schedules
            );
            for (report, under) in orders.partial() {
                let judge::Report {
                    what,
                    lines: [a, b],
                } = report;
                println!("    {what} in lines {a} and {b}: {under} schedules");
            }
        }
        total.0.reports += orders.reports.len() as u64;
        total.0.partial += orders.partial().count() as u64;
        Ok(())
    }

    fn count(&self, tally: Tally) -> Result<()> {
        let mut total = self.total.lock().ok().context("a judge panicked")?;
        total.0 += tally;
        let (done, seconds) = (total.0.kernels, self.started.elapsed().as_secs());
        if done.is_multiple_of(5000) {
            println!("{done} kernels, {seconds} s, {} findings", total.1);
        }
        Ok(())
    }

    /// Writes the test file of a finding, over that of a larger kernel of the same seed.
    fn write(&self, kernel: &Kernel, finding: &judge::Finding) -> Result<()> {
        let (name, text) = found::file(kernel, finding);
        std::fs::create_dir_all(&self.options.folder)?;
        let path = self.options.folder.join(name);
        std::fs::write(&path, &text).with_context(|| path.display().to_string())?;
        println!(
            "seed {}: {}: {finding}\n{text}",
            kernel.seed,
            path.display()
        );
        Ok(())
    }

    /// Counts a finding.
    fn has_found(&self) -> Result<()> {
        let mut total = self.total.lock().ok().context("a judge panicked")?;
        total.1 += 1;
        if total.1 >= self.options.findings {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
