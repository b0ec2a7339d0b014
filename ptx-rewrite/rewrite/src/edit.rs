//! Insertions that can be found and taken out again.

/// Opens an inserted piece.
pub const OPEN: &str = "/*+crc*/";
/// Closes an inserted piece.
pub const CLOSE: &str = "/*-crc*/";

/// Pieces of text to insert, by byte offset of the original.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits(Vec<(u32, String)>);

impl Edits {
    /// Inserts `text` in front of the byte at `offset`, after what was inserted there before.
    pub(crate) fn insert(&mut self, offset: u32, text: impl Into<String>) {
        self.0.push((offset, text.into()));
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
        assert!(is_rewritten(&text) && !is_rewritten("xyz"));
    }
}
