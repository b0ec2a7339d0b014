//! `.entry` and `.func`, from the directive to the closing brace.

use smol_str::SmolStr;

use super::{Confused, Parsed, Parser, expression};
use crate::ast::{Function, Linkage, Span};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// The parser stands at `.entry` or `.func`.
    pub(super) fn function(&mut self, linkage: Linkage, start: u32) -> Parsed<Function> {
        let entry = self.dot() == "entry";
        self.bump();
        while self.dot() == "attribute" {
            self.attribute(&mut false)?;
        }
        let returns = match self.peek() {
            TokenKind::OpenParen => self.parameters()?,
            _ => Vec::new(),
        };
        let name_at = self.tokens[self.at];
        let Ok(name) = self.name() else {
            self.diagnose_here("expected the name of a function");
            return Err(Confused);
        };
        let name_span = Span {
            start: name_at.start,
            end: name_at.end,
        };
        let (mut params, mut params_span) = (Vec::new(), None);
        if self.peek() == TokenKind::OpenParen {
            let open = self.start();
            params = self.parameters()?;
            params_span = Some(self.span_from(open));
        }
        let directives = self.function_directives()?;
        let body = match self.peek() {
            TokenKind::OpenBrace => Some(self.body()),
            TokenKind::Semicolon => {
                self.bump();
                None
            }
            _ => {
                self.diagnose_here("expected `{` or `;` after the head of a function");
                return Err(Confused);
            }
        };
        Ok(Function {
            entry,
            linkage,
            name,
            returns,
            params,
            params_span,
            directives,
            body,
            span: self.span_from(start),
            name_span,
        })
    }

    /// `.maxntid 256, 1, 1 .minnctapersm 2 .noreturn …` up to the body.
    fn function_directives(&mut self) -> Parsed<Vec<(SmolStr, Vec<u64>)>> {
        let mut directives = Vec::new();
        while self.peek() == TokenKind::Dot {
            match self.dot() {
                "pragma" => {
                    self.pragma()?;
                    continue;
                }
                "attribute" => {
                    self.attribute(&mut false)?;
                    continue;
                }
                _ => {}
            }
            let name = SmolStr::new(self.dot());
            if !is_function_directive(&name) {
                let span = Span {
                    start: self.start(),
                    end: self.tokens[self.at].end,
                };
                self.diagnose(
                    span,
                    true,
                    format!("unknown directive .{}", super::shorten(&name)),
                );
            }
            self.bump();
            let mut arguments = Vec::new();
            while self.peek() == TokenKind::Int {
                arguments.push(expression::literal(self.word()).ok_or(Confused)?);
                self.bump();
                if !self.eat(TokenKind::Comma) {
                    break;
                }
            }
            directives.push((name, arguments));
        }
        Ok(directives)
    }
}

fn is_function_directive(name: &str) -> bool {
    matches!(
        name,
        "maxnreg"
            | "maxntid"
            | "reqntid"
            | "minnctapersm"
            | "maxnctapersm"
            | "noreturn"
            | "reqnctapercluster"
            | "explicitcluster"
            | "maxclusterrank"
            | "blocksareclusters"
            | "abi_preserve"
            | "abi_preserve_control"
    )
}
