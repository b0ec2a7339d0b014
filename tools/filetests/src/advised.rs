//! Applies the help of reports to the files of `tests/race`, and expects that nothing is reported any more.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use ptx::Parsed;
use runtime::{Mode, Model};

use crate::header::Case;
use crate::machine::{self, Checks, Launch, Machine};
use crate::race;

/// Schedules under which a file is run.
const SEEDS: u64 = 4;

/// What `__threadfence()` is.
const FENCE: &str = "fence.sc.gpu;";

/// A change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edit {
    /// Inserts a line.
    Insert {
        /// The line that it comes in front of, from 1.
        before: usize,
        text: &'static str,
    },
    /// Replaces the scope in a line, from 1, by that of the device.
    Widen(usize),
}

/// Applies all help of a case's reports, if that can be done line by line; otherwise returns false.
///
/// # Errors
/// When a race is still reported, unless the case gives a reason (`advice`); when the launch fails, or misuses a barrier.
pub fn judge(case: &Case) -> Result<bool> {
    let context = report::Context {
        scoped: race::model(case)? == Some(Model::Scoped),
        ..report::Context::default()
    };
    let checks = Some(Checks::by(Mode::Precise));
    let machine = |seed| Machine::under(race::model(case)?, checks, seed);
    let (launch, arguments) = (Launch::of(case)?, race::arguments(case)?);
    let mut helps = BTreeSet::new();
    let ready = machine::ready(Parsed::new(&case.text), checks);
    for seed in 0..SEEDS {
        let report = machine(seed)?.report(&ready, &launch, &arguments, &context)?;
        helps.extend(report.races.into_iter().map(|race| race.help));
    }
    // A scope that is too narrow hides other races. They are reported once it is widened.
    let behind = |help: &&String| help.starts_with("first repair the scope that CR005 names");
    let partly = helps.iter().any(|help| behind(&help));
    let mut edits = BTreeSet::new();
    for help in helps.iter().filter(|help| !behind(help)) {
        let wanted = wanted(help);
        if wanted.is_empty() {
            return Ok(false);
        }
        edits.extend(wanted);
    }
    let text = edited(&case.text, &edits);
    let ready = machine::ready(Parsed::new(&text), checks);
    let mut left = BTreeSet::new();
    for seed in 0..SEEDS {
        let outcome = machine(seed)?.run_ready(&ready, &launch, &arguments)?;
        let context = || format!("with {edits:?}");
        outcome.error.with_context(context)?;
        ensure!(
            outcome.misuses.is_empty(),
            "{:?} {}",
            outcome.misuses,
            context()
        );
        let of = |race: &machine::Race| format!("{:?} in lines {:?}", race.class, race.lines);
        left.extend(outcome.races.iter().map(of));
    }
    match case.get("advice") {
        Some(why) => ensure!(
            !why.is_empty() && !left.is_empty(),
            "`advice` gives no reason, or what is advised repairs all"
        ),
        None => ensure!(
            partly || left.is_empty(),
            "the advice {helps:#?} leaves {left:?} with {edits:?}"
        ),
    }
    Ok(true)
}

fn edited(text: &str, edits: &BTreeSet<Edit>) -> String {
    let mut all = String::new();
    for (at, line) in text.lines().enumerate() {
        let inserted = edits.iter().filter_map(|edit| match *edit {
            Edit::Insert { before, text } if before == at + 1 => Some(text),
            _ => None,
        });
        inserted.for_each(|new| all.extend([new, "\n"]));
        match edits.contains(&Edit::Widen(at + 1)) {
            true => all += &line.replace(".cta", ".gpu").replace(".cluster", ".gpu"),
            false => all += line,
        }
        all.push('\n');
    }
    all
}

/// The changes that a help asks for; none if they are no changes of single lines.
fn wanted(help: &str) -> Vec<Edit> {
    if let Some((one, other)) = help.split_once("; and ") {
        return [wanted(one), wanted(other)].concat();
    }
    // The rest of the sentence gives a reason or an alternative.
    let help = help.split(';').next().unwrap_or_default();
    let help = help.split(", or ").next().unwrap_or_default();
    let lines = |text: &str| -> Vec<usize> {
        let parts = text.split("test:").skip(1);
        let number = |part: &str| {
            part.split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        };
        parts.filter_map(number).collect()
    };
    if let Some(rest) = help.strip_prefix("use device scope for ") {
        return lines(rest).into_iter().map(Edit::Widen).collect();
    }
    if let Some(rest) = help.strip_prefix("widen the ") {
        let mut edits = Vec::new();
        for side in rest.split(" and the ") {
            // The fence may stand anywhere in front of a write, or behind a read.
            let behind = usize::from(side.starts_with("acquire"));
            for line in lines(side) {
                let before = line + behind;
                edits.extend([
                    Edit::Widen(line),
                    Edit::Insert {
                        before,
                        text: FENCE,
                    },
                ]);
            }
        }
        return edits;
    }
    let (text, targets) = match help.split_once("put ") {
        Some((_, rest)) if rest.starts_with("a barrier of the cluster (") => {
            match rest.split_once(") ") {
                Some((_, targets)) => ("barrier.cluster.arrive; barrier.cluster.wait;", targets),
                None => return Vec::new(),
            }
        }
        Some((_, rest)) => {
            let call = rest
                .strip_prefix('`')
                .and_then(|rest| rest.split_once("` "));
            let Some((call, targets)) = call else {
                return Vec::new();
            };
            let text = match call {
                "__syncthreads()" => "bar.sync 0;",
                "__syncwarp()" => "bar.warp.sync 0xffffffff;",
                "__threadfence()" => FENCE,
                "__threadfence_block()" => "fence.sc.cta;",
                _ => return Vec::new(),
            };
            (text, targets)
        }
        None => return Vec::new(),
    };
    let mut edits = Vec::new();
    let (mut before, mut after) = (false, false);
    let words: Vec<&str> = targets.split([' ', ',', ':']).collect();
    for pair in words.windows(2) {
        match pair {
            ["before", _] => before = true,
            ["after", _] => after = true,
            ["line" | "test", number] if before || after => {
                let Ok(line) = number.parse::<usize>() else {
                    continue;
                };
                let insert = |before| Edit::Insert { before, text };
                edits.extend(before.then(|| insert(line)));
                edits.extend(after.then(|| insert(line + 1)));
                (before, after) = (false, false);
            }
            _ => {}
        }
    }
    edits
}
