//! Properties of the source tree that the compiler does not check; also a test (`tests/tree.rs`).
//!
//! [`arrows`]: which crate may use which. [`sources`]: what Rust files may hold. [`papers`]: what documents promise.
//! [`claims`]: every file under `tests/` belongs to a runner.
//! [`linked`]: every Rust file of a crate's tests is in a test program.
//! [`advice`]: each form of help has a test.

mod advice;
mod arrows;
mod claims;
mod linked;
pub(crate) mod papers;
mod sources;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Prints every problem; true when there is none.
pub fn run(workspace: &Workspace) -> Result<bool> {
    let tree = Tree::read(&workspace.root, &workspace.target)?;
    for warning in sources::warnings(&tree) {
        println!("warning: {warning}");
    }
    let problems = check(workspace)?;
    problems.iter().for_each(|problem| println!("{problem}"));
    println!("tidy: {} problems", problems.len());
    Ok(problems.is_empty())
}

/// Every problem, each one line that starts with the file it is in.
pub fn check(workspace: &Workspace) -> Result<Vec<String>> {
    let tree = Tree::read(&workspace.root, &workspace.target)?;
    let mut problems = arrows::check(workspace, &tree);
    problems.extend(sources::check(&tree));
    problems.extend(papers::check(&tree));
    problems.extend(claims::check(&tree));
    problems.extend(linked::check(&tree));
    problems.extend(advice::check(&tree));
    problems.sort();
    Ok(problems)
}

/// The text files of the repository.
struct Tree {
    root: PathBuf,
    files: Vec<File>,
}

struct File {
    /// Relative to the root.
    path: String,
    text: String,
}

impl Tree {
    fn read(root: &Path, target: &Path) -> Result<Tree> {
        let mut tree = Tree {
            root: root.to_path_buf(),
            files: Vec::new(),
        };
        tree.visit(root, target)?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn visit(&mut self, folder: &Path, target: &Path) -> Result<()> {
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path == target || name == ".git" || name == "target" {
                continue;
            }
            if path.is_dir() {
                self.visit(&path, target)?;
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = path
                    .strip_prefix(&self.root)?
                    .to_string_lossy()
                    .into_owned();
                self.files.push(File { path, text });
            }
        }
        Ok(())
    }

    fn with_extension<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = &'a File> {
        self.files
            .iter()
            .filter(move |file| file.path.rsplit('.').next() == Some(extension))
    }
}

impl File {
    /// The lines with their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }
}
