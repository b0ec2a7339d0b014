//! What is mutated: a case of `tests/race`, or a launch that a program has made.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Context, Result};
use ptx::ast::Module;
use ptx::callgraph::CallGraph;
use report::log::{Event, Verified};
use runtime::options::{Verify, Volatile};
use runtime::{Mode, Options, Prove};
use simulated::Ready;
use simulated::recorded::{Recorded, Replayed};

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

    /// Of a recorded launch. Each mutant is parsed, so the module's kernels that the launch cannot reach are blanked: in
    /// Thrust and CUB they are most of the text. Lines keep their numbers.
    pub(super) fn recorded(mut recorded: Recorded) -> Self {
        let module = ptx::parse(&recorded.ptx).0;
        let graph = CallGraph::new(&module);
        let reachable: BTreeSet<&str> = graph.reachable(&recorded.kernel).into_iter().collect();
        let idle = module.functions().filter(|of| {
            of.entry && !reachable.contains(of.name.as_str()) && !graph.is_address_taken(&of.name)
        });
        let mut text = recorded.ptx.clone();
        for function in idle {
            let blank: String = { module.slice(function.span).bytes() }
                .map(|of| if of == b'\n' { '\n' } else { ' ' })
                .collect();
            let range = function.span.start as usize..function.span.end as usize;
            text.replace_range(range, &blank);
        }
        recorded.ptx = text;
        Self::Recorded(Box::new(recorded))
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
                let mut changed = Changed::new(recorded, text, None);
                for seed in schedules {
                    let events = changed.run(seed)?.events;
                    if events.iter().any(is_report) {
                        return Ok(Some(seed));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Why mutants would say nothing, if they would: the subject is reported as it is, or only a part of it runs here.
    pub(super) fn unfit(&self) -> Result<Option<&'static str>> {
        let reported = match self {
            Self::Case { .. } => self.reported(self.text(), 0..1)?.is_some(),
            Self::Recorded(recorded) => {
                let replayed = Changed::new(recorded, self.text(), None).run(0)?;
                if replayed.has_more {
                    return Ok(Some("what it launches is not run with it"));
                }
                replayed.events.iter().any(is_report)
            }
        };
        Ok(reported.then_some("it is reported as it is"))
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
                let events = Changed::new(recorded, text, Some(verify)).run(0)?.events;
                events.into_iter().find_map(|event| match event {
                    Event::Launch(launch) => launch.verified.map(|of| *of),
                    _ => None,
                })
            }
        };
        verified.context("nothing was verified")
    }
}

/// A recorded launch with another text, and its module.
struct Changed {
    recorded: Recorded,
    ready: Ready,
}

impl Changed {
    fn new(recorded: &Recorded, text: &str, verify: Option<Verify>) -> Self {
        // Only `verify` asks for proofs: what a run shows is found without them too.
        let prove = match verify {
            Some(_) => Prove::On,
            None => Prove::Off,
        };
        let recorded = Recorded {
            ptx: text.to_owned(),
            options: Options {
                prove,
                timeout: Some(TIMEOUT.as_secs_f64()),
                verify,
                ..recorded.options.clone()
            },
            ended: None,
            ..recorded.clone()
        };
        let ready = recorded.ready();
        Self { recorded, ready }
    }

    /// Runs it; seed 0 is the schedule that it was recorded with.
    fn run(&mut self, seed: u64) -> Result<Replayed> {
        self.recorded.options.seed = (seed != 0).then_some(seed);
        let replayed = self.recorded.replay_ready(&self.ready, None);
        replayed.context(self.recorded.kernel.clone())
    }
}

/// Whether an event is a report.
fn is_report(event: &Event) -> bool {
    match event {
        Event::Race(_) => true,
        Event::Launch(launch) => launch.error.is_some(),
        _ => false,
    }
}
