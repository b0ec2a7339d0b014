//! docs/instructions.md is what the code says, and nothing in it is executed that no test runs.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    filetests::instructions::page(&root().join("tests/exec")).unwrap()
}

#[test]
fn the_page_is_current() {
    let page = page();
    let current = std::fs::read_to_string(root().join("docs/instructions.md")).unwrap_or_default();
    let differs = page.lines().zip(current.lines()).find(|(a, b)| a != b);
    assert!(
        page == current,
        "run `cargo xtask instructions`: {differs:?}"
    );
}

#[test]
fn every_form_that_is_executed_is_tested() {
    let page = page();
    // A name may have bars of its own, behind a backslash; the last four cells have none.
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_suffix('|')?.rsplit('|').map(str::trim);
        let (tested, _, _, executed) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
        (executed == "yes").then_some((line, tested))
    });
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() > 1000, "{} rows", rows.len());
    let untested: Vec<_> = rows
        .iter()
        .filter(|row| row.1.is_empty())
        .map(|row| row.0)
        .collect();
    assert!(untested.is_empty(), "{}", untested.join("\n"));
}
