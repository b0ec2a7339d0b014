//! Which crate uses which: the table of ARCHITECTURE.md, held against the manifests, in both directions.
//!
//! A crate uses crates of lower lines only; what tests use besides is a column of its own.

use std::collections::BTreeSet;
use std::path::Path;

use super::Tree;
use crate::workspace::{Dependency, Package, Workspace};

const TABLE: &str = "ARCHITECTURE.md";
/// How the table begins.
const HEAD: &str = "| crate | uses | in tests also |";

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    line: usize,
    folder: &'a str,
    uses: BTreeSet<&'a str>,
    tests: BTreeSet<&'a str>,
}

/// A crate, by its folder, and the crates of this workspace that its manifest names.
#[derive(Debug)]
struct Crate<'a> {
    folder: String,
    name: &'a str,
    uses: BTreeSet<&'a str>,
    tests: BTreeSet<&'a str>,
}

pub(super) fn check(workspace: &Workspace, tree: &Tree) -> Vec<String> {
    let table = tree.files.iter().find(|file| file.path == TABLE);
    let rows: Vec<Row<'_>> = table.map_or(Vec::new(), |file| {
        file.lines()
            .filter_map(|(line, text)| row(line, text))
            .collect()
    });
    let crates = workspace.packages.iter();
    let crates: Vec<Crate<'_>> = crates.map(|of| used(of, &workspace.root)).collect();
    let mut problems = compare(&rows, &crates);
    for (package, of) in workspace.packages.iter().zip(&crates) {
        problems.extend(unused(package, &of.folder, tree));
    }
    problems
}

/// Dependencies that no Rust file of the crate names. Libraries of `host/shim` are loaded, and need no name.
fn unused(package: &Package, folder: &str, tree: &Tree) -> Vec<String> {
    let inside = format!("{folder}/");
    let files = tree.with_extension("rs");
    let texts: Vec<&str> = files
        .filter(|file| file.path.starts_with(&inside))
        .map(|file| file.text.as_str())
        .collect();
    let names = |name: &str| {
        let name = name.replace('-', "_");
        let paths = [format!("{name}::"), format!("extern crate {name}")];
        let is_path = |text: &str, path: &str| {
            let mut found = text.match_indices(path);
            found.any(|(at, _)| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        };
        let mut texts = texts.iter();
        texts.any(|text| paths.iter().any(|path| is_path(text, path)))
    };
    let named = package
        .dependencies
        .iter()
        .filter(|of| !of.name.starts_with("shim-"));
    let unused = named.filter(|of| !names(&of.name));
    let problem = |of: &Dependency| format!("{folder}/Cargo.toml: {} is not used", of.name);
    unused.map(problem).collect()
}

fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let text = text.strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = text.split('|').map(str::trim).collect();
    let [folder, uses, tests, _] = cells[..] else {
        return None;
    };
    let folder = folder.strip_prefix('`')?.strip_suffix('`')?;
    let names = |cell: &'_ str| -> Vec<(usize, usize)> {
        let marks: Vec<usize> = cell.match_indices('`').map(|(at, _)| at).collect();
        marks
            .chunks_exact(2)
            .map(|ends| (ends[0] + 1, ends[1]))
            .collect()
    };
    Some(Row {
        line,
        folder,
        uses: names(uses)
            .into_iter()
            .map(|(from, to)| &uses[from..to])
            .collect(),
        tests: names(tests)
            .into_iter()
            .map(|(from, to)| &tests[from..to])
            .collect(),
    })
}

fn used<'a>(package: &'a Package, root: &Path) -> Crate<'a> {
    let folder = package.manifest_path.parent().unwrap_or(root);
    let folder = folder.strip_prefix(root).unwrap_or(folder);
    let inside = package.dependencies.iter().filter(|of| of.path.is_some());
    let (tests, uses): (BTreeSet<_>, BTreeSet<_>) = (
        inside
            .clone()
            .filter(|of| of.kind.as_deref() == Some("dev"))
            .map(|of| of.name.as_str())
            .collect(),
        inside
            .filter(|of| of.kind.as_deref() != Some("dev"))
            .map(|of| of.name.as_str())
            .collect(),
    );
    Crate {
        folder: folder.to_string_lossy().into_owned(),
        name: &package.name,
        tests: tests.difference(&uses).copied().collect(),
        uses,
    }
}

fn compare(rows: &[Row<'_>], crates: &[Crate<'_>]) -> Vec<String> {
    let mut problems = Vec::new();
    if rows.is_empty() {
        problems.push(format!("{TABLE}: no table that begins with `{HEAD}`"));
    }
    let of = |row: &Row<'_>| crates.iter().find(|of| of.folder == row.folder);
    for of in crates {
        if !rows.iter().any(|row| row.folder == of.folder) {
            problems.push(format!("{TABLE}: crate {} is not in the table", of.folder));
        }
    }
    // The crates of the lines so far: none of those below may use them.
    let mut above = BTreeSet::new();
    for row in rows {
        let place = format!("{TABLE}:{}", row.line);
        let Some(of) = of(row) else {
            problems.push(format!("{place}: there is no crate {}", row.folder));
            continue;
        };
        above.insert(of.name);
        for (what, said, done) in [
            ("uses", &row.uses, &of.uses),
            ("uses in tests", &row.tests, &of.tests),
        ] {
            let missing = done.difference(said);
            problems.extend(missing.map(|to| {
                format!(
                    "{place}: {} {what} {to}, which the table does not say",
                    of.name
                )
            }));
            let surplus = said.difference(done);
            problems.extend(surplus.map(|to| format!("{place}: {} does not use {to}", of.name)));
        }
        let upwards = of.uses.intersection(&above);
        problems.extend(upwards.map(|to| {
            format!(
                "{place}: {} must not use {to}, which is not on a lower line",
                of.name
            )
        }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn krate<'a>(name: &'a str, uses: &[&'a str], tests: &[&'a str]) -> Crate<'a> {
        Crate {
            folder: format!("host/{name}"),
            name,
            uses: uses.iter().copied().collect(),
            tests: tests.iter().copied().collect(),
        }
    }

    fn rows() -> Vec<Row<'static>> {
        let lines = [
            HEAD,
            "|---|---|---|---|",
            "| `host/top` | `mid`, `low` | `side` | it is above |",
            "| `host/side` | | | beside |",
            "| `host/mid` | `low` | | it is between |",
            "| `host/low` | | | it is below |",
        ];
        lines
            .into_iter()
            .zip(1..)
            .filter_map(|(text, line)| row(line, text))
            .collect()
    }

    fn crates() -> [Crate<'static>; 4] {
        [
            krate("top", &["mid", "low"], &["side"]),
            krate("side", &[], &[]),
            krate("mid", &["low"], &[]),
            krate("low", &[], &[]),
        ]
    }

    #[test]
    fn a_table_that_says_what_is_has_no_problem() {
        assert_eq!(rows().len(), 4);
        assert_eq!(compare(&rows(), &crates()), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_too_many_or_too_few_or_upwards_is_seen() {
        let mut all = crates();
        all[2].uses.insert("side");
        let problems = compare(&rows(), &all);
        assert!(
            problems[0].contains("uses side, which the table does not say"),
            "{problems:?}"
        );
        assert!(problems[1].contains("must not use side"), "{problems:?}");
        let mut all = crates();
        all[0].tests.clear();
        assert!(compare(&rows(), &all)[0].contains("does not use side"));
        let more = crates().into_iter().chain([krate("new", &[], &[])]);
        assert!(compare(&rows(), &more.collect::<Vec<_>>())[0].contains("is not in the table"));
        assert!(!compare(&[], &[]).is_empty());
        let gone = &crates()[1..];
        assert!(compare(&rows(), gone)[0].contains("there is no crate host/top"));
    }
}
