//! `tests/race/`: which accesses race, judged by the device's cells on the simulated device.
//!
//! A file is run round robin and under seeds. Whatever is reported must be a marked pair, every run
//! of a racy case must report something, and all runs together every label.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

use crate::args::{self, Arg};
use crate::header::Case;
use crate::machine::{Launch, Machine, Outcome};

/// Seeds tried after the deterministic schedule.
const SEEDS: u64 = 16;

/// Runs one case under every schedule.
pub fn run(case: &Case) -> Result<()> {
    let expected = case.get("expect").context("a race test needs `expect`")?;
    let labels = labels(case)?;
    ensure!(
        labels.is_empty() == (expected == "no-race"),
        "`expect: {expected}` and the number of race marks disagree"
    );
    let mut seen = BTreeSet::new();
    for seed in 0..=SEEDS {
        let outcome = once(case, seed)?;
        judge(expected, &labels, &outcome, &mut seen).with_context(|| format!("seed {seed}"))?;
    }
    let missing: Vec<_> = labels
        .values()
        .filter(|label| !seen.contains(*label))
        .collect();
    ensure!(
        missing.is_empty(),
        "never reported under {SEEDS} seeds: {missing:?}"
    );
    Ok(())
}

fn once(case: &Case, seed: u64) -> Result<Outcome> {
    let arguments = case.all("arg").iter().map(|arg| args::parse(arg));
    let arguments: Vec<Arg> = arguments.collect::<Result<_>>()?;
    Machine::new(true, seed)?.run(&case.text, &Launch::of(case)?, &arguments)
}

/// Pairs of lines by the label they carry; a label that stands once races with itself.
fn labels(case: &Case) -> Result<BTreeMap<(u32, u32), String>> {
    let mut lines: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for mark in &case.marks {
        lines.entry(&mark.label).or_default().push(mark.line);
    }
    let pairs = lines.into_iter().map(|(label, lines)| match lines[..] {
        [one] => Ok(((one, one), label.to_owned())),
        [a, b] => Ok(((a.min(b), a.max(b)), label.to_owned())),
        _ => bail!("race {label} has {} ends", lines.len()),
    });
    pairs.collect()
}

fn judge(
    expected: &str,
    labels: &BTreeMap<(u32, u32), String>,
    outcome: &Outcome,
    seen: &mut BTreeSet<String>,
) -> Result<()> {
    if let Err(error) = &outcome.error {
        bail!("the launch failed: {error}");
    }
    for race in &outcome.races {
        let Some(label) = labels.get(&race.lines) else {
            bail!("false alarm: lines {:?}", race.lines);
        };
        ensure!(
            race.decided == (expected == "race"),
            "race {label} is {}, expected `{expected}`",
            if race.decided {
                "decided"
            } else {
                "not decided"
            }
        );
        seen.insert(label.clone());
    }
    match expected {
        "no-race" => Ok(()),
        "race" | "undecided" => {
            ensure!(!outcome.races.is_empty(), "no race was reported");
            Ok(())
        }
        other => bail!("unknown expectation `{other}`: race, no-race or undecided"),
    }
}
