//! The header of a kernel's file: its keys, its revisions, and its marks of races and warnings.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use header::{Grammar, Header, revisions};

use crate::expr::Functions;

/// See docs/adding-a-test.md.
const GRAMMAR: Grammar<'_> = Grammar {
    keys: &[
        "arg",
        "block",
        "cooperative",
        "advice",
        "entries",
        "error",
        "expect",
        "expect(fast)",
        "expect(precise)",
        "expect(as-gpu)",
        "fact",
        "grid",
        "help",
        "misuse",
        "kernel",
        "model",
        "open-on-gpu",
        "operands",
        "out",
        "published",
        "reference",
        "result",
        "revisions",
        "shared",
        "then",
        "verify",
        "warns(as-gpu)",
        "where",
    ],
    kinds: &["race", "same-value", "strong", "predictive"],
};

/// What a mark says of two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// `race`
    Race,
    /// `strong`: an unordered strong conflict.
    Strong,
    /// `predictive`: only the order of taking locks, or of executing fences, has ordered them.
    Predictive,
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
    let header = GRAMMAR.read(text)?;
    let named = header.lines.iter().filter(|line| line.key == "revisions");
    let mut revisions: Vec<String> = named.flat_map(|line| revisions(&line.value)).collect();
    if revisions.is_empty() {
        revisions.push(String::new());
    }
    header.check(&revisions)?;
    let cases = revisions.iter().map(|of| case(text, of, &header));
    cases.collect()
}

fn case(text: &str, revision: &str, header: &Header) -> Result<Case> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let lines = header.lines.iter();
    for line in lines.filter(|line| line.key != "revisions" && line.selection.holds(revision)) {
        let value = substitute(&line.value, revision);
        values.entry(line.key.clone()).or_default().push(value);
    }
    let mut marks = Vec::new();
    for said in header
        .marks
        .iter()
        .filter(|of| of.selection.holds(revision))
    {
        let (class, same_value) = match said.kind.as_str() {
            "race" => (Class::Race, false),
            "same-value" => (Class::Race, true),
            "strong" => (Class::Strong, false),
            "predictive" => (Class::Predictive, false),
            kind => bail!("line {}: unknown mark `{kind}`", said.line),
        };
        marks.extend(said.labels.iter().map(|label| Mark {
            class,
            line: said.line,
            label: label.clone(),
            same_value,
        }));
    }
    Ok(Case {
        revision: revision.to_owned(),
        values,
        marks,
        text: substitute(text, revision),
    })
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
}
