//! A launch that is recorded and replayed: both runs must have the same races, witnesses and values included.

use std::fs::File;

use anyhow::{Result, bail, ensure};
use report::log::{Event, Race, Thread, Why};
use report::replay::Role;
use runtime::Checker;
use runtime::between::Wanted;
use simulated::Ready;
use simulated::recorded::{Arguments, Recorded};

use super::{Launch, Machine};
use crate::args::Arg;

impl Machine {
    /// Runs a launch, and replays it from its recording if it has races; how many were compared.
    ///
    /// # Errors
    /// When the two runs differ, or the steps between two accesses that race are not found.
    pub fn replays(mut self, ready: &Ready, launch: &Launch, arguments: &[Arg]) -> Result<usize> {
        let folder = tempfile::tempdir()?;
        self.sim.record_into(folder.path());
        self.perform(ready, launch, arguments)?;
        let events = self.sim.checker().map_or(&[][..], Checker::events);
        let mut compared = 0;
        for entry in folder.path().read_dir()? {
            let recorded = Recorded::read(File::open(entry?.path())?)?;
            let then = races(events, recorded.number);
            ensure!(!then.is_empty(), "a launch without races was recorded");
            for race in &then {
                let replayed = recorded.replay(wanted(race, events, &recorded.arguments))?;
                let differences = &replayed.differences;
                ensure!(differences.is_empty(), "{differences:?}");
                let now = races(&replayed.events, recorded.number);
                ensure!(
                    now == then,
                    "{now:#?}\nis not what was recorded:\n{then:#?}"
                );
                if let Some(steps) = &replayed.steps {
                    let roles = [steps.steps.first(), steps.steps.last()];
                    let [Some(first), Some(last)] = roles else {
                        bail!("no steps of {race:#?}");
                    };
                    let is = |role, of: Role| role == of || role == Role::Both;
                    ensure!(
                        is(first.role, Role::First) && is(last.role, Role::Second),
                        "{:#?}\nare not from one access to the other of {race:#?}",
                        steps.steps
                    );
                    let accesses = steps.accesses.len();
                    ensure!(
                        accesses > 1,
                        "the trace has {accesses} of the accesses of {race:#?}"
                    );
                }
                compared += 1;
            }
        }
        Ok(compared)
    }
}

fn races(events: &[Event], launch: u64) -> Vec<Race> {
    let races = events.iter().filter_map(|event| match event {
        Event::Race(race) if race.launch == launch => Some(Race::clone(race)),
        _ => None,
    });
    races.collect()
}

/// The accesses of a race, unless it is none between accesses of two threads.
fn wanted(race: &Race, events: &[Event], arguments: &Arguments) -> Option<Wanted> {
    let sites = events.iter().flat_map(|event| match event {
        Event::Sites { sites, .. } => &sites[..],
        _ => &[],
    });
    let sites: Vec<_> = sites.collect();
    let line = |id| Some(sites.iter().find(|site| site.id == id)?.ptx_line);
    let linear = |[x, y, z]: [u32; 3], [w, h, _]: [u32; 3]| x + w * (y + h * z);
    let of = |thread: &Thread| {
        let block = linear(thread.block, arguments.grid);
        (u64::from(block), linear(thread.thread, arguments.block))
    };
    if matches!(race.why, Why::Misuse(_)) {
        return None;
    }
    Some(Wanted {
        threads: [of(race.previous_thread.as_ref()?), of(&race.thread)],
        lines: [line(race.previous_site)?, line(race.site)?],
        space: race.space,
        address: race.address,
    })
}
