//! What is mutated: a case of `tests/race`, or a launch that a program has made.

use std::ops::Range;

use anyhow::{Context, Result};
use ptx::ast::Module;
use report::log::{Event, Verified};
use runtime::options::{Verify, Volatile};
use runtime::{Mode, Options, Prove};
use simulated::recorded::Recorded;

use crate::args::Arg;
use crate::header::Case;
use crate::machine::{self, Checks, Launch, Machine, TIMEOUT};
use crate::race;

/// A launch whose text can be exchanged.
#[derive(Debug)]
pub(super) enum Subject {
    /// Of a file.
    Case {
        case: Box<Case>,
        launch: Launch,
        arguments: Vec<Arg>,
    },
    /// Of a program, with all that its memory held.
    Recorded(Box<Recorded>),
}

impl Subject {
    pub(super) fn of(case: &Case) -> Result<Self> {
        Ok(Self::Case {
            case: Box::new(case.clone()),
            launch: Launch::of(case)?,
            arguments: race::arguments(case)?,
        })
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Case { case, .. } => &case.text,
            Self::Recorded(recorded) => &recorded.ptx,
        }
    }

    /// The kernels that are launched.
    pub(super) fn kernels(&self, module: &Module) -> Result<Vec<String>> {
        Ok(match self {
            Self::Case { launch, .. } => {
                let first = launch.kernel(module)?;
                std::iter::once(first).chain(launch.then.clone()).collect()
            }
            Self::Recorded(recorded) => vec![recorded.kernel.clone()],
        })
    }

    /// The first of some schedules under which a text shows a race, a misuse, a deadlock or a failure.
    pub(super) fn reported(&self, text: &str, schedules: Range<u64>) -> Result<Option<u64>> {
        let checks = Checks::by(Mode::Precise);
        match self {
            Self::Case {
                case,
                launch,
                arguments,
            } => {
                let ready = machine::ready(text, Some(checks));
                for seed in schedules {
                    let machine = Machine::under(race::model(case)?, Some(checks), seed)?;
                    // What does not load any more cannot go unnoticed either.
                    let Ok(outcome) = machine.run_ready(&ready, launch, arguments) else {
                        return Ok(Some(seed));
                    };
                    let silent = outcome.races.is_empty() && outcome.misuses.is_empty();
                    if outcome.error.is_err() || !silent {
                        return Ok(Some(seed));
                    }
                }
            }
            Self::Recorded(recorded) => {
                for seed in schedules {
                    let events = replay(recorded, text, seed, None)?;
                    if events.iter().any(tells) {
                        return Ok(Some(seed));
                    }
                }
            }
        }
        Ok(None)
    }

    /// What `verify` says of a text.
    pub(super) fn verified(&self, text: &str) -> Result<Verified> {
        let verified = match self {
            Self::Case {
                case,
                launch,
                arguments,
            } => {
                let checks = Checks::verify();
                let machine = Machine::under(race::model(case)?, Some(checks), 0)?;
                let ready = machine::ready(text, Some(checks));
                machine.run_ready(&ready, launch, arguments)?.verified
            }
            Self::Recorded(recorded) => {
                let verify = Verify {
                    volatile: Volatile::Strong,
                    warp_synchronous: false,
                };
                let events = replay(recorded, text, 0, Some(verify))?;
                events.into_iter().find_map(|event| match event {
                    Event::Launch(launch) => launch.verified.map(|of| *of),
                    _ => None,
                })
            }
        };
        verified.context("nothing was verified")
    }
}

/// Runs a recorded launch with another text; seed 0 is the schedule that it was recorded with.
fn replay(
    recorded: &Recorded,
    text: &str,
    seed: u64,
    verify: Option<Verify>,
) -> Result<Vec<Event>> {
    let options = Options {
        prove: Prove::On,
        seed: (seed != 0).then_some(seed),
        timeout: Some(TIMEOUT.as_secs_f64()),
        verify,
        ..recorded.options.clone()
    };
    let changed = Recorded {
        ptx: text.to_owned(),
        options,
        ended: None,
        ..recorded.clone()
    };
    let replayed = changed.replay(None);
    Ok(replayed.context(recorded.kernel.clone())?.events)
}

/// Whether an event is a report.
fn tells(event: &Event) -> bool {
    match event {
        Event::Race(_) => true,
        Event::Launch(launch) => launch.error.is_some(),
        _ => false,
    }
}
