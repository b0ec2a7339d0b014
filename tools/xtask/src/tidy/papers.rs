//! What documents promise: paths exist, generated files say so.

use super::{File, Tree};

/// The first line of a generated file holds this; whether the sentence begins here does not matter.
const MARKER: &str = "enerated by `cargo xtask";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for file in tree.with_extension("md") {
        for (line, text) in file.lines() {
            let missing = paths(text, tree).filter(|path| !tree.root.join(path).exists());
            let folder = tree.root.join(&file.path);
            let broken = links(text).filter(|link| !folder.with_file_name(link).exists());
            let both = missing.chain(broken);
            problems.extend(both.map(|path| format!("{}:{line}: no such path: {path}", file.path)));
        }
    }
    for file in tree.files.iter().filter(|file| is_generated(&file.path)) {
        if !file
            .text
            .lines()
            .next()
            .is_some_and(|first| first.contains(MARKER))
        {
            problems.push(format!(
                "{}: the first line does not say that it is g{MARKER} …`",
                file.path
            ));
        }
    }
    problems.extend(machine_paths(tree));
    problems
}

/// The rule's PTX, and the PTX of `.cu` tests.
fn is_generated(path: &str) -> bool {
    path.ends_with(".cu.ptx") || (path.starts_with("device/") && path.ends_with(".ptx"))
}

/// The paths in backticks of a line that mean a place in this repository: those that begin with something in its root.
fn paths<'a>(line: &'a str, tree: &'a Tree) -> impl Iterator<Item = &'a str> {
    line.split('`').skip(1).step_by(2).filter(|path| {
        let first = path.split('/').next().unwrap_or_default();
        let plain = path
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        let in_root = tree
            .files
            .iter()
            .any(|file| file.path.split('/').next() == Some(first));
        plain && path.contains('/') && in_root
    })
}

/// The files that a line links to, relative to its own.
pub(crate) fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

/// Files with a path of the machine that somebody worked on, each with its first one.
fn machine_paths(tree: &Tree) -> impl Iterator<Item = String> {
    let homes = [
        format!("/{}/", "work"),
        format!("/{}/", "root"),
        format!("/{}/", "home"),
    ];
    tree.files.iter().filter_map(move |file: &File| {
        let (line, _) = file
            .lines()
            .find(|(_, text)| homes.iter().any(|home| starts_path(text, home)))?;
        Some(format!(
            "{}:{line}: a path of somebody's machine",
            file.path
        ))
    })
}

/// Whether `prefix` begins an absolute path somewhere in `text`.
fn starts_path(text: &str, prefix: &str) -> bool {
    text.match_indices(prefix).any(|(at, _)| {
        !text[..at].ends_with(|before: char| before.is_alphanumeric() || "_-./}>*".contains(before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let file = File {
            path: "docs/glossary.md".to_owned(),
            text: String::new(),
        };
        Tree {
            root: std::path::PathBuf::new(),
            files: vec![file],
        }
    }

    #[test]
    fn only_paths_of_this_repository_are_looked_up() {
        let tree = tree();
        let found: Vec<&str> =
            paths("see `docs/x.md`, `ld.global`, `docs` and `a/b`", &tree).collect();
        assert_eq!(found, ["docs/x.md"]);
        let found: Vec<&str> =
            links("[y](y.md#part), [z](https://z.org/) and [here](#there)").collect();
        assert_eq!(found, ["y.md"]);
    }

    #[test]
    fn an_absolute_path_is_told_from_a_relative_one() {
        let home = format!("/{}/", "root");
        assert!(starts_path(&format!("in {home}x"), &home));
        assert!(!starts_path(&format!("in tests{home}x"), &home));
    }
}
