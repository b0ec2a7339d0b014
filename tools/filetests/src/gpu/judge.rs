//! What is made of a unit.

use std::fmt;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::machine::{Machine, Refused};
use super::{Unit, Way};
use crate::exec;
use crate::header::{Case, Class};
use crate::machine::{Launch, LaunchOutcome};
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
    /// A wrong verdict that the file states, or another result where the file leaves it open.
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
        false => of_exec(machine, unit),
    };
    judged.unwrap_or_else(|error| match error.downcast_ref::<Refused>() {
        Some(_) => (Finding::Refused, format!("{error:#}")),
        None => (Finding::Wrong, format!("{error:#}")),
    })
}

fn of_exec(machine: &mut Machine, unit: &Unit) -> Result<(Finding, String)> {
    let mut failed = false;
    let judged = exec::judge(&unit.case, |launch, arguments| {
        let ran = machine.run(&unit.case.text, launch, arguments, 1);
        ran.inspect_err(|_| failed = true)
    });
    match failed {
        true => judged.map(|()| (Finding::Right, String::new())),
        false => result(&unit.case, judged),
    }
}

/// What a result is that is or is not the expected one.
fn result(case: &Case, judged: Result<()>) -> Result<(Finding, String)> {
    match (judged, case.get("open-on-gpu")) {
        (Ok(()), _) => Ok((Finding::Right, String::new())),
        (Err(error), Some(why)) => Ok((Finding::Stated, format!("{error:#}: {why}"))),
        (Err(error), None) => Err(error),
    }
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
fn verdict(case: &Case, outcome: &LaunchOutcome, way: Way) -> Result<(Finding, String)> {
    let found = |finding, why: &str| Ok((finding, why.to_owned()));
    let (truth, labels) = (race::expected(case)?, race::labels(case)?);
    let stated = match way {
        Way::AsWritten => None,
        // What a file states of `precise` is of the simulated device; here the journal decides.
        Way::Precise => race::stated(case, "as-gpu")?,
        Way::Fast => race::stated(case, "fast")?,
    };
    if let Some(what) = &outcome.unchecked {
        return found(Finding::NotChecked, what);
    }
    let mut verdict = Verdict::NoRace;
    for race in &outcome.races {
        let is_race = race.class == Class::Race;
        let marked = |class| labels.contains_key(&(class, race.lines));
        // Only the order of locks or fences orders these two accesses. Under another schedule they race.
        let predicted = is_race && marked(Class::Predictive) && !marked(Class::Race);
        let known = marked(race.class) || predicted;
        ensure!(
            known || (is_race && !race.decided) || race::is_wrong(stated),
            "false alarm: {:?} in lines {:?}",
            race.class,
            race.lines
        );
        verdict = verdict.max(match race.decided {
            _ if !is_race || predicted => Verdict::NoRace,
            true => Verdict::Race,
            false => Verdict::Undecided,
        });
    }
    match verdict {
        _ if verdict == truth => found(Finding::Right, ""),
        _ if Some(verdict) == stated => found(Finding::Stated, ""),
        Verdict::NoRace if outcome.undecided > 0 && stated == Some(Verdict::Undecided) => {
            found(Finding::Stated, "")
        }
        Verdict::Undecided => found(Finding::Undecided, ""),
        Verdict::NoRace if outcome.undecided > 0 => {
            found(Finding::Undecided, "accesses are left undecided")
        }
        Verdict::NoRace if outcome.ordered > 0 => found(
            Finding::NotSeen,
            "fences have hidden it under these schedules",
        ),
        Verdict::NoRace if !outcome.by_barriers => found(Finding::NotSeen, ""),
        Verdict::NoRace | Verdict::Race | Verdict::NotChecked => {
            found(Finding::Wrong, &format!("says {verdict}, expected {truth}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::header;
    use crate::machine::Race;

    fn case(text: &str) -> Case {
        header::cases(text).unwrap().remove(0)
    }

    /// Of launches that have reported these races.
    fn outcome(races: &[(Class, (u32, u32))]) -> LaunchOutcome {
        let races = races.iter().map(|&(class, lines)| Race {
            lines,
            class,
            decided: true,
            same_value: false,
        });
        LaunchOutcome {
            contents: Vec::new(),
            error: Ok(()),
            races: races.collect(),
            misuses: BTreeSet::new(),
            ordered: 0,
            undecided: 0,
            proved: false,
            verified: None,
            refuted: Vec::new(),
            unchecked: None,
            by_barriers: true,
        }
    }

    fn found(case: &Case, outcome: &LaunchOutcome) -> Finding {
        let judged = verdict(case, outcome, Way::Fast);
        judged.map_or(Finding::Wrong, |(finding, _)| finding)
    }

    #[test]
    fn what_another_schedule_lets_race_is_no_false_alarm() {
        let case = case("//@ expect: no-race\nst //~ predictive A\nld //~ predictive A\n");
        assert_eq!(found(&case, &outcome(&[])), Finding::Right);
        let marked = outcome(&[(Class::Race, (2, 3))]);
        assert_eq!(found(&case, &marked), Finding::Right);
        let other = outcome(&[(Class::Race, (2, 2))]);
        assert_eq!(found(&case, &other), Finding::Wrong);
        let strong = outcome(&[(Class::Strong, (2, 3))]);
        assert_eq!(found(&case, &strong), Finding::Wrong);
    }

    #[test]
    fn a_predicted_race_is_not_the_marked_one() {
        let text = "//@ expect: race\nst //~ race A //~ predictive A\nld //~ race A //~ predictive A\n\
                    st //~ predictive B\nld //~ predictive B\n";
        let case = case(text);
        let marked = outcome(&[(Class::Race, (2, 3))]);
        assert_eq!(found(&case, &marked), Finding::Right);
        let other = outcome(&[(Class::Race, (4, 5))]);
        assert_eq!(found(&case, &other), Finding::Wrong);
    }

    #[test]
    fn accesses_that_are_left_undecided_are_no_verdict() {
        let racy = "//@ expect: race\nst //~ race A\nld //~ race A\n";
        let stated = |verdict| format!("//@ expect(fast): {verdict}, why\n{racy}");
        let open = LaunchOutcome {
            undecided: 1,
            ..outcome(&[])
        };
        assert_eq!(found(&case(racy), &outcome(&[])), Finding::Wrong);
        assert_eq!(found(&case(racy), &open), Finding::Undecided);
        let text = stated("undecided");
        assert_eq!(found(&case(&text), &open), Finding::Stated);
        let text = stated("no-race");
        assert_eq!(found(&case(&text), &open), Finding::Stated);
        // A reported race counts more than undecided accesses, and a correct kernel stays right.
        let reported = LaunchOutcome {
            undecided: 1,
            ..outcome(&[(Class::Race, (2, 3))])
        };
        assert_eq!(found(&case(racy), &reported), Finding::Right);
        assert_eq!(found(&case("//@ expect: no-race\n"), &open), Finding::Right);
    }

    #[test]
    fn another_result_is_stated_where_it_is_open() {
        let wrong = || Err(anyhow::anyhow!("the launch succeeded"));
        let open = case("//@ error: trap\n//@ open-on-gpu: who knows\n");
        let closed = case("//@ error: trap\n");
        let stated = result(&open, wrong()).unwrap();
        let why = "the launch succeeded: who knows".to_owned();
        assert_eq!(stated, (Finding::Stated, why));
        assert!(result(&closed, wrong()).is_err());
        for case in [open, closed] {
            assert_eq!(result(&case, Ok(())).unwrap().0, Finding::Right);
        }
    }
}
