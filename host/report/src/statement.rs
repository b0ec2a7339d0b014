//! Statements of CUDA C++ source, as far as advice needs them: where one ends, and what kind it is.

use std::ops::Range;

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `for`, `while`, `do`
    Loop,
    /// `if`, `switch`
    Branch,
    /// Any other.
    Plain,
}

impl Kind {
    /// What reports call it.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Kind::Loop => "loop",
            Kind::Branch => "branch",
            Kind::Plain => "statement",
        }
    }
}

/// The statement at a line and column, both from 1, with all that belongs to it; without a column the first of the line.
pub(crate) fn at(text: &str, line: u32, column: u32) -> Option<(Kind, Range<usize>)> {
    let start = offset(text, line, column)?;
    let (kind, length) = statement(&text[start..])?;
    Some((kind, start..start + length))
}

/// Where the outermost loop begins that one place of a text is in and another one is not.
pub(crate) fn loop_of(text: &str, inside: usize, outside: usize) -> Option<usize> {
    let range = outermost_loop(text, inside, |range| !range.contains(&outside))?;
    Some(range.start)
}

/// The outermost loop that a place of a text is in.
pub(crate) fn loop_around(text: &str, inside: usize) -> Option<Range<usize>> {
    outermost_loop(text, inside, |_| true)
}

fn outermost_loop(
    text: &str,
    inside: usize,
    wanted: impl Fn(&Range<usize>) -> bool,
) -> Option<Range<usize>> {
    let mut at = 0;
    loop {
        at = blanks(text, at);
        let rest = text.get(at..).filter(|_| at <= inside)?;
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let word = &rest[..word.unwrap_or(rest.len())];
        if matches!(word, "for" | "while" | "do")
            && let Some((Kind::Loop, length)) = statement(&text[at..])
        {
            let range = at..at + length;
            if range.contains(&inside) && wanted(&range) {
                return Some(range);
            }
        }
        at += match rest.chars().next()? {
            quote @ ('"' | '\'') => quoted(&text[at..], quote)?,
            c => word.len().max(c.len_utf8()),
        };
    }
}

/// Where a line and column stand in a text.
pub(crate) fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    let start = match index {
        0 => 0,
        _ => text.match_indices('\n').nth(index - 1)?.0 + 1,
    };
    let of_line = text[start..].split('\n').next()?;
    let indent = of_line.len() - of_line.trim_start().len();
    let column = match column {
        0 => indent,
        column => usize::try_from(column).ok()? - 1,
    };
    of_line.is_char_boundary(column).then_some(start + column)
}

/// Kind and length of the statement that a text begins with.
fn statement(text: &str) -> Option<(Kind, usize)> {
    let begin = blanks(text, 0);
    let word: String = text[begin..]
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    let behind = begin + word.len();
    match word.as_str() {
        "for" | "while" | "if" | "switch" => {
            let mut at = blanks(text, behind);
            // `if constexpr`
            if let Some(rest) = text[at..].strip_prefix("constexpr") {
                at = blanks(text, text.len() - rest.len());
            }
            let body = at + balanced(&text[at..])?;
            let mut end = body + statement(&text[body..])?.1;
            let next = blanks(text, end);
            if word == "if" && is_word(&text[next..], "else") {
                end = next + 4;
                end += statement(&text[end..])?.1;
            }
            let kind = match word.as_str() {
                "if" | "switch" => Kind::Branch,
                _ => Kind::Loop,
            };
            Some((kind, end))
        }
        "do" => {
            let body = behind + statement(&text[behind..])?.1;
            Some((Kind::Loop, body + plain(&text[body..])?))
        }
        _ if text[begin..].starts_with('{') => {
            Some((Kind::Plain, begin + balanced(&text[begin..])?))
        }
        _ => Some((Kind::Plain, begin + plain(&text[begin..])?)),
    }
}

fn is_word(text: &str, word: &str) -> bool {
    let rest = text.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Length of a statement that ends in a semicolon.
fn plain(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at = blanks(text, at);
        match text[at..].chars().next()? {
            ';' => return Some(at + 1),
            '(' | '[' | '{' => at += balanced(&text[at..])?,
            ')' | ']' | '}' => return None,
            quote @ ('"' | '\'') => at += quoted(&text[at..], quote)?,
            c => at += c.len_utf8(),
        }
    }
}

/// Length of what stands in brackets at the beginning of a text, with them.
pub(crate) fn balanced(text: &str) -> Option<usize> {
    let mut depth = 0u32;
    let mut at = 0;
    loop {
        at = blanks(text, at);
        let c = text[at..].chars().next()?;
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            '"' | '\'' => {
                at += quoted(&text[at..], c)?;
                continue;
            }
            _ => {}
        }
        at += c.len_utf8();
        if depth == 0 {
            return Some(at);
        }
    }
}

fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return Some(at),
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Where white space, comments and preprocessor lines from a place on end.
fn blanks(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let skipped = match rest {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ if rest.starts_with('#') => rest.find('\n').unwrap_or(rest.len()),
            _ => rest.len() - rest.trim_start().len(),
        };
        match skipped {
            0 => return at,
            _ => at += skipped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_of_one_place_alone_is_found() {
        let text = "for (;;) { a = 1; // for (
            for (int i = 0; i < n; i++) while (x) { b = '\\''; }
            do { c; } while (y); forward(d); }";
        let at = |word: &str| text.find(word).unwrap();
        let of = |inside: &str, outside: &str| loop_of(text, at(inside), at(outside));
        assert_eq!(of("b =", "a ="), Some(at("for (int")));
        assert_eq!(of("c;", "b ="), Some(at("do {")));
        assert_eq!(of("do {", "b ="), Some(at("do {")));
        assert_eq!(of("a =", "b ="), None);
        assert_eq!(of("d)", "a ="), None);
        assert_eq!(loop_of(text, at("a ="), text.len()), Some(0));
        assert_eq!(loop_around(text, at("c;")), Some(0..text.len()));
        assert_eq!(loop_around("int a; for (;;) {}", 0), None);
    }

    #[test]
    fn statements_end_where_they_end() {
        let of = |text: &str| {
            let (kind, range) = at(text, 1, 0).unwrap();
            (kind, text[range].to_owned())
        };
        for (kind, whole) in [
            (Kind::Branch, "if (t == 0) x[f(1)] = ';';"),
            (Kind::Branch, "if (a) { b; } else if (c) d; else { e; }"),
            (
                Kind::Loop,
                "for (int i = 0; i < n; i++)\n  // no } here\n  s += a[i];",
            ),
            (Kind::Loop, "while (x) if (y) { z(\"}\"); }"),
            (Kind::Loop, "do { x++; } while (x < 3);"),
            (Kind::Plain, "s[t] = t >= d ? s[t - d] : 0;"),
            (Kind::Plain, "{ a; b; }"),
            (Kind::Branch, "if constexpr (W > 1) a;"),
        ] {
            let text = format!("{whole} next();");
            assert_eq!(of(&text), (kind, whole.to_owned()));
        }
        assert_eq!(at("a\n  if (x) y;\nz", 2, 3), Some((Kind::Branch, 4..13)));
        assert_eq!(at("f(", 1, 1), None);
        assert_eq!(at("a;", 9, 1), None);
    }
}
