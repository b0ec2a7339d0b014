//! `cargo xtask test`: every check there is, in one command.
//!
//! A failed step does not stop the later ones, so that one run shows everything that is wrong.
//! The programs under the tool come last, and the test runner's own summary of them is the last line printed: CI
//! systems count tests by it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::apps::ahead::Ahead;
use crate::command;
use crate::dist::{self, Dist, Profile};
use crate::python;
use crate::toolkit::{self, Toolkit};
use crate::workspace::Workspace;

/// Tells the test of the programs that everything it needs has just been built; without it they are skipped.
pub const READY: &str = "CUDARUN_CHECK_TEST_APPS";

/// Tells the test that compares with z3 that it has been fetched; without it the test may say that there is none.
const NEEDS_Z3: &str = "CUDARUN_CHECK_TEST_Z3";

/// Command line of `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Run only these steps, in their usual order.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Step>,
}

/// One line of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    Fmt,
    Clippy,
    Toolkit,
    Dist,
    Unit,
    Python,
    Apps,
}

const STEPS: [Step; 7] = [
    Step::Fmt,
    Step::Toolkit,
    Step::Clippy,
    Step::Dist,
    Step::Unit,
    Step::Python,
    Step::Apps,
];

impl Step {
    fn title(self) -> &'static str {
        match self {
            Step::Fmt => "cargo fmt --check",
            Step::Clippy => "clippy",
            Step::Toolkit => "find or fetch nvcc and z3",
            Step::Unit => "unit tests and file tests",
            Step::Dist => "build the tests, the command and its libraries",
            Step::Python => "Python packages under the tool",
            Step::Apps => "programs under the tool",
        }
    }
}

/// What a step leaves for the summary.
struct Outcome {
    step: Step,
    took: Duration,
    error: Option<String>,
}

/// Runs the steps and prints the summary; false when one failed.
pub fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let mut outcomes = Vec::new();
    let mut summary_line = SummaryLine::default();
    let asked = |step: &Step| options.only.is_empty() || options.only.contains(step);
    let mut ahead = None;
    for step in STEPS.into_iter().filter(asked) {
        println!("\n=== {}", step.title());
        let start = Instant::now();
        match step {
            Step::Apps => drop(ahead.take()),
            Step::Fmt | Step::Toolkit => {}
            _ if asked(&Step::Apps) && ahead.is_none() => ahead = Ahead::start(),
            _ => {}
        }
        let error = run_step(workspace, step, &mut summary_line)
            .err()
            .map(|error| format!("{error:#}"));
        if let Some(error) = &error {
            eprintln!("error: {error}");
        }
        outcomes.push(Outcome {
            step,
            took: start.elapsed(),
            error,
        });
    }
    summarize(&outcomes);
    let ok = outcomes.iter().all(|outcome| outcome.error.is_none());
    match summary_line.last(ok) {
        Some(line) => println!("\n{line}"),
        None if ok => {}
        None => println!("\nerror: a step failed, see the summary above"),
    }
    Ok(ok)
}

/// `cargo xtask apps`: the last step alone, with arguments for the test runner.
pub fn apps(workspace: &Workspace, arguments: &[String]) -> Result<bool> {
    dist::build(workspace, Profile::Test)?;
    let toolkit = toolkit::ensure()?;
    let mut cargo = apps_command(workspace, &toolkit);
    let status = cargo
        .arg("--")
        .args(arguments)
        .status()
        .context("cannot start cargo")?;
    Ok(status.success())
}

fn run_step(workspace: &Workspace, step: Step, summary_line: &mut SummaryLine) -> Result<()> {
    match step {
        Step::Fmt => command::run(&mut workspace.cargo(&["fmt", "--all", "--check"])),
        Step::Clippy => clippy(workspace),
        Step::Toolkit => toolkit::ensure_all().map(|_| ()),
        Step::Unit => unit(workspace, summary_line),
        Step::Dist => dist::build(workspace, Profile::Test).map(|_| ()),
        Step::Python => {
            let dist = Dist::of(workspace, Profile::Test);
            python::run(workspace, &dist, &python::SMALL).map(|_| ())
        }
        Step::Apps => {
            let toolkit = toolkit::find().context("no nvcc, see the step that looks for it")?;
            let tool = Dist::of(workspace, Profile::Test).tool();
            if !tool.exists() {
                bail!("no {}, see the step that builds it", tool.display());
            }
            stream(&mut apps_command(workspace, &toolkit), summary_line)
        }
    }
}

/// Lints everything. Where clippy stands in the compiler's place, as in `.ci/run`, that is the build itself, which no later
/// step repeats.
fn clippy(workspace: &Workspace) -> Result<()> {
    let wrapper = std::env::var_os("RUSTC_WORKSPACE_WRAPPER").map(PathBuf::from);
    if !wrapper.is_some_and(|wrapper| wrapper.ends_with("clippy-driver")) {
        let arguments = ["clippy", "--quiet", "--workspace", "--all-targets"];
        let mut cargo = workspace.cargo(&arguments);
        return command::run(cargo.args(["--", "-D", "warnings"]));
    }
    let mut cargo = workspace.cargo(&["test", "--workspace", "--all-targets", "--no-run"]);
    cargo.args(["--quiet", "--message-format=json"]);
    let output = cargo.stderr(Stdio::inherit()).output();
    let output = output.context("cannot start cargo")?;
    let said = diagnostics(&String::from_utf8_lossy(&output.stdout));
    for text in &said {
        eprint!("{text}");
    }
    match (output.status.success(), said.len()) {
        (true, 0) => Ok(()),
        (true, warnings) => bail!("{warnings} warnings"),
        (false, _) => bail!("{} failed", command::describe(&cargo)),
    }
}

/// A line of `cargo --message-format=json`.
#[derive(Deserialize)]
struct Message {
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Diagnostic {
    rendered: String,
}

/// What the compiler and clippy have to say, of the lines that cargo prints.
fn diagnostics(lines: &str) -> Vec<String> {
    let messages = lines.lines().filter_map(|line| {
        let message: Message = serde_json::from_str(line).ok()?;
        Some(message.message?.rendered)
    });
    messages.collect()
}

/// Every test of the workspace; the programs, which want to come last, count as ignored.
fn unit(workspace: &Workspace, summary_line: &mut SummaryLine) -> Result<()> {
    let mut cargo = workspace.cargo(&["test", "--no-fail-fast", "--workspace", "--quiet"]);
    cargo.env(NEEDS_Z3, "1");
    if let Some(toolkit) = toolkit::find() {
        toolkit.prepare(&mut cargo);
    }
    stream(&mut cargo, summary_line)
}

fn apps_command(workspace: &Workspace, toolkit: &Toolkit) -> Command {
    // Of the whole workspace, as above: cargo would build half of it again for the features of one package alone.
    let mut cargo = workspace.cargo(&["test", "--quiet", "--workspace", "--test", "apps"]);
    toolkit.prepare(&mut cargo).env(READY, "1");
    cargo
}

/// The line that shall be the last one: a failing summary if there was any, else the latest.
#[derive(Default)]
struct SummaryLine {
    failed: Option<String>,
    latest: Option<String>,
}

impl SummaryLine {
    /// Never a good line when something failed, be it a test or another step.
    fn last(&self, ok: bool) -> Option<&str> {
        if ok {
            self.latest.as_deref()
        } else {
            self.failed.as_deref()
        }
    }

    fn notice(&mut self, line: &str) {
        if line.starts_with("test result: FAILED") {
            self.failed = Some(line.to_owned());
        } else if line.starts_with("test result: ") {
            self.latest = Some(line.to_owned());
        }
    }
}

/// Runs tests, passing their output on while remembering the runners' summaries.
fn stream(command: &mut Command, summary_line: &mut SummaryLine) -> Result<()> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let stdout = child.stdout.take().context("no standard output")?;
    for line in BufReader::new(stdout).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        summary_line.notice(&line);
        writeln!(std::io::stdout(), "{line}")?;
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{} failed", command::describe(command));
    }
    Ok(())
}

fn summarize(outcomes: &[Outcome]) {
    println!("\n=== summary");
    for outcome in outcomes {
        let verdict = if outcome.error.is_some() {
            "FAILED"
        } else {
            "ok"
        };
        println!(
            "{verdict:>6} {:>7.1} s  {}",
            outcome.took.as_secs_f64(),
            outcome.step.title()
        );
    }
    let total: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    let failed = outcomes
        .iter()
        .filter(|outcome| outcome.error.is_some())
        .count();
    println!(
        "       {:>7.1} s  in {} steps, {failed} failed",
        total.as_secs_f64(),
        outcomes.len()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_summary_is_never_the_last_line_of_a_bad_run() {
        let mut line = SummaryLine::default();
        line.notice("test result: ok. 3 passed; 0 failed");
        line.notice("running 4 tests");
        assert_eq!(line.last(true), Some("test result: ok. 3 passed; 0 failed"));
        assert_eq!(line.last(false), None);
        line.notice("test result: FAILED. 2 passed; 1 failed");
        line.notice("test result: ok. 4 passed; 0 failed");
        assert_eq!(
            line.last(false),
            Some("test result: FAILED. 2 passed; 1 failed")
        );
    }

    #[test]
    fn what_the_compiler_says_is_found_among_what_it_makes() {
        let lines = "{\"reason\":\"compiler-artifact\",\"fresh\":true}\n\
                     {\"reason\":\"compiler-message\",\"message\":{\"rendered\":\"warning: unused\",\"level\":\"warning\"}}\n\
                     no line of cargo\n{\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(diagnostics(lines), ["warning: unused"]);
        assert!(diagnostics("{\"reason\":\"build-finished\",\"success\":true}").is_empty());
    }
}
