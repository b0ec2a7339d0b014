//! A text that is parsed once, for all who need to know what it says.

use std::sync::Arc;

use crate::ast::{Diagnostic, Module};

/// A module and what the parser has to say of its text. Copies are cheap, and share both.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The module, with its text.
    pub module: Arc<Module>,
    /// What the parser has to say, in text order.
    pub diagnostics: Arc<[Diagnostic]>,
}

impl Parsed {
    /// Parses a text.
    pub fn new(text: &str) -> Self {
        let (module, diagnostics) = crate::parse(text);
        Self {
            module: Arc::new(module),
            diagnostics: diagnostics.into(),
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.module.text
    }
}

impl From<&str> for Parsed {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<&String> for Parsed {
    fn from(text: &String) -> Self {
        Self::new(text)
    }
}

impl From<&Parsed> for Parsed {
    fn from(parsed: &Parsed) -> Self {
        parsed.clone()
    }
}
