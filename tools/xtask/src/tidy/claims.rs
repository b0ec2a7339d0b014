//! Every file under `tests/`, and every program that is there to be measured, is run by somebody.

use std::path::Path;

use anyhow::{Context, Result};

use super::Tree;
use crate::{apps, python};

/// A folder of which a runner runs every file with one extension, subfolders included, and nothing else.
struct Runner {
    folder: &'static str,
    extension: &'static str,
}

/// What `tools/filetests` runs.
const RUNNERS: [Runner; 2] = [
    Runner {
        folder: "tests/exec/",
        extension: "ptx",
    },
    Runner {
        folder: "tests/race/",
        extension: "ptx",
    },
];

/// Claimed in detail by its own runner's rules.
const APPS: &str = "tests/apps/";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = match files_below(&tree.root, "tests/") {
        Ok(files) => unrun(&files),
        Err(error) => vec![format!("tests/: {error:#}")],
    };
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

/// The paths of all files below a folder, whatever they hold, relative to the root.
fn files_below(root: &Path, folder: &str) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let entries =
        std::fs::read_dir(root.join(folder)).with_context(|| format!("cannot read {folder}"))?;
    for entry in entries {
        let entry = entry?;
        let path = format!("{folder}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files.extend(files_below(root, &format!("{path}/"))?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The problems of a list of files: those that nothing runs, and runners with nothing to run.
fn unrun(files: &[String]) -> Vec<String> {
    let strays = files
        .iter()
        .filter(|path| !path.starts_with(APPS) && !claimed(path))
        .map(|path| format!("{path}: no test runner claims this file"));
    let idle = RUNNERS
        .iter()
        .filter(|runner| !files.iter().any(|path| runner.runs(path)))
        .map(|runner| {
            let Runner { folder, extension } = runner;
            format!("{folder}: its runner finds no .{extension} file here")
        });
    strays.chain(idle).collect()
}

fn claimed(path: &str) -> bool {
    if let Some(name) = path.strip_prefix(python::FOLDER) {
        return python::runs(name.trim_start_matches('/'));
    }
    RUNNERS.iter().any(|runner| runner.runs(path))
}

impl Runner {
    fn runs(&self, path: &str) -> bool {
        let extension = Path::new(path).extension();
        path.starts_with(self.folder) && extension.is_some_and(|end| end == self.extension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree that [`check`] sees, with one file more.
    fn with_stray(path: &str, contents: &[u8]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for path in ["tests/exec/a.ptx", "tests/race/gpu/b.ptx"] {
            write(root.path(), path, b"");
        }
        assert_eq!(
            unrun(&files_below(root.path(), "tests/").unwrap()),
            Vec::<String>::new()
        );
        write(root.path(), path, contents);
        unrun(&files_below(root.path(), "tests/").unwrap())
    }

    fn write(root: &Path, path: &str, contents: &[u8]) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    #[test]
    fn a_file_that_no_runner_reads_is_a_problem() {
        for path in [
            "tests/stray.ptx",
            "tests/race/gpu/x.cu",
            "tests/race/gpu/x.ptx.orig",
            "tests/race/ptx",
            "tests/rewrite/x.ptx",
            "tests/syntax/ok/x.ptx",
            "tests/python/x.py",
        ] {
            let problem = format!("{path}: no test runner claims this file");
            assert_eq!(with_stray(path, b""), [problem]);
        }
        // Nor is one overlooked because it is not text.
        assert_eq!(with_stray("tests/exec/x.cubin", b"\x7fELF\xff").len(), 1);
        assert!(with_stray("tests/race/warp/x.ptx", b"").is_empty());
    }

    #[test]
    fn a_runner_without_files_is_a_problem() {
        let files = ["tests/exec/a.ptx".to_owned()];
        let problem = "tests/race/: its runner finds no .ptx file here".to_owned();
        assert_eq!(unrun(&files), [problem]);
    }
}
