//! What became of all units: a table for people, and JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::Unit;
use super::judge::{FINDINGS, Finding};
use super::pool::Ended;

/// Findings by folder and way.
type Counts = BTreeMap<(String, &'static str), BTreeMap<Finding, usize>>;

/// All of it.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the device.
    pub device: String,
    /// Compute capability.
    pub capability: String,
    /// The CUDA version that the driver is for.
    pub driver: String,
    /// Where the driver is.
    pub driver_path: String,
    /// It is our simulated driver, and says nothing about GPUs.
    pub simulated: bool,
    /// Seconds that all units took together.
    pub seconds: f64,
    /// Counts.
    pub folders: Vec<Row>,
    /// The units that were not right, with the reason where there is one.
    pub others: Vec<Other>,
}

/// The units of one folder in one way.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The folder below `tests`.
    pub folder: String,
    /// as-written, precise or fast.
    pub way: &'static str,
    /// How many there are.
    pub units: usize,
    /// How many of each finding.
    pub findings: BTreeMap<Finding, usize>,
}

/// A unit that was not right.
#[derive(Debug, Serialize)]
pub struct Other {
    /// Its file and revision.
    pub name: String,
    /// as-written, precise or fast.
    pub way: &'static str,
    /// What became of it.
    pub finding: Finding,
    /// Why; empty where that is plain.
    pub why: String,
}

/// Counts what became of the units.
pub fn count(units: &[Unit], ended: &[Ended]) -> (Vec<Row>, Vec<Other>) {
    let mut counts = Counts::new();
    let mut others = Vec::new();
    for (unit, ended) in units.iter().zip(ended) {
        let row = counts.entry((unit.folder.clone(), unit.way.name()));
        *row.or_default().entry(ended.finding).or_default() += 1;
        if ended.finding != Finding::Right {
            others.push(Other {
                name: unit.name.clone(),
                way: unit.way.name(),
                finding: ended.finding,
                why: ended.why.clone(),
            });
        }
    }
    let rows = counts.into_iter().map(|((folder, way), findings)| Row {
        folder,
        way,
        units: findings.values().sum(),
        findings,
    });
    (rows.collect(), others)
}

/// A table in Markdown.
pub fn render(rows: &[Row]) -> String {
    let mut text = String::from("| folder | way | units |");
    FINDINGS.iter().for_each(|finding| {
        let _ = write!(text, " {finding} |");
    });
    let _ = writeln!(text, "\n|---|---|---:|{}", "---:|".repeat(FINDINGS.len()));
    for row in rows {
        let _ = write!(text, "| {} | {} | {} |", row.folder, row.way, row.units);
        for finding in FINDINGS {
            let count = row.findings.get(&finding).copied().unwrap_or(0);
            let _ = write!(text, " {count} |");
        }
        text.push('\n');
    }
    text
}
