//! The header of a test file: `//@ key: value` lines, revisions, and `//~ race LABEL` marks, or
//! `strong` and `luck` ones.
//!
//! An unknown key or revision is an error, so that a typo cannot disable a test.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use crate::expr::Functions;

/// Keys a header may have; see docs/adding-a-test.md.
const KEYS: &[&str] = &[
    "arg",
    "block",
    "cooperative",
    "entries",
    "error",
    "expect",
    "expect(fast)",
    "expect(precise)",
    "expect(as-gpu)",
    "grid",
    "help",
    "misuse",
    "kernel",
    "model",
    "operands",
    "out",
    "reference",
    "result",
    "revisions",
    "shared",
    "then",
    "warns(as-gpu)",
    "where",
];

/// What a mark says of two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// `race`
    Race,
    /// `strong`: an unordered strong conflict.
    Strong,
    /// `luck`: ordered by luck.
    Luck,
}

/// A `//~ race LABEL` or `//~ same-value LABEL` mark on a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// What is said.
    pub class: Class,
    /// Line of the access, from 1.
    pub line: u32,
    /// Both ends of one race carry the same label.
    pub label: String,
    /// Both ends always write the same bytes.
    pub same_value: bool,
}

/// One revision of a test file, ready to run.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the revision, empty when the file has none.
    pub revision: String,
    /// Values by key, in file order; a key may stand several times (`arg`, `out`).
    values: BTreeMap<String, Vec<String>>,
    /// The marks that hold in this revision.
    pub marks: Vec<Mark>,
    /// The PTX text with `${…}` replaced.
    pub text: String,
}

impl Case {
    /// All values of `key`.
    pub fn all(&self, key: &str) -> &[String] {
        self.values.get(key).map_or(&[], Vec::as_slice)
    }

    /// The last value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.all(key).last().map(String::as_str)
    }

    /// `text` with the placeholders of this revision replaced.
    pub fn expand(&self, text: &str) -> String {
        substitute(text, &self.revision)
    }

    /// The functions that `where` defines.
    ///
    /// # Errors
    /// When a definition makes no sense.
    pub fn functions(&self) -> Result<Functions> {
        Functions::new(self.all("where").iter().map(String::as_str))
    }

    /// `x`, `x,y` or `x,y,z`; missing dimensions are 1.
    pub fn dims(&self, key: &str) -> Result<[u32; 3]> {
        let mut dims = [1; 3];
        let Some(value) = self.get(key) else {
            return Ok(dims);
        };
        let parts: Vec<_> = value.split(',').collect();
        if parts.len() > 3 {
            bail!("{key}: more than three dimensions in `{value}`");
        }
        for (dim, part) in dims.iter_mut().zip(parts) {
            *dim = part
                .trim()
                .parse()
                .with_context(|| format!("{key}: `{part}` is not a number"))?;
        }
        Ok(dims)
    }
}

/// Reads the header of `text` and gives one case per revision.
pub fn cases(text: &str) -> Result<Vec<Case>> {
    let mut lines = Vec::new();
    let mut revisions: Vec<String> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some(directive) = line.trim_start().strip_prefix("//@") else {
            continue;
        };
        let (only, directive) = split_revision(directive);
        let (key, value) = directive
            .split_once(':')
            .with_context(|| format!("line {}: expected `//@ key: value`", number + 1))?;
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        if !KEYS.contains(&key.as_str()) {
            bail!(
                "line {}: unknown key `{key}`, known are {}",
                number + 1,
                KEYS.join(", ")
            );
        }
        if key == "revisions" {
            revisions.extend(named(&value));
        } else {
            lines.push((number + 1, only.map(str::to_owned), key, value));
        }
    }
    if revisions.is_empty() {
        revisions.push(String::new());
    }
    let known = |only: &Option<String>, line: usize| {
        for pattern in only.iter().flat_map(|only| only.split_whitespace()) {
            if !revisions.iter().any(|revision| covers(pattern, revision)) {
                bail!("line {line}: unknown revision `{pattern}`");
            }
        }
        Ok(())
    };
    for (line, only, ..) in &lines {
        known(only, *line)?;
    }
    let marks = marks(text)?;
    for (only, mark) in &marks {
        known(only, mark.line as usize)?;
    }
    Ok(revisions
        .iter()
        .map(|revision| case(text, revision, &lines, &marks))
        .collect())
}

fn case(
    text: &str,
    revision: &str,
    lines: &[(usize, Option<String>, String, String)],
    marks: &[(Option<String>, Mark)],
) -> Case {
    let holds = |only: &Option<String>| {
        let only = only.as_deref();
        only.is_none_or(|only| only.split_whitespace().any(|one| covers(one, revision)))
    };
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, only, key, value) in lines {
        if holds(only) {
            let value = substitute(value, revision);
            values.entry(key.clone()).or_default().push(value);
        }
    }
    Case {
        revision: revision.to_owned(),
        values,
        marks: marks
            .iter()
            .filter(|(only, _)| holds(only))
            .map(|(_, mark)| mark.clone())
            .collect(),
        text: substitute(text, revision),
    }
}

/// The revisions that a header names: `a b` are two, and `a b + c d` all combinations of one of
/// each list, which are `a+c`, `a+d`, `b+c` and `b+d`.
fn named(lists: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    for list in lists.split(" + ") {
        let joined = |name: &String, part: &str| match name.as_str() {
            "" => part.to_owned(),
            name => format!("{name}+{part}"),
        };
        names = names
            .iter()
            .flat_map(|name| list.split_whitespace().map(|part| joined(name, part)))
            .collect();
    }
    names
}

/// Whether a revision is the one of that name, where a part may be `*` for any.
fn covers(pattern: &str, revision: &str) -> bool {
    let (mut wanted, mut parts) = (pattern.split('+'), revision.split('+'));
    loop {
        match (wanted.next(), parts.next()) {
            (None, None) => return true,
            (Some(wanted), Some(part)) if wanted == "*" || wanted == part => {}
            _ => return false,
        }
    }
}

/// Splits `[rev] rest` into the revision and the rest.
fn split_revision(text: &str) -> (Option<&str>, &str) {
    match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((revision, rest)) => (Some(revision), rest),
        None => (None, text),
    }
}

fn marks(text: &str) -> Result<Vec<(Option<String>, Mark)>> {
    let mut marks = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for mark in line.split("//~").skip(1) {
            let (only, mark) = split_revision(mark);
            let up = mark.chars().take_while(|&c| c == '^').count();
            let (class, same_value, label) = match mark[up..].trim().split_once(' ') {
                Some(("race", label)) => (Class::Race, false, label),
                Some(("same-value", label)) => (Class::Race, true, label),
                Some(("strong", label)) => (Class::Strong, false, label),
                Some(("luck", label)) => (Class::Luck, false, label),
                _ => bail!(
                    "line {}: expected `//~ race LABEL`, same-value, strong or luck",
                    number + 1
                ),
            };
            let mark = Mark {
                class,
                line: u32::try_from((number + 1).saturating_sub(up)).context("file too long")?,
                label: label.trim().to_owned(),
                same_value,
            };
            marks.push((only.map(str::to_owned), mark));
        }
    }
    Ok(marks)
}

/// Replaces the placeholders that a revision gives a value.
///
/// `${revision}` is the whole name, `${1}`, `${2}` and so on the parts of a combination. When the name is an opcode with type suffixes, `${T}` is the
/// last type, `${D}` the first, `${W}` the integer type twice as wide as `${T}`; with a leading `b`
/// (`${bT}`, `${bD}`, `${bW}`) the untyped form of the same size.
fn substitute(text: &str, revision: &str) -> String {
    let types: Vec<&str> = revision.split('.').filter(|s| bits(s).is_some()).collect();
    let mut text = text.replace("${revision}", revision);
    for (number, part) in revision.split('+').enumerate() {
        text = text.replace(&format!("${{{}}}", number + 1), part);
    }
    if let (Some(first), Some(last)) = (types.first(), types.last()) {
        let width = |ty: &str| bits(ty).unwrap_or(32);
        let wide = format!("{}{}", &last[..1], width(last) * 2);
        for (name, value) in [("D", *first), ("T", *last), ("W", wide.as_str())] {
            text = text.replace(&format!("${{{name}}}"), value);
            text = text.replace(&format!("${{b{name}}}"), &format!("b{}", width(value)));
        }
    }
    text
}

/// Width in bits of a scalar PTX type name.
pub fn bits(ty: &str) -> Option<u32> {
    let (kind, width) = ty.split_at_checked(1)?;
    let width: u32 = width.parse().ok()?;
    let known = match kind {
        "u" | "s" | "b" => matches!(width, 8 | 16 | 32 | 64 | 128),
        "f" => matches!(width, 16 | 32 | 64),
        _ => false,
    };
    known.then_some(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_select_lines_and_fill_in_types() {
        let text = "//@ revisions: add.u32 mul.wide.s16\n//@[add.u32] grid: 2,3\nx ${T} ${W} ${bT}\ny //~[add.u32] race A\nz //~^ race B\n";
        let cases = cases(text).unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!(cases[0].dims("grid").unwrap(), [2, 3, 1]);
        assert_eq!(cases[1].dims("grid").unwrap(), [1, 1, 1]);
        assert!(cases[1].text.contains("x s16 s32 b16"));
        assert_eq!(cases[0].marks.len(), 2);
        assert_eq!(
            cases[1].marks,
            [Mark {
                class: Class::Race,
                line: 4,
                label: "B".into(),
                same_value: false
            }]
        );
    }

    #[test]
    fn combinations_are_selected_by_their_parts() {
        let text = "//@ revisions: a b + c d\n//@ expect: race\n//@[a+c *+d] expect: no-race\n${2} ${1} //~[b+* a+d] race A\n";
        let cases = cases(text).unwrap();
        let names: Vec<_> = cases.iter().map(|case| case.revision.as_str()).collect();
        assert_eq!(names, ["a+c", "a+d", "b+c", "b+d"]);
        let said: Vec<_> = cases
            .iter()
            .map(|case| case.get("expect").unwrap())
            .collect();
        assert_eq!(said, ["no-race", "no-race", "race", "no-race"]);
        let marks: Vec<_> = cases.iter().map(|case| case.marks.len()).collect();
        assert_eq!(marks, [0, 1, 1, 1]);
        assert!(cases[2].text.contains("\nc b //~"));
    }

    #[test]
    fn typos_are_errors() {
        for text in [
            "//@ revisions: a + b\n//@[a+c] grid: 1\n",
            "//@ revisions: a + b\n//@[a] grid: 1\n",
            "//@ revisions: a b\n//@[a c] grid: 1\n",
            "//@ girds: 1\n",
            "//@[x] grid: 1\n",
            "a //~ rase A\n",
            "//@ grid\n",
        ] {
            assert!(cases(text).is_err(), "{text}");
        }
    }
}
