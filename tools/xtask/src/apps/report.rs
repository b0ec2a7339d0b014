//! What a test wants from the tool's JSON report: which pairs of lines race.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use report::model::{Access, Level, Report};

use super::header::{self, Pair, SourceLine};

/// The part of the report that tests look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Races {
    /// Reported as certain.
    pub certain: BTreeSet<Pair>,
    /// Reported as warnings: possible, or harmless.
    pub possible: BTreeSet<Pair>,
}

/// Reads a report file about a program made of `sources`.
pub fn read(path: &Path, sources: &[String]) -> Result<Races> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text, sources).with_context(|| path.display().to_string())
}

fn parse(text: &str, sources: &[String]) -> Result<Races> {
    let report = Report::from_json(text).context("not a report of cudarun-check")?;
    let mut races = Races::default();
    let mut add = |level, accesses: &[Access; 2]| {
        let mut pair = accesses
            .each_ref()
            .map(|access| source_line(access, sources));
        pair.sort();
        let kind = match level {
            Level::Error => &mut races.certain,
            Level::Warning => &mut races.possible,
        };
        kind.insert(pair);
    };
    let counted = report.races.iter();
    for race in counted.filter(|race| race.suppressed_by.is_none()) {
        add(race.level, &race.accesses);
        // Other pairs of accesses that have the same cause.
        for other in &race.related {
            add(other.level, &other.accesses);
        }
    }
    Ok(races)
}

/// The innermost frame that is in one of the sources, and not in a header they include.
fn source_line(access: &Access, sources: &[String]) -> SourceLine {
    let frames = access.frames.iter();
    let source_lines = frames.map(|frame| {
        (
            frame.file.rsplit('/').next().unwrap_or_default(),
            frame.line,
        )
    });
    let own = source_lines
        .clone()
        .find(|(file, _)| sources.iter().any(|source| source == file));
    match own.or(source_lines.clone().next()) {
        Some((file, line)) => SourceLine {
            file: file.to_owned(),
            line,
        },
        None => header::call(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::model::{FrameAt, Race, SCHEMA_VERSION, Tool};

    #[test]
    fn the_innermost_frames_of_the_program_make_an_unordered_pair() {
        let access = |frames: &[(&str, u32)]| Access {
            frames: frames
                .iter()
                .map(|&(file, line)| FrameAt {
                    file: file.to_owned(),
                    line,
                    ..FrameAt::default()
                })
                .collect(),
            ..Access::default()
        };
        let race = Race {
            accesses: [
                access(&[("/a/b/x.cu", 9), ("y.h", 1)]),
                access(&[("y.h", 3), ("x.cu", 7)]),
            ],
            ..Race::default()
        };
        let tool = Tool {
            name: "cudarun-check".to_owned(),
            ..Tool::default()
        };
        let report = Report {
            schema_version: SCHEMA_VERSION.to_owned(),
            tool,
            races: vec![race],
            ..Report::default()
        };
        let sources = ["x.cu".to_owned()];
        let pair = [7, 9].map(|line| SourceLine {
            file: "x.cu".to_owned(),
            line,
        });
        assert_eq!(
            parse(&report.to_json(), &sources).unwrap().certain,
            BTreeSet::from([pair])
        );
        assert!(parse("{}", &sources).is_err());
    }
}
