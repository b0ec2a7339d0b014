//! Suppressions: reading their files, and `suppress`, which prints them for the races of saved reports.

use std::collections::BTreeSet;
use std::path::PathBuf;

use report::model::Race;
use report::suppressions::{List, kernel_line, toml_text};

use crate::args::SuppressArgs;
use crate::exit::{BAD_INPUT, Stop};
use crate::{console, saved};

/// Reads the files of `--suppressions`.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<List>, Stop> {
    let read = |path: &PathBuf| {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Stop::new(
                BAD_INPUT,
                format!("{name}: cannot read suppressions: {error}"),
            )
        })?;
        List::parse(&name.to_string(), &text).map_err(|wrong| {
            let text = format!("{name}:{}: {}", wrong.line, wrong.what);
            Stop::new(BAD_INPUT, text)
        })
    };
    paths.iter().map(read).collect()
}

/// Prints an entry for each race, and for the other pairs of accesses of its cause.
pub(crate) fn run(args: &SuppressArgs) -> Result<u8, Stop> {
    let report = saved::read_all(&args.runs)?;
    let mut named: Vec<&Race> = report.counted().collect();
    if !args.id.is_empty() {
        let found: Result<Vec<_>, Stop> =
            args.id.iter().map(|id| saved::named(&report, id)).collect();
        let found: BTreeSet<&str> = found?.iter().map(|(race, _)| race.id.as_str()).collect();
        named = report
            .races
            .iter()
            .filter(|race| found.contains(race.id.as_str()))
            .collect();
    }
    let mut text = String::new();
    for race in named {
        for pair in race.pairs() {
            let what = pair.place();
            let reason = match &args.reason {
                Some(reason) => reason.clone(),
                None => format!("{what}: say why this does not count"),
            };
            // The names are of files, which may say anything.
            let what = pair.text().replace(char::is_control, " ");
            text += &format!(
                "# {what}\n[[suppress]]\nid = {}\n{}reason = {}\n\n",
                toml_text(pair.id),
                kernel_line(pair.kernels),
                toml_text(&reason)
            );
        }
    }
    match text.trim_end() {
        "" => console::say("cudarun-check: no races, so nothing to suppress"),
        text => console::out(text),
    }
    Ok(0)
}
