//! Text from files and programs, made fit for a terminal.
//!
//! Names of files, kernels and variables may hold any character. A control character that reaches a terminal moves
//! its cursor or worse, so it is shown as an escape instead.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` with control characters shown as escapes, but for line ends and tabs; with `colors`, also but for sequences
/// that only choose colours (`ESC [ … m`, ECMA-48 SGR).
pub fn printable(text: &str, colors: bool) -> Cow<'_, str> {
    let fine = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(fine) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let taken = match color(rest).filter(|_| colors) {
            Some(sequence) => {
                safe.push_str(sequence);
                sequence.len()
            }
            None if fine(c) => {
                safe.push(c);
                c.len_utf8()
            }
            None => {
                // Writing to a string cannot fail.
                let _ = write!(safe, "{}", c.escape_default());
                c.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    Cow::Owned(safe)
}

/// The sequence at the start of `text`, if it chooses a colour.
fn color(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("\x1b[")?;
    let end = inside.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inside[end..]
        .starts_with('m')
        .then(|| &text[.."\x1b[".len() + end + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        assert!(matches!(printable("größe\n\tx", false), Cow::Borrowed(_)));
        assert_eq!(
            printable("a\x1b]0;t\x07b\r\u{9b}", false),
            "a\\u{1b}]0;t\\u{7}b\\r\\u{9b}"
        );
        assert_eq!(
            printable("\x1b[31mred\x1b[0m", false),
            "\\u{1b}[31mred\\u{1b}[0m"
        );
    }

    #[test]
    fn colours_pass_where_they_are_wanted() {
        let red = "\x1b[1;31mred\x1b[0m";
        assert_eq!(printable(red, true), red);
        assert_eq!(printable("\x1b[2Jx\x1b[", true), "\\u{1b}[2Jx\\u{1b}[");
    }
}
