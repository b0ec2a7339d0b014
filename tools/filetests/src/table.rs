//! What every oracle says of the files of `tests/race`, and what `verify` answers for kernels like those of papers, counted
//! from what the files state.
//!
//! The tests run each case and hold the statements (`race`), so nothing has to be run to count them.

mod published;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::files;
use crate::header::{self, Case, Class};
use crate::race::{self, ORACLES, Verdict, Warned};

/// A revision of a file.
#[derive(Debug)]
struct Entry {
    /// The folder below `tests/race`.
    folder: String,
    /// Name of the file.
    file: String,
    case: Case,
}

/// A part of a page, between two markers.
#[derive(Debug)]
pub struct Section {
    /// What the markers call it.
    pub name: &'static str,
    /// What is generated.
    pub text: String,
}

/// A page with sections that are generated.
#[derive(Debug)]
pub struct Page {
    /// Its path below the workspace.
    pub path: &'static str,
    /// Its sections.
    pub sections: Vec<Section>,
}

/// The pages with what is counted in a folder of race tests.
///
/// # Errors
/// When a file cannot be read, or its header makes no sense.
pub fn pages(root: &Path) -> Result<[Page; 2]> {
    let mut entries = Vec::new();
    for path in files::below(root, "ptx")? {
        let inside = path.strip_prefix(root)?;
        let folder = inside.parent().unwrap_or(inside).display().to_string();
        let file = inside.with_extension("").display().to_string();
        let text = std::fs::read_to_string(&path)?;
        let all = header::cases(&text).with_context(|| path.display().to_string())?;
        entries.extend(all.into_iter().map(|case| Entry {
            folder: folder.clone(),
            file: file.clone(),
            case,
        }));
    }
    let section = |name, text| Section { name, text };
    Ok([
        Page {
            path: "docs/verdicts.md",
            sections: vec![
                section("verdicts", verdicts(&entries)?),
                section("warnings", warnings(&entries)?),
            ],
        },
        Page {
            path: "docs/verify.md",
            sections: vec![
                section("hgrd", published::kernels(&entries, "hgrd")?),
                section("ila", published::ila(&entries)?),
            ],
        },
    ])
}

/// A page with the sections put in between the markers of `cargo xtask verdicts`.
///
/// # Errors
/// When a marker is missing.
pub fn put_in(page: &str, sections: &[Section]) -> Result<String> {
    put_in_by("verdicts", page, sections)
}

/// A page with the sections put in between the markers of a command of `cargo xtask`.
///
/// # Errors
/// When a marker is missing.
pub fn put_in_by(command: &str, page: &str, sections: &[Section]) -> Result<String> {
    let mut page = page.to_owned();
    for Section { name, text } in sections {
        let (start, end) = (
            format!("<!-- {name}: cargo xtask {command} -->\n"),
            format!("<!-- end of {name} -->"),
        );
        let missing = || format!("no section {name}");
        let from = page.find(&start).with_context(missing)? + start.len();
        let length = page[from..].find(&end).with_context(missing)?;
        page.replace_range(from..from + length, text);
    }
    Ok(page)
}

/// What becomes of a case.
const COLUMNS: [&str; 5] = [
    "race, and there is one",
    "no race, and there is none",
    "undecided",
    "not checked",
    "wrong",
];

fn column(case: &Case, oracle: race::Oracle) -> Result<usize> {
    let truth = race::expected(case)?;
    Ok(match race::claimed(case, oracle)? {
        Verdict::Undecided => 2,
        Verdict::NotChecked => 3,
        verdict if verdict != truth => 4,
        Verdict::Race => 0,
        Verdict::NoRace => 1,
    })
}

fn verdicts(entries: &[Entry]) -> Result<String> {
    let mut text = format!("| oracle | folder | cases | {} |\n", COLUMNS.join(" | "));
    text.push_str(&format!(
        "|---|---|---:|{}\n",
        "---:|".repeat(COLUMNS.len())
    ));
    for oracle in ORACLES {
        let mut rows: BTreeMap<&str, [u32; 5]> = BTreeMap::new();
        let mut all = [0; 5];
        for entry in entries {
            let column = column(&entry.case, oracle)?;
            rows.entry(&entry.folder).or_default()[column] += 1;
            all[column] += 1;
        }
        for (folder, row) in rows.into_iter().chain([("**all**", all)]) {
            let cases: u32 = row.iter().sum();
            let cells = row.map(|count| count.to_string()).join(" | ");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "| {} | {folder} | {cases} | {cells} |", oracle.name);
        }
    }
    Ok(text)
}

/// Kinds of programs, by a piece of the path of a file; the first that fits counts.
const KINDS: [(&str, &str); 10] = [
    ("cluster/", "barriers of a cluster"),
    ("seqlock", "versions, lock-free stacks"),
    ("stack", "versions, lock-free stacks"),
    ("last_b", "last blocks, barriers of the grid"),
    ("grid_barrier", "last blocks, barriers of the grid"),
    ("spin_barrier", "last blocks, barriers of the grid"),
    ("lock", "locks"),
    ("warp/", "masks of a warp"),
    ("cta/", "barriers of a block"),
    ("", "flags, fences and no order at all"),
];

fn warnings(entries: &[Entry]) -> Result<String> {
    let mut text = String::from(
        "| programs | warning | cases | `precise` | `as-gpu` | `as-gpu`, some | `as-gpu`, silent | not checked | `fast` |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut rows: BTreeMap<(&str, &str), [u32; 7]> = BTreeMap::new();
    for entry in entries {
        let marks = &entry.case.marks;
        let kind = KINDS.iter().find(|(word, _)| entry.file.contains(word));
        let kind = kind.map_or("", |(_, kind)| kind);
        for (class, rule) in [(Class::Strong, "CR011"), (Class::Predictive, "CR012")] {
            if !marks.iter().any(|mark| mark.class == class)
                || race::expected(&entry.case)? == Verdict::Race
            {
                continue;
            }
            let [precise, journal, fast] = ORACLES.map(|oracle| race::warns(&entry.case, oracle));
            let row = rows.entry((kind, rule)).or_default();
            row[0] += 1;
            row[1] += u32::from(precise? == Some(Warned::All));
            row[match journal? {
                Some(Warned::All) => 2,
                Some(Warned::Some) => 3,
                Some(Warned::Silent) => 4,
                None => 5,
            }] += 1;
            row[6] += u32::from(fast?.is_some_and(|warned| warned != Warned::Silent));
        }
    }
    for ((kind, rule), row) in rows {
        let cells = row.map(|count| count.to_string()).join(" | ");
        let _ = writeln!(text, "| {kind} | {rule} | {cells} |");
    }
    Ok(text)
}
