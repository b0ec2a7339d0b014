//! Source files: where they are now, and which part of a line an access is.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// Larger files are not read.
const LARGEST: u64 = 16 << 20;

/// Finds and keeps source files.
#[derive(Debug, Default)]
pub struct Sources {
    roots: Vec<PathBuf>,
    known: RefCell<HashMap<String, Option<Rc<str>>>>,
}

impl Sources {
    /// Looks for a recorded path as it is, then below each root: with all its folders, then with
    /// fewer and fewer of them, so that a tree that was moved is found.
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self {
            roots,
            known: RefCell::default(),
        }
    }

    /// Takes texts, by recorded path, for the files at these paths, whatever is there.
    pub fn holding(self, texts: BTreeMap<String, String>) -> Self {
        let texts = texts.into_iter();
        let texts = texts.map(|(path, text)| (path, Some(Rc::from(text))));
        self.known.borrow_mut().extend(texts);
        self
    }

    /// The same files, whose paths are shown below `root` where it contains them.
    pub fn shown_below(&self, root: PathBuf) -> Self {
        let known = self.known.borrow().clone();
        let roots = std::iter::once(root).chain(self.roots.iter().cloned());
        Self {
            roots: roots.collect(),
            known: RefCell::new(known),
        }
    }

    /// The text of a file, if it is there.
    pub fn text(&self, path: &str) -> Option<Rc<str>> {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let text = self.find(path).map(Rc::from);
        self.known
            .borrow_mut()
            .insert(path.to_owned(), text.clone());
        text
    }

    /// One line of a file, from 1.
    pub fn line(&self, path: &str, line: u32) -> Option<String> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        let text = self.text(path)?;
        text.lines().nth(index).map(str::to_owned)
    }

    /// A recorded path as a person here would write it: below the first root that contains it.
    pub fn shown(&self, path: &str) -> String {
        let below = |root: &PathBuf| Path::new(path).strip_prefix(root).ok();
        let relative = self.roots.iter().find_map(below);
        relative.map_or_else(|| path.to_owned(), |path| path.display().to_string())
    }

    fn find(&self, path: &str) -> Option<String> {
        if path.is_empty() {
            return None;
        }
        let recorded = Path::new(path);
        if recorded.is_absolute()
            && let Some(text) = load(recorded)
        {
            return Some(text);
        }
        let parts: Vec<_> = recorded
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect();
        let below = |root: &PathBuf| {
            (0..parts.len())
                .find_map(|skip| load(&root.join(parts[skip..].iter().collect::<PathBuf>())))
        };
        self.roots.iter().find_map(below)
    }
}

fn load(path: &Path) -> Option<String> {
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > LARGEST {
        return None;
    }
    // A source file may have any encoding; what is not UTF-8 is shown as far as it can be.
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The bytes of the text that a line number and column point at.
///
/// A column stands at the beginning of an expression, so that expression is taken: a name with its
/// members, subscripts and arguments. `whole` takes the rest of the statement: where a value is
/// read, the compiler points at the statement that uses it.
/// Without a column, or with one in the indentation, where no expression begins (numba says 1 of every
/// line), it is the line without its indentation.
pub fn extent(text: &str, line: u32, column: u32, whole: bool) -> Option<Range<usize>> {
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    let start = match index {
        0 => 0,
        _ => text.match_indices('\n').nth(index - 1)?.0 + 1,
    };
    if start >= text.len() {
        return None;
    }
    let all = text[start..].split('\n').next().unwrap_or_default();
    let all = all.trim_end();
    let indent = all.len() - all.trim_start().len();
    let from = (column as usize)
        .checked_sub(1)
        .filter(|at| (indent..all.len()).contains(at) && all.is_char_boundary(*at));
    let Some(from) = from else {
        return (indent < all.len()).then_some(start + indent..start + all.len());
    };
    let rest = &all[from..];
    let length = match whole {
        true => statement(rest),
        false => expression(rest),
    };
    Some(start + from..start + from + length)
}

/// Length of the statement that a text begins with, at least one character.
fn statement(text: &str) -> usize {
    let ends = [text.find(';'), text.find('{'), text.find("//")];
    let end = ends.into_iter().flatten().min().unwrap_or(text.len());
    match text[..end].trim_end().len() {
        0 => text.chars().next().map_or(0, char::len_utf8),
        length => length,
    }
}

/// Length of the expression that a text begins with, at least one character.
fn expression(text: &str) -> usize {
    let mut at = text.len() - text.trim_start_matches(['*', '&', '+', '-']).len();
    loop {
        let rest = &text[at..];
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = rest.len() - rest.trim_start_matches(word).len();
        if length > 0 {
            at += length;
        } else if rest.starts_with("->") || rest.starts_with("::") {
            at += 2;
        } else if rest.starts_with('.') {
            at += 1;
        } else if let Some(inside) = bracketed(rest) {
            at += inside;
        } else {
            break;
        }
    }
    match at {
        0 => text.chars().next().map_or(0, char::len_utf8),
        _ => at,
    }
}

/// Length of the balanced brackets or parentheses at the beginning of a text.
fn bracketed(text: &str) -> Option<usize> {
    if !text.starts_with(['[', '(']) {
        return None;
    }
    let mut depth = 0u32;
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
impl Sources {
    /// Sources with one file, `x.cu`, and its folder.
    pub(crate) fn of_text(text: &str) -> (tempfile::TempDir, Self) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.cu"), text).unwrap();
        let sources = Self::new(vec![folder.path().to_owned()]);
        (folder, sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_at_a_column_is_marked() {
        let text =
            "int x;\n    counts[data[i]] = count + 1;\n\tp->q.r(a, b)[2]++;\n    *total += x;\n";
        let at = |line, column| extent(text, line, column, false).map(|range| &text[range]);
        assert_eq!(at(2, 5), Some("counts[data[i]]"));
        assert_eq!(at(2, 0), Some("counts[data[i]] = count + 1;"));
        assert_eq!(at(3, 2), Some("p->q.r(a, b)[2]"));
        assert_eq!(at(4, 5), Some("*total"));
        assert_eq!(at(2, 21), Some("="));
        assert_eq!(at(2, 99), Some("counts[data[i]] = count + 1;"));
        assert_eq!(at(2, 1), Some("counts[data[i]] = count + 1;"));
        assert_eq!(at(9, 1), None);
        assert_eq!(at(0, 1), None);
        // Columns count bytes; one inside a character is as good as none.
        assert_eq!(extent("éx = 1;", 1, 2, false), Some(0..8));
        assert_eq!(extent("[a", 1, 1, false), Some(0..1));
    }

    #[test]
    fn a_read_is_marked_to_the_end_of_its_statement() {
        let text = "    int y = x[1];  // why\n    if (x[2]) {\n;";
        let at = |line, column| extent(text, line, column, true).map(|range| &text[range]);
        assert_eq!(at(1, 5), Some("int y = x[1]"));
        assert_eq!(at(2, 5), Some("if (x[2])"));
        assert_eq!(at(3, 1), Some(";"));
    }

    #[test]
    fn moved_trees_are_found_below_a_root() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("src")).unwrap();
        std::fs::write(root.path().join("src/a.cu"), "one\ntwo\n").unwrap();
        let sources = Sources::new(vec![root.path().to_owned()]);
        assert_eq!(sources.line("/built/elsewhere/src/a.cu", 2).unwrap(), "two");
        assert_eq!(sources.line("src/a.cu", 1).unwrap(), "one");
        let inside = root.path().join("src/a.cu").display().to_string();
        assert_eq!(sources.shown(&inside), "src/a.cu");
        assert_eq!(sources.shown("/built/a.cu"), "/built/a.cu");
        assert!(sources.line("src/a.cu", 3).is_none());
        assert!(sources.text("b.cu").is_none() && sources.text("").is_none());
        assert!(sources.text("..").is_none());
    }
}
