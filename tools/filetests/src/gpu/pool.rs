//! Worker processes: started, fed, and killed when a kernel hangs.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Unit;
use super::judge::{self, Finding};
use super::machine::How;
use super::worker::{Answer, MARK};

/// How long a worker may take to open the driver.
const START: Duration = Duration::from_secs(60);

/// How units are run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Worker processes at a time; at least one.
    pub jobs: usize,
    /// A unit that takes longer hangs.
    pub limit: Duration,
    /// Likewise, where the file is there to hang, or may.
    pub hang_limit: Duration,
    /// What has not begun by then is not run.
    pub deadline: Instant,
}

/// What became of a unit.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What.
    pub finding: Finding,
    /// Why; empty where that is plain.
    pub why: String,
}

/// Runs all units in workers, which `command` starts; results are in the order of the units.
pub fn run(units: &[Unit], settings: Settings, command: impl Fn() -> Command + Sync) -> Vec<Ended> {
    let next = AtomicUsize::new(0);
    let mut all: Vec<(usize, Ended)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.jobs.max(1))
            .map(|_| scope.spawn(|| feed(units, settings, &next, &command)))
            .collect();
        let results = threads.into_iter().flat_map(|thread| thread.join());
        results.flatten().collect()
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Takes units until there are none left.
fn feed(
    units: &[Unit],
    settings: Settings,
    next: &AtomicUsize,
    command: &(impl Fn() -> Command + Sync),
) -> Vec<(usize, Ended)> {
    let mut worker: Option<Worker> = None;
    let mut results = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(unit) = units.get(index) else {
            return results;
        };
        let (finding, why) = match Instant::now() < settings.deadline {
            true => one(&mut worker, index, unit, settings, command),
            false => (Finding::NotRun, String::new()),
        };
        results.push((index, Ended { finding, why }));
    }
}

/// Runs one unit in the worker, or in a new one.
fn one(
    slot: &mut Option<Worker>,
    index: usize,
    unit: &Unit,
    settings: Settings,
    command: &impl Fn() -> Command,
) -> (Finding, String) {
    let mut worker = match slot.take().filter(|worker| worker.how == unit.how) {
        Some(worker) => worker,
        None => match Worker::start(&mut command(), index, unit.how) {
            Ok(worker) => worker,
            Err(error) => return (Finding::Crashed, format!("no worker: {error:#}")),
        },
    };
    let limit = match judge::may_hang(unit) {
        true => settings.hang_limit.min(settings.limit),
        false => settings.limit,
    };
    match worker.ask(index, limit) {
        Ok(Some((finding, why, broken))) => {
            if !broken {
                *slot = Some(worker);
            }
            (finding, why)
        }
        Ok(None) => {
            let why = format!("killed after {} s", limit.as_secs());
            (judge::hung(unit), why)
        }
        Err(error) => (Finding::Crashed, format!("{error:#}")),
    }
}

/// A process that runs units. Dropping it kills it.
struct Worker {
    how: Option<How>,
    child: Child,
    questions: ChildStdin,
    answers: Receiver<Answer>,
}

impl Worker {
    fn start(command: &mut Command, index: usize, how: Option<How>) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .context("cannot start a worker")?;
        let questions = child.stdin.take().context("no pipe to the worker")?;
        let output = child.stdout.take().context("no pipe from the worker")?;
        let (send, answers) = channel();
        // The thread ends with the worker's output.
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                let answer = line.split_once(MARK).map(|(_, text)| text);
                let Some(Ok(answer)) = answer.map(serde_json::from_str) else {
                    continue;
                };
                if send.send(answer).is_err() {
                    return;
                }
            }
        });
        let mut worker = Self {
            how,
            child,
            questions,
            answers,
        };
        writeln!(worker.questions, "{index}").context("the worker has ended")?;
        match worker.answers.recv_timeout(START) {
            Ok(Answer::Ready) => Ok(worker),
            _ => anyhow::bail!("it did not open the driver"),
        }
    }

    /// The answer of a unit: what, why, and whether the worker has ended; none after the limit.
    fn ask(&mut self, index: usize, limit: Duration) -> Result<Option<(Finding, String, bool)>> {
        writeln!(self.questions, "{index}").context("the worker has ended")?;
        match self.answers.recv_timeout(limit) {
            Ok(Answer::Unit {
                finding,
                why,
                broken,
            }) => Ok(Some((finding, why, broken))),
            Ok(Answer::Ready) => anyhow::bail!("the worker answers another question"),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the worker has died"),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended already needs no killing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
