//! What a checked process leaves behind, and what a person or a program reads of it.
//!
//! [`log`] is the format of a log, written and read by the same types. [`rules`] is the table of what can be wrong.
//! This crate is the only formatter of reports, and knows neither a device nor PTX.
//! [`Report::build`] merges the logs of all processes and schedules; [`text::render`] and
//! [`Report::to_json`] show the same facts. The JSON's schema is `docs/report.schema.json`.

mod advice;
pub mod baseline;
mod blocks;
mod build;
mod causes;
pub mod choice;
mod coverage;
mod entries;
pub mod escape;
mod excerpt;
pub mod executed;
mod failure;
mod fingerprint;
pub mod formats;
pub mod hash;
mod incomplete;
mod judges;
mod known;
mod language;
mod latency;
mod locks;
pub mod log;
mod merge;
mod misuse;
pub mod model;
pub mod names;
mod nested;
pub mod proofs;
mod remedy;
pub mod replay;
pub mod rules;
mod side;
pub mod source;
mod statement;
mod stray;
mod streams;
mod stuck;
pub mod suppressions;
pub mod text;
mod time;
mod unjudged;
mod update;
mod value;
mod verified;
pub mod words;
mod work_pairs;

pub use build::{Context, Log};
pub use coverage::left_out;
pub use model::Report;

impl Report {
    /// The report as JSON, ending in a newline.
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists always serialise.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads what [`Report::to_json`] has written, also by an older version of the same major version: it lacks
    /// fields, which are then as by default.
    ///
    /// # Errors
    /// When the text is no report, or one of another major version.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let report: Self = serde_json::from_str(text)?;
        let major = |version: &str| version.split('.').next().map(str::to_owned);
        let (found, known) = (&report.schema_version, model::SCHEMA_VERSION);
        let wrong = match report.tool.name.as_str() {
            "cudarun-check" if major(found) == major(known) => return Ok(report),
            "cudarun-check" => {
                format!("a report of schema version \"{found}\", and {known} is read")
            }
            _ => "it does not say that cudarun-check has made it (tool.name)".to_owned(),
        };
        Err(serde::de::Error::custom(wrong))
    }
}
