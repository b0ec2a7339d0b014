//! What Rust files may hold, apart from what the lints say.

use std::collections::BTreeSet;

use super::{File, Tree};

/// Longer files want to be split along ideas.
const LONG_FILE: usize = 1000;

/// Where `unsafe` is at home.
/// The rule's source for the GPU reaches memory through pointers, and is never part of a host program.
const UNSAFE_FOLDERS: [&str; 4] = [
    "host/driver/",
    "host/os/",
    "host/shim/",
    "device/src/kernel/",
];

/// What cargo, and so clippy, does not compile: here this file asks for the reasons of `unsafe` blocks.
const WITHOUT_CLIPPY: &str = "device/src/kernel/";

/// Crates that run test files: they must not know them by name.
const RUNNERS: [&str; 3] = ["tools/filetests/", "tools/xtask/", "tools/cli/tests/"];

/// Never written; in two pieces, so that this file does not complain about itself.
const BANNED: [(&str, &str); 5] = [
    ("#[ign", "ore"),
    ("FIX", "ME"),
    ("dbg", "!("),
    ("todo", "!("),
    ("unimplemented", "!("),
];

/// What is no problem, and yet may deserve a look.
pub(super) fn warnings(tree: &Tree) -> Vec<String> {
    let files = tree.with_extension("rs").filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > LONG_FILE)
            .then(|| format!("{}: {lines} lines; split it where ideas part", file.path))
    });
    files.collect()
}

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let kernels = test_kernels(tree);
    for file in tree.with_extension("rs") {
        if !file.text.trim_start().starts_with("//!") {
            problems.push(format!(
                "{}: does not open with what it is (`//!`)",
                file.path
            ));
        }
        if file.path.starts_with(WITHOUT_CLIPPY) {
            let lines = without_reason(&file.text).into_iter();
            problems.extend(lines.map(|line| {
                let path = &file.path;
                format!("{path}:{line}: an `unsafe` block without a `SAFETY` line above it")
            }));
        }
        for (line, text) in file.lines() {
            problems.extend(
                line_problems(file, text, &kernels)
                    .map(|what| format!("{}:{line}: {what}", file.path)),
            );
        }
    }
    problems
}

fn line_problems<'a>(
    file: &'a File,
    text: &'a str,
    kernels: &'a BTreeSet<String>,
) -> impl Iterator<Item = String> + 'a {
    let banned = BANNED
        .iter()
        .map(|(a, b)| format!("{a}{b}"))
        .filter(|word| text.contains(word.as_str()));
    let banned = banned.map(|word| format!("`{word}`"));
    let at_home = UNSAFE_FOLDERS
        .iter()
        .any(|folder| file.path.starts_with(folder));
    let code = text.split("//").next().unwrap_or_default();
    let is_unsafe = ["{", "fn", "impl", "extern"]
        .iter()
        .any(|next| code.contains(&format!("{} {next}", "unsafe")));
    let is_unsafe = (is_unsafe && !at_home)
        .then(|| "`unsafe` outside host/driver, host/os and host/shim".to_owned());
    let runs_tests = RUNNERS.iter().any(|folder| file.path.starts_with(folder));
    let literals = text
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(move |literal| runs_tests && kernels.contains(*literal));
    let named = literals.map(|literal| format!("names the test kernel `{literal}`"));
    banned.chain(is_unsafe).chain(named)
}

/// The lines, from 1, that open an `unsafe` block without a comment right above that says why it is sound.
fn without_reason(text: &str) -> Vec<usize> {
    let opens = format!("{} {{", "unsafe");
    let mut without = Vec::new();
    let mut reason = false;
    for (index, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("//") {
            Some(comment) => reason |= comment.trim_start().starts_with("SAFETY: "),
            None => {
                if line.contains(&opens) && !reason {
                    without.push(index + 1);
                }
                reason = false;
            }
        }
    }
    without
}

/// The kernels of the files under `tests/`, as far as their names are not everyday words.
fn test_kernels(tree: &Tree) -> BTreeSet<String> {
    let tests = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with("tests/"));
    let names = tests.flat_map(|file| file.text.lines()).filter_map(|line| {
        let after = line
            .split_once(".entry ")
            .or_else(|| line.split_once("__global__ void "))?
            .1;
        let name: String = after
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        Some(name)
    });
    // A literal "op" or "check" says nothing about a kernel.
    names.filter(|name| name.len() >= 6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_wants_its_own_reason() {
        let block = format!("let x = {} {{ y }};", "unsafe");
        let text = format!("// SAFETY: fine,\n// it is.\n{block}\n{block}\n// Why not.\n{block}\n");
        assert_eq!(without_reason(&text), [4, 6]);
    }

    #[test]
    fn sees_what_must_not_be_there() {
        let file = File {
            path: "tools/xtask/src/x.rs".to_owned(),
            text: String::new(),
        };
        let kernels = BTreeSet::from(["my_kernel".to_owned()]);
        let problems = |text: &str| line_problems(&file, text, &kernels).collect::<Vec<_>>();
        assert_eq!(problems(&format!("#[ign{}", "ore]")).len(), 1);
        assert_eq!(problems(&format!("let x = {} {{ y }};", "unsafe")).len(), 1);
        assert_eq!(
            problems("run(\"my_kernel\")"),
            ["names the test kernel `my_kernel`"]
        );
        assert!(problems("run(name) // \"other\"").is_empty());
    }
}
