//! What to measure: a list of programs, or a folder of programs that somebody else has built.
//!
//! ```json
//! { "programs": [ { "name": "a", "program": "/x/a", "arguments": ["small"], "folder": "/data", "exit": 0 } ] }
//! { "folder": "/opt/rodinia/bin", "programs": { "a": ["1000"], "b": { "arguments": [], "program": "b-cuda" } } }
//! ```
//! Both may name the tool: `"tool": "/usr/bin/cudarun-check"`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// What to measure, and with which tool.
#[derive(Debug, PartialEq)]
pub(crate) struct Manifest {
    /// The cudarun-check command, unless the one on PATH is meant.
    pub(crate) tool: Option<PathBuf>,
    pub(crate) programs: Vec<Program>,
}

/// One line of the results.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    #[serde(default)]
    pub(crate) arguments: Vec<String>,
    /// Where it runs; nothing for the current folder.
    #[serde(default)]
    pub(crate) folder: Option<PathBuf>,
    /// The exit code that means success.
    #[serde(default)]
    pub(crate) exit: i32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    tool: Option<PathBuf>,
    programs: Vec<Program>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Folder {
    tool: Option<PathBuf>,
    folder: PathBuf,
    programs: BTreeMap<String, InFolder>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum InFolder {
    Arguments(Vec<String>),
    Whole(Whole),
}

/// A program of a folder. Paths are relative to the folder.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Whole {
    arguments: Vec<String>,
    /// The file, where it is not named like the program.
    program: Option<PathBuf>,
    /// Where it runs; the folder itself without it.
    folder: PathBuf,
    exit: i32,
}

/// Reads a manifest of either format; relative paths in it are relative to its own folder.
pub(crate) fn read(path: &Path) -> Result<Manifest> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let base = std::path::absolute(path)?;
    let base = base.parent().unwrap_or(Path::new("/"));
    parse(&text, base).with_context(|| format!("{} is not a manifest", path.display()))
}

fn parse(text: &str, base: &Path) -> Result<Manifest> {
    let value: serde_json::Value = serde_json::from_str(text)?;
    let manifest = match value.get("folder") {
        Some(_) => from_folder(serde_json::from_value(value)?, base),
        None => from_list(serde_json::from_value(value)?, base),
    };
    ensure!(!manifest.programs.is_empty(), "it names no program");
    Ok(manifest)
}

fn from_list(list: List, base: &Path) -> Manifest {
    let place = |program: Program| Program {
        program: base.join(&program.program),
        folder: program.folder.map(|folder| base.join(folder)),
        ..program
    };
    Manifest {
        tool: list.tool.map(|tool| base.join(tool)),
        programs: list.programs.into_iter().map(place).collect(),
    }
}

fn from_folder(given: Folder, base: &Path) -> Manifest {
    let folder = base.join(given.folder);
    let place = |(name, what): (String, InFolder)| {
        let whole = match what {
            InFolder::Whole(whole) => whole,
            InFolder::Arguments(arguments) => Whole {
                arguments,
                ..Whole::default()
            },
        };
        Program {
            program: folder.join(whole.program.unwrap_or_else(|| PathBuf::from(&name))),
            folder: Some(folder.join(whole.folder)),
            arguments: whole.arguments,
            exit: whole.exit,
            name,
        }
    };
    Manifest {
        tool: given.tool.map(|tool| base.join(tool)),
        programs: given.programs.into_iter().map(place).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Manifest> {
        parse(text, Path::new("/m"))
    }

    #[test]
    fn a_list_names_each_program() {
        let text =
            r#"{"tool": "t", "programs": [{"name": "a", "program": "/x/a", "arguments": ["1"]}]}"#;
        let manifest = read(text).unwrap();
        let a = Program {
            name: "a".into(),
            program: "/x/a".into(),
            arguments: vec!["1".into()],
            folder: None,
            exit: 0,
        };
        assert_eq!(manifest.tool, Some("/m/t".into()));
        assert_eq!(manifest.programs, [a]);
    }

    #[test]
    fn a_folder_holds_programs_by_name() {
        let text = r#"{"folder": "bin", "programs": {
            "b": {"program": "b-cuda", "folder": "../data", "exit": 3}, "a": ["1", "2"]}}"#;
        let manifest = read(text).unwrap();
        let [a, b] = &manifest.programs[..] else {
            panic!("two programs")
        };
        assert_eq!(
            (&a.program, a.arguments.len()),
            (&PathBuf::from("/m/bin/a"), 2)
        );
        assert_eq!(a.folder, Some("/m/bin/".into()));
        assert_eq!((&b.program, b.exit), (&PathBuf::from("/m/bin/b-cuda"), 3));
        assert_eq!(b.folder, Some("/m/bin/../data".into()));
        assert_eq!(manifest.tool, None);
    }

    #[test]
    fn the_examples_of_the_documents_are_manifests() {
        let text = include_str!("../../docs/benchmarks.md");
        let blocks = text.split("```json\n").skip(1);
        let examples: Vec<&str> = blocks.filter_map(|rest| rest.split("```").next()).collect();
        assert_eq!(examples.len(), 2);
        for example in examples {
            read(example).unwrap();
        }
    }

    #[test]
    fn what_is_no_manifest_is_an_error() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"programs": []}"#,
            r#"{"programs": [{"name": "a"}]}"#,
            r#"{"programs": [{"name": "a", "program": "a", "argumnets": []}]}"#,
            r#"{"folder": "x", "programs": {"a": 1}}"#,
            r#"{"folder": 1, "programs": {}}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
