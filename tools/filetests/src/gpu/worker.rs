//! The process that runs units, one at a time, until it receives no more or a launch has failed.
//!
//! It reads numbers of units, one a line, and answers each with a line that holds [`MARK`] and an
//! [`Answer`] as JSON; kernels may print other lines. The first number only tells how its units are
//! checked, and is answered when the driver is open.

use std::io::{BufRead, Write};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::Unit;
use super::judge::{self, Finding};
use super::machine::Machine;

/// Stands before an answer.
pub(super) const MARK: &str = "@unit ";

/// What a worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It has opened the driver.
    Ready,
    /// What became of a unit.
    Unit {
        /// What.
        finding: Finding,
        /// Why; empty where that is plain.
        why: String,
        /// Nothing more can be run in this process.
        broken: bool,
    },
}

/// Answers until `questions` end, as one of `processes` on the device.
///
/// # Errors
/// When there is no driver, or nobody listens.
pub fn run(
    units: &[Unit],
    processes: u64,
    questions: impl BufRead,
    mut answers: impl Write,
) -> Result<()> {
    let mut lines = questions.lines();
    let mut ask = || -> Result<Option<&Unit>> {
        let Some(line) = lines.next() else {
            return Ok(None);
        };
        let index: usize = line?.trim().parse().context("not the number of a unit")?;
        Ok(Some(units.get(index).context("no such unit")?))
    };
    let Some(first) = ask()? else {
        return Ok(());
    };
    let mut machine = Machine::open(first.how, processes)?;
    let mut say = |answer: &Answer| -> Result<()> {
        writeln!(answers, "{MARK}{}", serde_json::to_string(answer)?)?;
        Ok(answers.flush()?)
    };
    say(&Answer::Ready)?;
    while let Some(unit) = ask()? {
        ensure!(
            unit.how == first.how,
            "a unit that is checked in another way"
        );
        let (finding, why) = judge::judge(&mut machine, unit);
        // What could not be given back after an error stays with the process.
        let broken = machine.broken || finding == Finding::Wrong;
        say(&Answer::Unit {
            finding,
            why,
            broken,
        })?;
        if broken {
            break;
        }
    }
    Ok(())
}
