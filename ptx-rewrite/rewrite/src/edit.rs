//! Insertions that can be found and taken out again.

use std::ops::Range;

/// Opens an inserted piece.
pub const OPEN: &str = "/*+crc*/";
/// Closes an inserted piece.
pub const CLOSE: &str = "/*-crc*/";
/// Says in an inserted piece where in the original stands what the rest of the piece is a copy of.
const COPY: &str = "/*=crc ";

/// Pieces of text to insert, by byte offset of the original.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits(Vec<(u32, String)>);

impl Edits {
    /// Inserts `text` in front of the byte at `offset`, after what was inserted there before.
    pub(crate) fn insert(&mut self, offset: u32, text: impl Into<String>) {
        self.0.push((offset, text.into()));
    }

    /// What is inserted.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, piece)| piece.as_str())
    }

    /// The text with all insertions.
    pub(crate) fn apply(mut self, text: &str) -> String {
        // Stable, so that pieces at one place keep their order.
        self.0.sort_by_key(|(offset, _)| *offset);
        let inserted: usize = self.0.iter().map(|(_, piece)| piece.len() + 16).sum();
        let mut result = String::with_capacity(text.len() + inserted);
        let mut done = 0;
        for (offset, piece) in &self.0 {
            let offset = *offset as usize;
            result.push_str(&text[done..offset]);
            result.push_str(OPEN);
            result.push_str(piece);
            result.push_str(CLOSE);
            done = offset;
        }
        result.push_str(&text[done..]);
        result
    }
}

/// Whether a text already contains inserted pieces or the names they use.
pub fn is_rewritten(text: &str) -> bool {
    [OPEN, CLOSE, device::PREFIX, "%crc_", "$crc_"]
        .iter()
        .any(|mark| text.contains(mark))
}

/// The text without what [`rewrite`](crate::rewrite) inserted.
pub fn erase(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        result.push_str(before);
        rest = after.split_once(CLOSE).map_or("", |(_, after)| after);
    }
    result.push_str(rest);
    result
}

/// Says in an inserted piece that what follows, up to its end, is a copy of the program's own text from `offset` on.
pub(crate) fn copied(offset: u32) -> String {
    format!("{COPY}{offset}*/")
}

/// The bytes of a text that [`rewrite`](crate::rewrite) has inserted and that are not copies of the program's own,
/// ascending.
pub fn inserted(text: &str) -> Vec<Range<u32>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(open) = text[at..].find(OPEN) {
        let open = at + open;
        let close = text[open..].find(CLOSE);
        let (close, end) = match close {
            Some(close) => (open + close, open + close + CLOSE.len()),
            None => (text.len(), text.len()),
        };
        match copy(&text[open..close]) {
            Some((behind, _)) => {
                found.push(open as u32..(open + behind) as u32);
                found.push(close as u32..end as u32);
            }
            None => found.push(open as u32..end as u32),
        }
        at = end;
    }
    found
}

/// Where the copy in an inserted piece begins, and the offset in the original of what it copies.
fn copy(piece: &str) -> Option<(usize, u32)> {
    let at = piece.find(COPY)?;
    let number = at + COPY.len();
    let length = piece[number..].find("*/")?;
    let offset = piece[number..number + length].parse().ok()?;
    Some((number + length + 2, offset))
}

/// Where in the original the copy begins that a byte of a rewritten text is part of, and how many lines of it are before
/// the byte.
pub fn copied_lines(text: &str, at: usize) -> Option<(u32, usize)> {
    let open = text[..at].rfind(OPEN)?;
    let piece = text[open..].split(CLOSE).next()?;
    let (behind, original) = copy(piece)?;
    let inside = at < open + piece.len();
    let within = text.get(open + behind..at).filter(|_| inside)?;
    Some((original, within.matches('\n').count()))
}

/// Where the bytes of an original text lie in the rewritten one.
#[derive(Clone, Debug, Default)]
pub struct Shifts {
    /// Offset in the original, and the bytes that are inserted in front of it and before.
    pieces: Vec<(u32, u32)>,
    /// The bytes of the original that have a copy, and the end of the copy.
    copies: Vec<(Range<u32>, u32)>,
}

impl Shifts {
    /// Reads a text that [`rewrite`](crate::rewrite) has made, or an original one.
    pub fn new(rewritten: &str) -> Self {
        let (mut pieces, mut at, mut inserted) = (Vec::new(), 0, 0);
        let mut copies = Vec::new();
        while let Some(open) = rewritten[at..].find(OPEN) {
            let open = at + open;
            let close = rewritten[open..].find(CLOSE);
            let end = close.map_or(rewritten.len(), |close| open + close + CLOSE.len());
            let original = (open - inserted) as u32;
            let closed = close.map_or(rewritten.len(), |close| open + close);
            if let Some((_, from)) = copy(&rewritten[open..closed]) {
                copies.push((from..original, closed as u32));
            }
            inserted += end - open;
            pieces.push((original, inserted as u32));
            at = end;
        }
        Self { pieces, copies }
    }

    /// The offset in the rewritten text of the copy of a byte of the original, if that is in the body of a kernel that
    /// has one.
    pub fn copied(&self, original: u32) -> Option<u32> {
        let mut copies = self.copies.iter();
        let (of, end) = copies.find(|(of, _)| of.contains(&original))?;
        Some(end - (of.end - original))
    }

    /// The offset in the rewritten text of a byte of the original.
    pub fn rewritten(&self, original: u32) -> u32 {
        let before = self.pieces.partition_point(|&(at, _)| at <= original);
        let inserted = before.checked_sub(1).map_or(0, |last| self.pieces[last].1);
        original + inserted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_order_and_come_out_again() {
        let mut edits = Edits::default();
        edits.insert(3, "b");
        edits.insert(0, "a");
        edits.insert(3, "c");
        let text = edits.apply("xyz");
        assert_eq!(
            text,
            "/*+crc*/a/*-crc*/xyz/*+crc*/b/*-crc*//*+crc*/c/*-crc*/"
        );
        assert_eq!(erase(&text), "xyz");
        assert_eq!(inserted(&text), [0..17, 20..37, 37..54]);
        assert!(is_rewritten(&text) && !is_rewritten("xyz"));
        let shifts = Shifts::new(&text);
        for (at, byte) in "xyz".bytes().enumerate() {
            assert_eq!(text.as_bytes()[shifts.rewritten(at as u32) as usize], byte);
        }
        assert_eq!(Shifts::new("xyz").rewritten(2), 2);
    }

    #[test]
    fn a_copy_is_the_programs_own() {
        let mut edits = Edits::default();
        edits.insert(6, format!("\n{}b\nc\n", copied(2)));
        let text = edits.apply("a\nb\nc\nd\n");
        assert_eq!(text, "a\nb\nc\n/*+crc*/\n/*=crc 2*/b\nc\n/*-crc*/d\n");
        assert_eq!(erase(&text), "a\nb\nc\nd\n");
        let ours = inserted(&text);
        let ours: Vec<&str> = ours
            .iter()
            .map(|r| &text[r.start as usize..r.end as usize])
            .collect();
        assert_eq!(ours, ["/*+crc*/\n/*=crc 2*/", "/*-crc*/"]);
        let shifts = Shifts::new(&text);
        let copied = |at| shifts.copied(at).map(|at| &text[at as usize..][..1]);
        assert_eq!(
            [copied(1), copied(2), copied(4), copied(6)],
            [None, Some("b"), Some("c"), None]
        );
        let of = |what: &str| copied_lines(&text, text.rfind(what).unwrap());
        assert_eq!(
            [of("b"), of("c\n"), of("/*-crc"), of("d")],
            [Some((2, 0)), Some((2, 1)), None, None]
        );
    }
}
