//! What is made of a unit.

use std::fmt;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::machine::{Machine, Refused};
use super::{Unit, Way};
use crate::exec;
use crate::header::{Case, Class};
use crate::machine::{Launch, Outcome};
use crate::race::{self, Verdict};

/// Launches of a case of `tests/race` in one way.
const LAUNCHES: u32 = 3;

/// What became of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The result or verdict that the file expects.
    Right,
    /// Conflicts that may be ordered.
    Undecided,
    /// It cannot see all accesses of the kernel.
    NotChecked,
    /// A wrong verdict that the file states.
    Stated,
    /// The race did not show under this schedule.
    NotSeen,
    /// The driver does not take the file as it is written.
    Refused,
    /// Another result or verdict.
    Wrong,
    /// It did not end in time, and was killed.
    Hung,
    /// Its process has died, or could not be started.
    Crashed,
    /// There was no time left.
    NotRun,
}

/// All there are, in the order of the table's columns.
pub const FINDINGS: [Finding; 10] = [
    Finding::Right,
    Finding::Undecided,
    Finding::NotChecked,
    Finding::Stated,
    Finding::NotSeen,
    Finding::Refused,
    Finding::Wrong,
    Finding::Hung,
    Finding::Crashed,
    Finding::NotRun,
];

impl Finding {
    /// Whether it fails the run.
    pub fn is_bad(self) -> bool {
        self >= Self::Wrong
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Right => "right",
            Self::Undecided => "undecided",
            Self::NotChecked => "not checked",
            Self::Stated => "stated",
            Self::NotSeen => "not seen",
            Self::Refused => "refused",
            Self::Wrong => "wrong",
            Self::Hung => "hung",
            Self::Crashed => "crashed",
            Self::NotRun => "not run",
        })
    }
}

/// Whether a unit may hang on a GPU, whatever checks it: its file deadlocks, or misuses barriers.
pub(super) fn may_hang(unit: &Unit) -> bool {
    unit.case.get("error") == Some("deadlock") || !unit.case.all("misuse").is_empty()
}

/// What a unit that was killed is: some files are there to hang, and what a racy kernel does is
/// undefined.
pub(super) fn hung(unit: &Unit) -> Finding {
    let case = &unit.case;
    match case.get("error") {
        Some("deadlock") => Finding::Right,
        _ if unit.is_race() && !case.all("misuse").is_empty() => Finding::NotSeen,
        _ if case.get("expect") == Some("race") => Finding::NotSeen,
        _ => Finding::Hung,
    }
}

/// Runs a unit, and says what became of it and why.
pub(super) fn judge(machine: &mut Machine, unit: &Unit) -> (Finding, String) {
    let judged = match unit.is_race() {
        true => of_race(machine, unit),
        false => of_exec(machine, unit).map(|()| (Finding::Right, String::new())),
    };
    judged.unwrap_or_else(|error| match error.downcast_ref::<Refused>() {
        Some(_) => (Finding::Refused, format!("{error:#}")),
        None => (Finding::Wrong, format!("{error:#}")),
    })
}

fn of_exec(machine: &mut Machine, unit: &Unit) -> Result<()> {
    exec::judge(&unit.case, |launch, arguments| {
        machine.run(&unit.case.text, launch, arguments, 1)
    })
}

fn of_race(machine: &mut Machine, unit: &Unit) -> Result<(Finding, String)> {
    let case = &unit.case;
    let (launch, arguments) = (Launch::of(case)?, race::arguments(case)?);
    let outcome = machine.run(&case.text, &launch, &arguments, LAUNCHES)?;
    if let Err(error) = &outcome.error {
        return match case.all("misuse").is_empty() {
            true => Ok((Finding::Wrong, format!("the launch failed: {error}"))),
            false => Ok((Finding::NotSeen, format!("misuse: {error}"))),
        };
    }
    verdict(case, &outcome, unit.way)
}

/// What all launches of a case together say.
fn verdict(case: &Case, outcome: &Outcome, way: Way) -> Result<(Finding, String)> {
    let said = |finding, why: &str| Ok((finding, why.to_owned()));
    let (truth, labels) = (race::expected(case)?, race::labels(case)?);
    let stated = match way {
        Way::AsWritten => None,
        // What a file states of `precise` is of the simulated device; here the journal decides.
        Way::Precise => race::stated(case, "as-gpu")?,
        Way::Fast => race::stated(case, "fast")?,
    };
    if let Some(what) = &outcome.unchecked {
        return said(Finding::NotChecked, what);
    }
    let mut verdict = Verdict::NoRace;
    for race in &outcome.races {
        let is_race = race.class == Class::Race;
        let known = labels.contains_key(&(race.class, race.lines));
        ensure!(
            known || (is_race && !race.decided) || race::is_wrong(stated),
            "false alarm: {:?} in lines {:?}",
            race.class,
            race.lines
        );
        verdict = verdict.max(match race.decided {
            _ if !is_race => Verdict::NoRace,
            true => Verdict::Race,
            false => Verdict::Undecided,
        });
    }
    match verdict {
        _ if verdict == truth => said(Finding::Right, ""),
        _ if Some(verdict) == stated => said(Finding::Stated, ""),
        Verdict::Undecided => said(Finding::Undecided, ""),
        Verdict::NoRace if outcome.ordered > 0 => said(
            Finding::NotSeen,
            "fences have hidden it under these schedules",
        ),
        Verdict::NoRace if !outcome.by_barriers => said(Finding::NotSeen, ""),
        Verdict::NoRace | Verdict::Race | Verdict::NotChecked => {
            said(Finding::Wrong, &format!("says {verdict}, expected {truth}"))
        }
    }
}
