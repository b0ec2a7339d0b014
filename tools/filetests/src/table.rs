//! The verdicts of every oracle over `tests/race`, counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::header::{self, Case};
use crate::race::{self, ORACLES, Verdict};

/// What became of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    RightRace,
    RightNoRace,
    Undecided,
    NotChecked,
    Stated,
    Failed,
}

const COLUMNS: [(Column, &str); 6] = [
    (Column::RightRace, "race, and there is one"),
    (Column::RightNoRace, "no race, and there is none"),
    (Column::Undecided, "undecided"),
    (Column::NotChecked, "not checked"),
    (Column::Stated, "wrong, as the file states"),
    (Column::Failed, "wrong otherwise"),
];

type Counts = BTreeMap<(usize, String), BTreeMap<Column, u32>>;

/// Runs every case of `files`, which lie below `root`, and gives a table in Markdown.
///
/// # Errors
/// When a file cannot be read, or its header makes no sense.
pub fn of(root: &Path, files: &[PathBuf]) -> Result<String> {
    let mut cases = Vec::new();
    for path in files {
        let inside = path.strip_prefix(root)?;
        let folder = inside.parent().unwrap_or(inside).display().to_string();
        let text = std::fs::read_to_string(path)?;
        let all = header::cases(&text).with_context(|| path.display().to_string())?;
        cases.extend(all.into_iter().map(|case| (folder.clone(), case)));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<Result<Counts>> = std::thread::scope(|scope| {
        let share = |first: usize| cases.iter().skip(first).step_by(cores);
        let threads: Vec<_> = (0..cores)
            .map(|first| scope.spawn(move || count(share(first))))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Counts>>| {
            let panicked = |_| Err(anyhow::anyhow!("a case panicked"));
            thread.join().unwrap_or_else(panicked)
        };
        threads.into_iter().map(join).collect()
    });
    let mut counts = Counts::new();
    for part in parts {
        for (row, columns) in part? {
            for (column, count) in columns {
                *counts
                    .entry(row.clone())
                    .or_default()
                    .entry(column)
                    .or_default() += count;
            }
        }
    }
    Ok(write(&counts))
}

fn count<'a>(cases: impl Iterator<Item = &'a (String, Case)>) -> Result<Counts> {
    let mut counts = Counts::new();
    for (folder, case) in cases {
        for (number, oracle) in ORACLES.into_iter().enumerate() {
            let truth = race::expected(case)?;
            let stated = case.get(&format!("expect({})", oracle.name)).is_some();
            let column = match race::verdict(case, oracle) {
                Ok(_) if stated => Column::Stated,
                Ok(Verdict::Undecided) => Column::Undecided,
                Ok(Verdict::NotChecked) => Column::NotChecked,
                Ok(Verdict::Race) if truth == Verdict::Race => Column::RightRace,
                Ok(Verdict::NoRace) if truth == Verdict::NoRace => Column::RightNoRace,
                _ => Column::Failed,
            };
            let row = counts.entry((number, folder.clone())).or_default();
            *row.entry(column).or_default() += 1;
        }
    }
    Ok(counts)
}

fn write(counts: &Counts) -> String {
    let mut text = String::from("| oracle | folder | cases |");
    COLUMNS.iter().for_each(|(_, title)| {
        let _ = write!(text, " {title} |");
    });
    text.push_str("\n|---|---|---:|");
    text.push_str(&"---:|".repeat(COLUMNS.len()));
    text.push('\n');
    for (number, oracle) in ORACLES.iter().enumerate() {
        let rows = counts.iter().filter(|((of, _), _)| *of == number);
        let folders: BTreeSet<_> = rows
            .map(|((_, folder), row)| (folder.as_str(), row))
            .collect();
        let mut all: BTreeMap<Column, u32> = BTreeMap::new();
        for (folder, row) in folders {
            line(&mut text, oracle.name, folder, row);
            for (column, count) in row {
                *all.entry(*column).or_default() += count;
            }
        }
        line(&mut text, oracle.name, "**all**", &all);
    }
    text
}

fn line(text: &mut String, oracle: &str, folder: &str, row: &BTreeMap<Column, u32>) {
    let cases: u32 = row.values().sum();
    let _ = write!(text, "| {oracle} | {folder} | {cases} |");
    for (column, _) in COLUMNS {
        let _ = write!(text, " {} |", row.get(&column).copied().unwrap_or(0));
    }
    text.push('\n');
}
