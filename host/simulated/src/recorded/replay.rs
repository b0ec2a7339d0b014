//! Runs a recorded launch again, with happens-before listening as it did then.

use report::log::{Event, Writer};
use runtime::backend::Backend;
use runtime::between::{Steps, Wanted};
use runtime::{Checker, Code, Options, Show};
use simt::LaunchStats;

use super::{Damaged, Ended, Recorded};
use crate::backend::Grid;
use crate::{CheckedSim, Ready};

/// What a replay has shown.
#[derive(Debug)]
pub struct Replayed {
    /// What a checked process would have logged.
    pub events: Vec<Event>,
    /// What happened between the two accesses, if that was asked for.
    pub steps: Option<Steps>,
    /// What was not as it was when the launch was recorded; empty when all was.
    pub differences: Vec<String>,
    /// What the launch did, if it did not fail.
    pub stats: LaunchStats,
    /// The launch has launched or copied something itself, which is not run again.
    pub has_more: bool,
}

impl Recorded {
    /// Runs the launch again, checked as it was, and follows what happens between two accesses.
    ///
    /// # Errors
    /// When the parts do not fit together.
    pub fn replay(&self, wanted: Option<Wanted>) -> Result<Replayed, Damaged> {
        self.replay_ready(&self.ready(), wanted)
    }

    /// Its module, for several runs of the same launch under other schedules.
    pub fn ready(&self) -> Ready {
        Ready::new(match self.options.check {
            true => self.checker().code(self.ptx.as_str()),
            false => Code::unchecked(self.ptx.as_str()),
        })
    }

    fn checker(&self) -> Checker {
        let options = Options {
            progress: Show::Never,
            ..self.options.clone()
        };
        Checker::new(options, Writer::Memory(Vec::new()))
            .resuming(self.allocations.clone(), self.number.saturating_sub(1))
    }

    /// As [`replay`](Self::replay), with the module that [`ready`](Self::ready) has prepared.
    ///
    /// # Errors
    /// When the parts do not fit together.
    pub fn replay_ready(&self, ready: &Ready, wanted: Option<Wanted>) -> Result<Replayed, Damaged> {
        let mut sim = CheckedSim::new(self.memory()?, Some(self.checker()));
        let id = sim.load_placed(ready, &self.origin, &self.placement);
        let id = id.ok_or(Damaged::new("its module has variables without an address"))?;
        let launch = self.arguments.launch();
        let ran = Backend::launch(
            &mut sim,
            Grid {
                by: self.launcher.clone(),
                wanted,
                ..Grid::new(id, &self.kernel, &launch)
            },
        );
        let (result, mut steps) = (ran.result, ran.steps);
        let mut differences = Vec::new();
        if let Some(then) = &self.ended {
            let now = Ended::of(&sim.device, &result);
            let mut differs =
                |what: &str, then: &dyn std::fmt::Debug, now: &dyn std::fmt::Debug| {
                    differences.push(format!("{what}: recorded {then:?}, now {now:?}"));
                };
            if then.error != now.error {
                differs("error", &then.error, &now.error);
            }
            let instructions = |of: &Ended| (of.warp_instructions, of.thread_instructions);
            if instructions(then) != instructions(&now) {
                let (then, now) = (instructions(then), instructions(&now));
                differs("warp and thread instructions", &then, &now);
            }
            if then.memory != now.memory {
                differs("digest of the memory afterwards", &then.memory, &now.memory);
            }
        }
        if let (Some(checker), Some(steps), Some(key)) = (
            sim.checker(),
            &mut steps,
            sim.modules.get(&id).and_then(|loaded| loaded.key),
        ) {
            checker.locate_steps(key, steps.steps.iter_mut().chain(&mut steps.accesses));
        }
        let events = sim.checker().map(Checker::events).unwrap_or_default();
        Ok(Replayed {
            events: events.to_vec(),
            steps,
            differences,
            stats: result.unwrap_or_default(),
            has_more: !launch.requests.is_empty(),
        })
    }
}
