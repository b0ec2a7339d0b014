//! Module scope: directives, and the dispatch to functions, variables and sections.

use smol_str::SmolStr;

use super::{Confused, Parsed, Parser};
use crate::ast::{Item, Linkage, Module, Span};
use crate::lexer::TokenKind;

/// Directives that can begin an item. What is not understood is skipped up to one of these.
const ITEM_STARTS: &[&str] = &[
    "version",
    "target",
    "address_size",
    "file",
    "section",
    "pragma",
    "alias",
    "extern",
    "visible",
    "weak",
    "common",
    "entry",
    "func",
    "global",
    "const",
    "shared",
    "tex",
    "local",
    "sreg",
];

impl Parser<'_> {
    pub(super) fn module(&mut self, module: &mut Module) {
        while self.peek() != TokenKind::End {
            let first = self.at;
            let start = self.start();
            if self.item(module).is_err() {
                self.skip_item(first);
                let span = self.span_from(start);
                module.items.push(Item::Unknown(span));
            }
        }
    }

    fn item(&mut self, module: &mut Module) -> Parsed<()> {
        let start = self.start();
        if self.eat(TokenKind::DwarfLine) || self.eat(TokenKind::Semicolon) {
            module.items.push(Item::Directive(self.span_from(start)));
            return Ok(());
        }
        match self.dot() {
            "version" => {
                self.bump();
                module.version = Some(self.version()?);
            }
            "target" => {
                self.bump();
                module.target = self.names()?;
            }
            "address_size" => {
                self.bump();
                module.address_size = Some(self.integer()?);
            }
            "file" => {
                self.bump();
                self.file(module)?;
            }
            "pragma" => {
                self.pragma()?;
            }
            "section" => return self.section(module),
            "alias" => return self.alias(module),
            "extern" | "visible" | "weak" | "common" | "entry" | "func" | "global" | "const"
            | "shared" | "tex" | "local" | "sreg" | "attribute" => {
                return self.declaration(module, start);
            }
            _ => {
                let message = match self.peek() {
                    TokenKind::Dot => format!("unknown directive {}", super::shorten(self.word())),
                    _ => format!(
                        "unexpected `{}` at module scope",
                        super::shorten(self.word())
                    ),
                };
                let end = self.tokens[self.at].end;
                self.diagnose(Span { start, end }, true, message);
                return Err(Confused);
            }
        }
        module.items.push(Item::Directive(self.span_from(start)));
        Ok(())
    }

    fn declaration(&mut self, module: &mut Module, start: u32) -> Parsed<()> {
        let linkage = self.linkage();
        if matches!(self.dot(), "entry" | "func") {
            let function = self.function(linkage, start)?;
            if function.directive("noreturn").is_some() {
                module.noreturn.insert(function.name.clone());
            }
            module.items.push(Item::Function(function));
            return Ok(());
        }
        let variables = self.variable_statement(linkage, start)?;
        module
            .items
            .extend(variables.into_iter().map(Item::Variable));
        Ok(())
    }

    pub(super) fn linkage(&mut self) -> Linkage {
        let mut linkage = Linkage::Local;
        loop {
            linkage = match self.dot() {
                "extern" => Linkage::Extern,
                "visible" => Linkage::Visible,
                "weak" => Linkage::Weak,
                "common" => Linkage::Common,
                _ => return linkage,
            };
            self.bump();
        }
    }

    /// Skips what `item` gave up on: to a semicolon or to what looks like the next item, and over
    /// anything in braces. Takes at least one token counted from `first`.
    fn skip_item(&mut self, first: usize) {
        while self.peek() != TokenKind::End {
            match self.peek() {
                TokenKind::Dot if self.at > first && ITEM_STARTS.contains(&self.dot()) => return,
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::OpenBrace => {
                    self.skip_braces();
                }
                _ => {
                    self.bump();
                }
            }
        }
    }

    fn version(&mut self) -> Parsed<(u32, u32)> {
        let word = self.word();
        let parsed = word
            .split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let Some(version) = parsed else {
            self.diagnose_here("expected a version such as 7.0");
            return Err(Confused);
        };
        self.bump();
        Ok(version)
    }

    /// `a, b, c`
    pub(super) fn names(&mut self) -> Parsed<Vec<SmolStr>> {
        let mut names = Vec::new();
        loop {
            match self.name() {
                Ok(name) => names.push(name),
                Err(confused) => {
                    self.diagnose_here("expected a name");
                    return Err(confused);
                }
            }
            if !self.eat(TokenKind::Comma) {
                return Ok(names);
            }
        }
    }

    /// A literal that fits in 32 bits.
    pub(super) fn integer(&mut self) -> Parsed<u32> {
        let value = match self.peek() {
            TokenKind::Int => super::expression::literal(self.word()),
            _ => None,
        };
        let Some(value) = value.and_then(|value| u32::try_from(value).ok()) else {
            self.diagnose_here("expected a number");
            return Err(Confused);
        };
        self.bump();
        Ok(value)
    }

    /// `index "path" [, timestamp, size]` of a `.file`.
    pub(super) fn file(&mut self, module: &mut Module) -> Parsed<()> {
        let index = self.integer()?;
        if self.peek() != TokenKind::String {
            self.diagnose_here("expected a path in quotes");
            return Err(Confused);
        }
        let word = self.word();
        self.bump();
        module
            .files
            .push((index, unescaped(&word[1..word.len() - 1])));
        while self.eat(TokenKind::Comma) {
            // Timestamps do not fit in 32 bits and are of no use here.
            self.expect(TokenKind::Int)?;
        }
        Ok(())
    }

    /// `.pragma "…", "…";`
    pub(super) fn pragma(&mut self) -> Parsed<()> {
        self.bump();
        loop {
            if !self.eat(TokenKind::String) {
                self.diagnose_here("expected a string");
                return Err(Confused);
            }
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.semicolon()
    }

    pub(super) fn semicolon(&mut self) -> Parsed<()> {
        if self.eat(TokenKind::Semicolon) {
            return Ok(());
        }
        self.diagnose_here("expected `;`");
        Err(Confused)
    }

    fn alias(&mut self, module: &mut Module) -> Parsed<()> {
        let start = self.start();
        self.bump();
        let names = self.names()?;
        let [name, aliasee] = names.as_slice() else {
            self.diagnose(
                self.span_from(start),
                true,
                "expected `.alias name, aliasee`",
            );
            return Err(Confused);
        };
        let (name, aliasee) = (name.clone(), aliasee.clone());
        self.semicolon()?;
        let span = self.span_from(start);
        module.items.push(Item::Alias {
            name,
            aliasee,
            span,
        });
        Ok(())
    }
}

/// A path as the file system has it: nvcc writes bytes beyond ASCII as three octal digits behind a backslash.
fn unescaped(word: &str) -> SmolStr {
    if !word.contains('\\') {
        return SmolStr::new(word);
    }
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        (rest, _) = match (first, octal, tail) {
            (b'\\', Some(byte), _) => (&tail[3..], bytes.push(byte)),
            (b'\\', None, [escaped @ (b'\\' | b'"'), tail @ ..]) => (tail, bytes.push(*escaped)),
            _ => (tail, bytes.push(*first)),
        };
    }
    String::from_utf8(bytes).map_or_else(|_| SmolStr::new(word), SmolStr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_file_system() {
        for (word, path) in [
            ("/src/k.cu", "/src/k.cu"),
            (r"/src/\303\251t\303\251.cu", "/src/été.cu"),
            (r"C:\\k.cu", r"C:\k.cu"),
            (r#"a\"b"#, r#"a"b"#),
            // No text in UTF-8, no octal digits, and none left.
            (r"\377.cu", r"\377.cu"),
            (r"\9\12", r"\9\12"),
            (r"\777", r"\777"),
            (r"\", r"\"),
        ] {
            assert_eq!(unescaped(word), path);
        }
    }
}
