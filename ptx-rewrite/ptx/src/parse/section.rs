//! `.section`: DWARF, skipped, except that the strings of `.debug_str` are collected because
//! `.loc … function_name` refers to them.

use std::collections::HashMap;

use smol_str::SmolStr;

use super::{Confused, Parsed, Parser};
use crate::ast::{DebugStrings, Item, Module};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn section(&mut self, module: &mut Module) -> Parsed<()> {
        let start = self.start();
        self.bump();
        let name = match self.peek() {
            TokenKind::Dot | TokenKind::Name => SmolStr::new(self.word()),
            _ => {
                self.diagnose_here("expected a section name");
                return Err(Confused);
            }
        };
        self.bump();
        if self.peek() != TokenKind::OpenBrace {
            self.diagnose_here("expected `{`");
            return Err(Confused);
        }
        let first = self.at;
        if !self.skip_braces() {
            self.diagnose_here("section is not closed: expected `}`");
        }
        if name == ".debug_str" {
            self.debug_strings(first, &mut module.debug_strings);
        }
        let span = self.span_from(start);
        module.items.push(Item::Section { name, span });
        Ok(())
    }

    /// Reads the tokens from `first` to the current one as labels and data.
    fn debug_strings(&self, first: usize, strings: &mut DebugStrings) {
        let DebugStrings { bytes, labels } = strings;
        let mut width = 1;
        for (index, &token) in self.tokens[first..self.at].iter().enumerate() {
            let word = self.text_of(token);
            match token.kind {
                TokenKind::Dot => {
                    width = match word {
                        ".b16" => 2,
                        ".b32" => 4,
                        ".b64" => 8,
                        _ => 1,
                    }
                }
                TokenKind::Name if self.tokens[first + index + 1].kind == TokenKind::Colon => {
                    note(labels, word, bytes.len());
                }
                TokenKind::Int => {
                    let value = super::expression::literal(word).unwrap_or(0);
                    bytes.extend_from_slice(&value.to_le_bytes()[..width]);
                }
                _ => {}
            }
        }
    }
}

fn note(labels: &mut HashMap<SmolStr, u32>, label: &str, offset: usize) {
    // Offsets fit: every byte took at least two bytes of text.
    labels.insert(SmolStr::new(label), offset as u32);
}
