//! PTX text to tokens.
//!
//! Nothing is dropped: the tokens of a text, put one after the other, are the text, whatever the
//! text is. Bytes that belong to no token of the language become [`TokenKind::Error`] tokens.
//! Source: PTX ISA 9.0, chapter "Syntax".

use logos::{Lexer, Logos};

/// What a token is.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "punctuation is named after its character")]
pub enum TokenKind {
    /// Blanks and line ends.
    #[regex(r"[ \t\r\n\x0b\x0c]+")]
    Blank,
    /// `// …`
    #[regex(r"//[^\n]*")]
    LineComment,
    /// `/* … */`, or to the end of the text when it is not closed.
    #[token("/*", block_comment)]
    BlockComment,
    /// `# …`: a line left by the C preprocessor.
    #[regex(r"#[^\n]*")]
    Hash,
    /// `@@DWARF …`: debugging data as PTX 1.x wrote it, one line.
    #[regex(r"@@[^\n]*")]
    DwarfLine,
    /// `.global`, `.shared::cta`, `.L2::128B`: a directive or an instruction suffix.
    #[regex(r"\.[A-Za-z0-9_$]+(::[A-Za-z0-9_]+)*")]
    Dot,
    /// An identifier, a register (`%r1`), a special register (`%tid`) or `_`.
    #[regex(r"[A-Za-z_$][A-Za-z0-9_$]*|%[A-Za-z0-9_$]+")]
    Name,
    /// A decimal, octal, hexadecimal or binary integer, with an optional `U`.
    #[regex(r"([0-9]+|0[xX][0-9a-fA-F]+|0[bB][01]+)U?")]
    Int,
    /// `0f` and eight hexadecimal digits.
    #[regex(r"0[fF][0-9a-fA-F]{8}")]
    F32,
    /// `0d` and sixteen hexadecimal digits.
    #[regex(r"0[dD][0-9a-fA-F]{16}")]
    F64,
    /// A decimal number with a point or an exponent.
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+")]
    Decimal,
    /// `"…"`, on one line.
    #[token("\"", string)]
    String,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token("(")]
    OpenParen,
    #[token(")")]
    CloseParen,
    #[token("<")]
    Less,
    #[token(">")]
    Greater,
    #[token("=")]
    Equal,
    #[token("|")]
    Pipe,
    #[token("!")]
    Bang,
    #[token("@")]
    At,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("~")]
    Tilde,
    #[token("&")]
    Ampersand,
    #[token("^")]
    Caret,
    #[token("?")]
    Question,
    /// Bytes that no token starts with.
    Error,
    /// Past the last token. Never in a token list; what the parser sees there.
    End,
}

impl TokenKind {
    /// True for what stands between tokens and means nothing.
    pub fn is_trivia(self) -> bool {
        matches!(
            self,
            Self::Blank | Self::LineComment | Self::BlockComment | Self::Hash
        )
    }
}

/// A token: its kind and its byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// The tokens of `text` in order, without a gap. `text` must be shorter than 4 GiB.
pub fn tokens(text: &str) -> impl Iterator<Item = Token> + '_ {
    TokenKind::lexer(text).spanned().map(|(kind, range)| Token {
        kind: kind.unwrap_or(TokenKind::Error),
        start: range.start as u32,
        end: range.end as u32,
    })
}

fn block_comment(lexer: &mut Lexer<'_, TokenKind>) {
    let rest = lexer.remainder();
    lexer.bump(rest.find("*/").map_or(rest.len(), |at| at + 2));
}

/// Takes up to the closing quote; without one the rest of the line, which is then an error token.
/// (A regular expression would look through the line again from every quote in it.)
fn string(lexer: &mut Lexer<'_, TokenKind>) -> bool {
    let rest = lexer.remainder().as_bytes();
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'"' => {
                lexer.bump(at + 1);
                return true;
            }
            b'\n' => break,
            // A backslash takes the next byte with it, unless the line ends there.
            b'\\'
                if rest
                    .get(at + 1)
                    .is_some_and(|&next| next.is_ascii() && next != b'\n') =>
            {
                at += 2;
            }
            _ => at += 1,
        }
    }
    lexer.bump(at);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        tokens(text)
            .map(|token| token.kind)
            .filter(|kind| !kind.is_trivia())
            .collect()
    }

    #[test]
    fn numbers_and_names() {
        assert_eq!(
            kinds("0f3F800000 0d3FF0000000000000 0x1fU 17 1.5 2e-3 %r1 _x $L__BB0"),
            [
                TokenKind::F32,
                TokenKind::F64,
                TokenKind::Int,
                TokenKind::Int,
                TokenKind::Decimal,
                TokenKind::Decimal,
                TokenKind::Name,
                TokenKind::Name,
                TokenKind::Name
            ]
        );
    }

    #[test]
    fn a_suffix_keeps_its_colons() {
        assert_eq!(
            kinds("ld.shared::cta.L2::128B.u32"),
            [
                TokenKind::Name,
                TokenKind::Dot,
                TokenKind::Dot,
                TokenKind::Dot
            ]
        );
        assert_eq!(
            kinds("a: .branchtargets"),
            [TokenKind::Name, TokenKind::Colon, TokenKind::Dot]
        );
    }

    #[test]
    fn tokens_tile_any_text() {
        for text in [
            "",
            "/* never closed",
            "\"never closed\n",
            "\"a\\\"b\" \"\\\u{e9}\" \"\\",
            "é\u{1F600}\0 `ld` \\",
            "0f12 .. :: ... %%",
            "@@DWARF .byte 0x1\n@p bra x;",
        ] {
            let mut end = 0;
            for token in tokens(text) {
                assert_eq!(token.start, end, "{text:?}");
                assert!(token.end > token.start, "{text:?}");
                end = token.end;
            }
            assert_eq!(end as usize, text.len(), "{text:?}");
        }
    }
}
