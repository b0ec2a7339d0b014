//! Every file under `tests/`, and every program that is there to be measured, is run by somebody.

use super::Tree;
use crate::{apps, python};

/// Folder, extension, and who runs the files there.
const RUNNERS: [(&str, &str, &str); 5] = [
    ("tests/exec/", "ptx", "tools/filetests"),
    ("tests/race/", "ptx", "tools/filetests"),
    ("tests/race/", "cu", "tools/filetests"),
    ("tests/rewrite/", "ptx", "tools/filetests"),
    ("tests/syntax/", "ptx", "tools/filetests"),
];

/// Claimed in detail by its own runner's rules.
const APPS: &str = "tests/apps/";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let orphans = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with("tests/") && !file.path.starts_with(APPS));
    let orphans = orphans
        .filter(|file| !claimed(&file.path))
        .map(|file| file.path.clone());
    let mut problems: Vec<String> = orphans
        .map(|path| format!("{path}: no test runner claims this file"))
        .collect();
    for folder in [APPS, apps::MEASURED] {
        match apps::unclaimed(&tree.root.join(folder)) {
            Ok(files) => problems.extend(
                files
                    .iter()
                    .map(|path| format!("{}: no program uses this file", path.display())),
            ),
            Err(error) => problems.push(format!("{folder}: {error:#}")),
        }
    }
    problems
}

fn claimed(path: &str) -> bool {
    if let Some(name) = path.strip_prefix(python::FOLDER) {
        return python::runs(name.trim_start_matches('/'));
    }
    RUNNERS.iter().any(|(folder, extension, _)| {
        path.starts_with(folder) && path.rsplit('.').next().is_some_and(|end| end == *extension)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_nobody_runs_is_seen() {
        assert!(claimed("tests/race/gpu/x.ptx"));
        assert!(!claimed("tests/race/gpu/x.ptx.orig"));
        assert!(!claimed("tests/elsewhere/x.ptx"));
        assert!(!claimed("tests/python/x.py"));
    }
}
