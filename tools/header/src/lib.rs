//! What a test file says about itself: header lines and marks.
//!
//! ```text
//! //@ grid: 2                       a header line: key and value
//! //@[racy] expect: race            one that holds in one revision
//! *total += partial[0];  //~ race A A, may B
//!                                   marks: a kind, and a label for each end that the line is of something
//! //~[racy]^ race C                 a mark of the line above, in one revision
//! ```
//! A key, kind or revision that is not known is an error, so that a typo cannot disable a test.

use anyhow::{Context, Result, bail, ensure};

/// What may stand in the files of one folder.
#[derive(Clone, Copy, Debug)]
pub struct Grammar<'a> {
    /// Keys of header lines.
    pub keys: &'a [&'a str],
    /// Kinds of marks.
    pub kinds: &'a [&'a str],
}

/// The header lines and marks of a file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// The header lines.
    pub lines: Vec<Line>,
    /// The marks.
    pub marks: Vec<Mark>,
}

/// A header line.
#[derive(Clone, Debug)]
pub struct Line {
    /// In which revisions it holds.
    pub selection: Selection,
    /// What it is about.
    pub key: String,
    /// What it says, without blanks around it.
    pub value: String,
}

/// A mark.
#[derive(Clone, Debug)]
pub struct Mark {
    /// In which revisions it holds.
    pub selection: Selection,
    /// The line that is marked, from 1.
    pub line: u32,
    /// What is said of it.
    pub kind: String,
    /// One for each end that the line is; at least one.
    pub labels: Vec<String>,
}

/// The revisions in which something holds.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Names and patterns between blanks; none for all revisions.
    patterns: Option<String>,
    /// Where it stands, from 1.
    line: u32,
}

impl Grammar<'_> {
    /// Reads the header lines and marks of a file.
    ///
    /// # Errors
    /// When one of them is not understood.
    pub fn read(&self, text: &str) -> Result<Header> {
        let mut header = Header::default();
        for (line, number) in text.lines().zip(1..) {
            if let Some(said) = line.trim_start().strip_prefix("//@") {
                let line = self.line(said, number);
                header
                    .lines
                    .push(line.with_context(|| format!("line {number}"))?);
                continue;
            }
            for said in line.split("//~").skip(1) {
                let marks = self.marks(said, number);
                header
                    .marks
                    .extend(marks.with_context(|| format!("line {number}"))?);
            }
        }
        Ok(header)
    }

    fn line(&self, said: &str, number: u32) -> Result<Line> {
        let (selection, said) = Selection::split(said, number);
        let (key, value) = said.split_once(':').context("expected `//@ key: value`")?;
        let key = key.trim();
        ensure!(
            self.keys.contains(&key),
            "unknown key `{key}`, known are {}",
            self.keys.join(", ")
        );
        Ok(Line {
            selection,
            key: key.to_owned(),
            value: value.trim().to_owned(),
        })
    }

    fn marks(&self, said: &str, number: u32) -> Result<Vec<Mark>> {
        let (selection, said) = Selection::split(said, number);
        let marks = said.trim_start_matches('^');
        let up = (said.len() - marks.len()) as u32;
        let line = number.checked_sub(up).filter(|line| *line > 0);
        let line = line.context("a mark of a line before the first one")?;
        let one = |mark: &str| {
            let mut words = mark.split_whitespace().map(str::to_owned);
            let kind = words.next().unwrap_or_default();
            let labels: Vec<String> = words.collect();
            ensure!(
                self.kinds.contains(&kind.as_str()) && !labels.is_empty(),
                "expected `//~ KIND LABEL`, where KIND is {}",
                self.kinds.join(", ")
            );
            Ok(Mark {
                selection: selection.clone(),
                line,
                kind,
                labels,
            })
        };
        marks.split(',').map(one).collect()
    }
}

impl Header {
    /// Makes sure that every selection names one of these revisions.
    ///
    /// # Errors
    /// When one does not.
    pub fn check(&self, revisions: &[impl AsRef<str>]) -> Result<()> {
        let lines = self.lines.iter().map(|line| &line.selection);
        for selection in lines.chain(self.marks.iter().map(|mark| &mark.selection)) {
            for pattern in selection.patterns() {
                if !revisions.iter().any(|of| covers(pattern, of.as_ref())) {
                    bail!("line {}: unknown revision `{pattern}`", selection.line);
                }
            }
        }
        Ok(())
    }
}

impl Selection {
    /// Splits `[names] rest` into the selection and the rest.
    fn split(text: &str, line: u32) -> (Selection, &str) {
        let named = text.strip_prefix('[').and_then(|text| text.split_once(']'));
        let (patterns, rest) = match named {
            Some((patterns, rest)) => (Some(patterns.to_owned()), rest),
            None => (None, text),
        };
        (Selection { patterns, line }, rest)
    }

    fn patterns(&self) -> impl Iterator<Item = &str> {
        let patterns = self.patterns.iter();
        patterns.flat_map(|patterns| patterns.split_whitespace())
    }

    /// It names no revision, and holds in all.
    pub fn is_all(&self) -> bool {
        self.patterns.is_none()
    }

    /// Whether it holds in a revision.
    pub fn holds(&self, revision: &str) -> bool {
        self.is_all() || self.patterns().any(|pattern| covers(pattern, revision))
    }
}

/// The revisions that a header names: `a b` are two, and `a b + c d` all combinations of one of
/// each list, which are `a+c`, `a+d`, `b+c` and `b+d`.
pub fn revisions(lists: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const GRAMMAR: Grammar<'_> = Grammar {
        keys: &["grid", "expect(fast)"],
        kinds: &["race", "may"],
    };

    #[test]
    fn marks_have_kinds_and_an_end_for_each_label() {
        let text = "x //~ race A A, may B\n  y //~[b] race C //~[c d]^ may D\n";
        let header = GRAMMAR.read(text).unwrap();
        let marks = header.marks.iter().map(|mark| {
            let holds = ["a", "b", "d"].map(|of| mark.selection.holds(of));
            (mark.line, &*mark.kind, mark.labels.join(" "), holds)
        });
        let expected = [
            (1, "race", "A A", [true; 3]),
            (1, "may", "B", [true; 3]),
            (2, "race", "C", [false, true, false]),
            (1, "may", "D", [false, false, true]),
        ];
        assert!(marks.eq(
            expected.map(|(line, kind, labels, holds)| { (line, kind, labels.to_owned(), holds) })
        ));
    }

    #[test]
    fn combinations_are_selected_by_their_parts() {
        let names = revisions("a b + c d");
        assert_eq!(names, ["a+c", "a+d", "b+c", "b+d"]);
        let header = GRAMMAR.read("//@[a+c *+d] grid: 1\n").unwrap();
        header.check(&names).unwrap();
        let holds: Vec<_> = names
            .iter()
            .map(|name| header.lines[0].selection.holds(name))
            .collect();
        assert_eq!(holds, [true, true, false, true]);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let error = |text: &str| format!("{:#}", GRAMMAR.read(text).unwrap_err());
        let unknown = "unknown key `girds`, known are grid, expect(fast)";
        assert_eq!(error("\n//@ girds: 1\n"), format!("line 2: {unknown}"));
        assert_eq!(error("//@ grid\n"), "line 1: expected `//@ key: value`");
        let expected = "line 1: expected `//~ KIND LABEL`, where KIND is race, may";
        for mark in ["x //~ rase A\n", "x //~ race\n", "x //~ race A,\n"] {
            assert_eq!(error(mark), expected);
        }
        let above = "line 1: a mark of a line before the first one";
        assert_eq!(error("x //~^ race A\n"), above);
        let names = revisions("a + b");
        for pattern in ["a+c", "a", "a+b c"] {
            let header = GRAMMAR.read(&format!("//@[{pattern}] grid: 1\n")).unwrap();
            assert!(header.check(&names).is_err(), "{pattern}");
        }
    }
}
