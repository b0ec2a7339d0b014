//! Suppressions: reading their files, and `suppress`, which prints them for the races of saved reports.

use std::path::PathBuf;

use report::model::Race;
use report::suppressions::{List, toml_text};

use crate::args::SuppressArgs;
use crate::exit::{BAD_INPUT, Stop, USAGE};
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
    let wanted = |race: &&Race| args.id.is_empty() || args.id.contains(&race.id);
    for id in &args.id {
        if !report.races.iter().any(|race| &race.id == id) {
            let all: Vec<&str> = report.counted().map(|race| race.id.as_str()).collect();
            let known = match &all[..] {
                [] => "there are no races in it".to_owned(),
                all => format!("there are {}", all.join(", ")),
            };
            let text = format!("no race has the id `{id}`; {known}");
            return Err(Stop::new(USAGE, text));
        }
    }
    let mut text = String::new();
    let named = report
        .races
        .iter()
        .filter(|race| race.counts() || !args.id.is_empty());
    for race in named.filter(wanted) {
        for pair in race.pairs() {
            let what = pair.place();
            let reason = match &args.reason {
                Some(reason) => reason.clone(),
                None => format!("{what}: say why this does not count"),
            };
            // The names are of files, which may say anything.
            let what = pair.said().replace(char::is_control, " ");
            text += &format!(
                "# {what}\n[[suppress]]\nid = {}\nreason = {}\n\n",
                toml_text(pair.id),
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
