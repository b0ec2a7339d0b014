//! What a checker's log says of a launch, as a test case sees it.

use std::collections::HashMap;

use anyhow::{Result, anyhow, bail};
use report::log::{Counters, Event, Kernel, Why};

use crate::header::Class;
use crate::machine::{Failure, LaunchOutcome, Race};

/// Puts together what came of the launches of `kernels`, one at least, that `events` report.
///
/// # Errors
/// When a launch was not checked, or the log makes no sense.
pub(crate) fn outcome(
    events: &[Event],
    kernels: &[&str],
    contents: Vec<Vec<u8>>,
    error: Result<(), Failure>,
) -> Result<LaunchOutcome> {
    let misuses = races(events, true)?.into_iter();
    Ok(LaunchOutcome {
        contents,
        error,
        races: races(events, false)?
            .into_iter()
            .map(|(race, _)| race)
            .collect(),
        misuses: misuses.map(|(race, kind)| (kind, race.lines)).collect(),
        ordered: counted(events, |of| of.ordered),
        undecided: counted(events, |of| of.undecided),
        proved: events.iter().any(is_proved),
        verified: verified(events),
        refuted: refuted(events),
        unchecked: kernels.iter().find_map(|kernel| unchecked(events, kernel)),
        by_barriers: kernels.iter().all(|kernel| {
            known(events, kernel).is_some_and(|known| known.release_sites.is_empty())
        }),
    })
}

/// What the last module that has the kernel says of it.
fn known<'a>(events: &'a [Event], kernel: &str) -> Option<&'a Kernel> {
    let mut kernels = events.iter().filter_map(|event| match event {
        Event::Module(module) => module.kernels.iter().find(|known| known.name == kernel),
        _ => None,
    });
    kernels.next_back()
}

/// A counter, over all launches.
fn counted(events: &[Event], of: fn(&Counters) -> u64) -> u64 {
    let launches = events.iter().map(|event| match event {
        Event::Launch(launch) => of(&launch.counters),
        _ => 0,
    });
    launches.sum()
}

/// What `verify` says of the launches together.
fn verified(events: &[Event]) -> Option<report::log::Verified> {
    let launches = events.iter().filter_map(|event| match event {
        Event::Launch(launch) => launch.verified.as_deref(),
        _ => None,
    });
    launches.min_by_key(|of| of.answer).cloned()
}

/// Whether something is proved of a launch.
fn is_proved(event: &Event) -> bool {
    let Event::Launch(launch) = event else {
        return false;
    };
    let proof = launch.proof.as_ref();
    proof.is_some_and(|of| of.whole || of.read_only + of.private + of.barriers + of.atomic > 0)
}

/// What is wrong with proofs.
fn refuted(events: &[Event]) -> Vec<String> {
    let all = events.iter().filter_map(|event| match event {
        Event::ToolError { text } => Some(text.clone()),
        _ => None,
    });
    all.collect()
}

/// What of a kernel the checks leave out.
fn unchecked(events: &[Event], kernel: &str) -> Option<String> {
    let known = known(events, kernel)?;
    let missed = events.iter().any(|event| match event {
        // A wild access is outside of everything, and fails the launch anyway.
        Event::Launch(launch) => {
            launch.counters.outside + launch.counters.dropped > 0 && launch.error.is_none()
        }
        _ => false,
    });
    match (known.shared, known.not_understood.first()) {
        (0, None) if missed => Some("accesses outside of the checked window".to_owned()),
        (0, None) => None,
        (0, Some(what)) => Some(what.clone()),
        (count, _) => Some(format!("{count} accesses to shared memory")),
    }
}

/// The races, or the misuses with what the log calls them.
fn races(events: &[Event], misuses: bool) -> Result<Vec<(Race, String)>> {
    let mut lines = HashMap::new();
    let mut races = Vec::new();
    for event in events {
        match event {
            Event::Sites { sites, .. } => {
                lines.extend(sites.iter().map(|site| (site.id, site.ptx_line)));
            }
            Event::Race(race) if matches!(race.why, Why::Misuse(_)) == misuses => {
                let line = |site| {
                    lines
                        .get(&site)
                        .copied()
                        .ok_or_else(|| anyhow!("unknown site {site}"))
                };
                let (a, b) = (line(race.site)?, line(race.previous_site)?);
                let kind = match race.why {
                    Why::Misuse(misuse) => serde_json::to_value(misuse)?,
                    _ => serde_json::Value::Null,
                };
                let race = Race {
                    lines: (a.min(b), a.max(b)),
                    class: match race.why {
                        Why::Strong => Class::Strong,
                        Why::LockOrder | Why::Fences | Why::Counted => Class::Predictive,
                        _ => Class::Race,
                    },
                    decided: race.decided,
                    same_value: race.same_value,
                };
                races.push((race, kind.as_str().unwrap_or_default().to_owned()));
            }
            Event::Launch(launch) => {
                if let Some(why) = &launch.why_not {
                    bail!("the launch was not checked: {why}");
                }
            }
            _ => {}
        }
    }
    Ok(races)
}
