//! Each form of help in `docs/advice.md` is one that the test beside it states.

use super::Tree;

const TABLE: &str = "docs/advice.md";
/// What stands for places, names and the rest of a sentence.
const ANYTHING: char = '…';

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let Some(table) = tree.files.iter().find(|file| file.path == TABLE) else {
        return vec![format!("{TABLE}: missing")];
    };
    let mut problems = Vec::new();
    for (line, text) in table.lines() {
        let Some((help, test)) = row(text) else {
            continue;
        };
        let file = tree.files.iter().find(|file| file.path == test);
        if !file.is_some_and(|file| file.text.lines().any(|line| states(line, help))) {
            problems.push(format!("{TABLE}:{line}: {test} does not state this help"));
        }
    }
    problems
}

/// The help and the test of a row.
fn row(line: &str) -> Option<(&str, &str)> {
    let (help, test) = line.strip_prefix("| ")?.rsplit_once(" | `")?;
    Some((help, test.strip_suffix("` |")?))
}

/// Whether a line of a test has the parts of a help, in their order.
fn states(line: &str, help: &str) -> bool {
    let mut left = line;
    help.split(ANYTHING).all(|part| {
        let part = part.trim();
        let found = left.find(part);
        left = found.map_or(left, |at| &left[at + part.len()..]);
        found.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_held_against_its_test() {
        let (help, test) = row("| put `a()` after … first | `tests/x.cu` |").unwrap();
        assert_eq!((help, test), ("put `a()` after … first", "tests/x.cu"));
        assert_eq!(row("| help | test |"), None);
        assert!(states("//@ help: put `a()` after x.cu:3, first", help));
        assert!(!states("//@ help: first put `a()` after x.cu:3", help));
    }
}
