//! What a test wants from the tool's JSON report: which pairs of lines race.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::header::{self, Pair, Place};

/// The part of the report that tests look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Races {
    /// Reported as certain.
    pub certain: BTreeSet<Pair>,
    /// Reported as warnings: possible, or harmless.
    pub possible: BTreeSet<Pair>,
}

#[derive(Deserialize)]
struct Report {
    races: Vec<Race>,
}

#[derive(Deserialize)]
struct Race {
    level: String,
    /// Set for a race that is known and does not count.
    suppressed_by: Option<serde::de::IgnoredAny>,
    accesses: Vec<Access>,
    /// Other pairs of accesses that have the same cause.
    #[serde(default)]
    related: Vec<Race>,
}

#[derive(Deserialize)]
struct Access {
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    file: String,
    line: u32,
}

/// Reads a report file about a program made of `sources`.
pub fn read(path: &Path, sources: &[String]) -> Result<Races> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text, sources).with_context(|| path.display().to_string())
}

fn parse(text: &str, sources: &[String]) -> Result<Races> {
    let report: Report = serde_json::from_str(text).context("not a report of cudarun-check")?;
    let mut races = Races::default();
    let counted = |race: &Race| race.suppressed_by.is_none();
    let entries = report.races.iter().filter(|race| counted(race));
    for race in entries.flat_map(|race| std::iter::once(race).chain(&race.related)) {
        let mut places: Vec<Place> = race
            .accesses
            .iter()
            .map(|access| place(access, sources))
            .collect();
        places.sort();
        let [first, second] = <[Place; 2]>::try_from(places)
            .map_err(|places| anyhow::anyhow!("a race with {} accesses", places.len()))?;
        let kind = if race.level == "error" {
            &mut races.certain
        } else {
            &mut races.possible
        };
        kind.insert((first, second));
    }
    Ok(races)
}

/// The innermost frame that is in one of the sources, and not in a header they include.
fn place(access: &Access, sources: &[String]) -> Place {
    let frames = access.frames.iter();
    let places = frames.map(|frame| {
        (
            frame.file.rsplit('/').next().unwrap_or_default(),
            frame.line,
        )
    });
    let own = places
        .clone()
        .find(|(file, _)| sources.iter().any(|source| source == file));
    match own.or(places.clone().next()) {
        Some((file, line)) => (file.to_owned(), line),
        None => header::call(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_frames_of_the_program_make_an_unordered_pair() {
        let text = r#"{"races": [{"level": "error", "accesses": [
            {"frames": [{"file": "/a/b/x.cu", "line": 9}, {"file": "y.h", "line": 1}]},
            {"frames": [{"file": "y.h", "line": 3}, {"file": "x.cu", "line": 7}]}]}]}"#;
        let sources = ["x.cu".to_owned()];
        let pair = (("x.cu".to_owned(), 7), ("x.cu".to_owned(), 9));
        assert_eq!(
            parse(text, &sources).unwrap().certain,
            BTreeSet::from([pair])
        );
        assert!(parse("{}", &sources).is_err());
    }
}
