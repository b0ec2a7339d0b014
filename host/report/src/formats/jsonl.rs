//! A line of JSON for each race, as it is found, and one for the run in the end.
//!
//! The types are those of the JSON report. A race's line has the counts and launches so far; races of one cause become
//! one entry of the report at the end.

use std::collections::HashSet;

use serde::Serialize;

use crate::Report;
use crate::model::{
    Coverage, Failure, Race, Run, SCHEMA_VERSION, Stats, Stray, Summary, Suppression, Tool,
    Verified,
};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Race {
        race: &'a Race,
    },
    Summary {
        schema_version: &'a str,
        tool: &'a Tool,
        run: &'a Run,
        summary: &'a Summary,
        coverage: &'a Coverage,
        suppressions: &'a [Suppression],
        failures: &'a [Failure],
        out_of_bounds: &'a [Stray],
        verified: &'a [Verified],
        notes: &'a [String],
        stats: &'a Stats,
    },
}

impl Line<'_> {
    fn text(&self) -> String {
        // Strings, numbers and lists always serialise.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// What has been reported of a run.
#[derive(Debug, Default)]
pub struct ReportedRaces {
    /// Fingerprints of races.
    races: HashSet<String>,
}

impl ReportedRaces {
    /// The lines of those races that have none yet.
    pub fn races(&mut self, report: &Report) -> String {
        let new = report.races.iter();
        let new = new.filter(|race| self.races.insert(race.fingerprint.clone()));
        new.map(|race| Line::Race { race }.text()).collect()
    }

    /// All lines that are left when the run is over.
    pub fn rest(&mut self, report: &Report) -> String {
        let Report {
            schema_version: _,
            tool,
            run,
            summary,
            coverage,
            races: _,
            suppressions,
            failures,
            out_of_bounds,
            verified,
            notes,
            stats,
        } = report;
        let last = Line::Summary {
            schema_version: SCHEMA_VERSION,
            tool,
            run,
            summary,
            coverage,
            suppressions,
            failures,
            out_of_bounds,
            verified,
            notes,
            stats,
        };
        self.races(report) + &last.text()
    }
}
