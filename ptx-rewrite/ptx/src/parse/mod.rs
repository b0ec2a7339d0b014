//! Recursive descent from tokens to the tree.
//!
//! [`parse`] takes any text and never fails: what it does not understand becomes an `Unknown` node
//! with its byte range and a [`Diagnostic`], and parsing goes on behind it.
//! The text is kept in the module, so nothing is lost either way.
//! Work is linear in the length of the text: no token is looked at again after a failed attempt,
//! other than to skip it once.

mod expression;
mod function;
mod module;
mod operand;
mod section;
mod statement;
mod variable;

use smol_str::SmolStr;

use crate::ast::{Diagnostic, Module, Span};
use crate::lexer::{self, Token, TokenKind};

/// Brackets, parentheses and braces may nest this deep in an operand, an initialiser or a
/// constant expression, and blocks this deep in a body. Real code stays below 5; the limit keeps
/// hostile text from exhausting the stack.
const MAX_DEPTH: u32 = 128;

/// Parses a module. Never fails and never panics.
pub fn parse(text: &str) -> (Module, Vec<Diagnostic>) {
    let mut module = Module {
        text: text.to_owned(),
        line_starts: line_starts(text),
        ..Module::default()
    };
    if u32::try_from(text.len()).is_err() {
        let message = "a module of 4 GiB or more is not read".to_owned();
        let span = Span::default();
        return (
            module,
            vec![Diagnostic {
                span,
                message,
                unknown: true,
            }],
        );
    }
    let mut parser = Parser::new(text);
    parser.module(&mut module);
    (module, parser.diagnostics)
}

fn line_starts(text: &str) -> Vec<u32> {
    let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
    std::iter::once(0)
        .chain(ends.map(|(index, _)| index as u32 + 1))
        .collect()
}

/// How many nodes a text may imply without spelling them out, over all its declarations: padding
/// of nested initialisers, and ranges of variables. The limit keeps a short text from filling the
/// memory.
const IMPLIED_NODES: u64 = 1 << 20;

/// Says that what was being parsed is not there. The caller makes an `Unknown` node of it.
struct Confused;

type Parsed<T> = Result<T, Confused>;

struct Parser<'a> {
    text: &'a str,
    /// The tokens that mean something, and [`TokenKind::End`] last.
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    /// What is left of [`IMPLIED_NODES`].
    budget: u64,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        // nvcc's output has about one token in four bytes, line tables and DWARF fewer.
        let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
        tokens.extend(lexer::tokens(text).filter(|token| !token.kind.is_trivia()));
        let end = text.len() as u32;
        tokens.push(Token {
            kind: TokenKind::End,
            start: end,
            end,
        });
        Self {
            text,
            tokens,
            at: 0,
            depth: 0,
            budget: IMPLIED_NODES,
            diagnostics: Vec::new(),
        }
    }

    fn peek(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    fn peek_second(&self) -> TokenKind {
        self.tokens
            .get(self.at + 1)
            .map_or(TokenKind::End, |token| token.kind)
    }

    /// Text of the next token.
    fn word(&self) -> &'a str {
        self.text_of(self.tokens[self.at])
    }

    /// Text of the next token if it is a directive or suffix, without the dot; else empty.
    fn dot(&self) -> &'a str {
        match self.peek() {
            TokenKind::Dot => &self.word()[1..],
            _ => "",
        }
    }

    fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.start as usize..token.end as usize]
    }

    fn bump(&mut self) -> Token {
        let token = self.tokens[self.at];
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.peek() == kind && kind != TokenKind::End;
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, kind: TokenKind) -> Parsed<Token> {
        if self.peek() == kind {
            Ok(self.bump())
        } else {
            Err(Confused)
        }
    }

    fn name(&mut self) -> Parsed<SmolStr> {
        let token = self.expect(TokenKind::Name)?;
        Ok(SmolStr::new(self.text_of(token)))
    }

    /// First byte of the next token.
    fn start(&self) -> u32 {
        self.tokens[self.at].start
    }

    /// From `start` to the end of the last token taken.
    fn span_from(&self, start: u32) -> Span {
        let end = self
            .at
            .checked_sub(1)
            .map_or(0, |last| self.tokens[last].end);
        Span {
            start,
            end: end.max(start),
        }
    }

    fn diagnose(&mut self, span: Span, unknown: bool, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic {
            span,
            message: message.into(),
            unknown,
        });
    }

    /// `message`, and the next token as what was found instead.
    fn diagnose_here(&mut self, message: &str) {
        let token = self.tokens[self.at];
        let span = Span {
            start: token.start,
            end: token.end,
        };
        let found = match token.kind {
            TokenKind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", shorten(self.text_of(token))),
        };
        self.diagnose(span, true, format!("{message}, found {found}"));
    }

    /// Runs `inner` one level deeper, or is confused when that is too deep.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Confused);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips to behind the `}` that closes the `{` the parser stands at; to the end of the text if
    /// nothing closes it.
    fn skip_braces(&mut self) -> bool {
        let mut depth = 0u32;
        loop {
            match self.bump().kind {
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace if depth <= 1 => return true,
                TokenKind::CloseBrace => depth -= 1,
                TokenKind::End => return false,
                _ => {}
            }
        }
    }
}

/// At most the first 40 characters, for a message.
fn shorten(text: &str) -> &str {
    text.char_indices()
        .nth(40)
        .map_or(text, |(end, _)| &text[..end])
}
