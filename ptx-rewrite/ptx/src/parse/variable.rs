//! Variables, parameters and their initialisers.

use smol_str::SmolStr;

use super::{Confused, Parsed, Parser, expression};
use crate::ast::{Init, Linkage, Space, Span, Type, Variable};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// A declaration with its semicolon. The parser stands behind the linkage directives.
    pub(super) fn variable_statement(
        &mut self,
        linkage: Linkage,
        start: u32,
    ) -> Parsed<Vec<Variable>> {
        let mut prototype = self.variable_type(linkage, start)?;
        let mut variables = Vec::new();
        loop {
            let mut variable = prototype.clone();
            let range = self.declarator(&mut variable)?;
            variable.span = self.span_from(prototype.span.start);
            match range {
                None => variables.push(variable),
                Some(count) => {
                    // A variable is much larger than an element of an initialiser.
                    self.spend(u64::from(count) * 16)?;
                    let end = variable.span.end;
                    variables.extend((0..count).map(|index| Variable {
                        name: SmolStr::from(format!("{}{index}", variable.name)),
                        // Spans of one statement must not overlap.
                        span: match index {
                            0 => variable.span,
                            _ => Span { start: end, end },
                        },
                        ..variable.clone()
                    }));
                }
            }
            if !self.eat(TokenKind::Comma) {
                break;
            }
            // The directives belong to the first.
            prototype.span.start = self.start();
        }
        if !self.eat(TokenKind::Semicolon) {
            self.diagnose_here("expected `;` after a variable");
            return Err(Confused);
        }
        if let Some(last) = variables.last_mut() {
            last.span = self.span_from(last.span.start);
        }
        Ok(variables)
    }

    /// `( parameter, … )`, the parser standing at the parenthesis.
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Variable>> {
        self.expect(TokenKind::OpenParen)?;
        let mut parameters = Vec::new();
        if self.eat(TokenKind::CloseParen) {
            return Ok(parameters);
        }
        loop {
            let start = self.start();
            let mut parameter = self.variable_type(Linkage::Local, start)?;
            self.declarator(&mut parameter)?;
            parameter.span = self.span_from(start);
            parameters.push(parameter);
            if self.eat(TokenKind::CloseParen) {
                return Ok(parameters);
            }
            if !self.eat(TokenKind::Comma) {
                self.diagnose_here("expected `,` or `)` after a parameter");
                return Err(Confused);
            }
        }
    }

    /// Everything in front of the name, in any order.
    fn variable_type(&mut self, linkage: Linkage, start: u32) -> Parsed<Variable> {
        let mut ty = None;
        let mut variable = Variable {
            space: Space::Generic,
            linkage,
            ty: Type::B8,
            vector: 1,
            align: None,
            name: SmolStr::default(),
            dims: None,
            init: None,
            managed: false,
            ptr: None,
            span: Span { start, end: start },
        };
        while self.peek() == TokenKind::Dot {
            let dot = self.dot();
            if let Some(found) = Type::from_suffix(dot) {
                ty = Some(found);
            } else if let Some(space) = Space::from_suffix(dot) {
                match &mut variable.ptr {
                    Some(pointee) => *pointee = Some(space),
                    None => variable.space = space,
                }
            } else {
                match dot {
                    "v2" => variable.vector = 2,
                    "v4" => variable.vector = 4,
                    "v8" => variable.vector = 8,
                    "ptr" => variable.ptr = Some(None),
                    "align" => {
                        self.bump();
                        let align = self.integer()?;
                        // The alignment of what a `.ptr` parameter points to is not its own.
                        if variable.ptr.is_none() {
                            variable.align = Some(align);
                        }
                        continue;
                    }
                    "attribute" => {
                        self.attribute(&mut variable.managed)?;
                        continue;
                    }
                    _ => {
                        self.diagnose_here("expected a type or an attribute of a variable");
                        return Err(Confused);
                    }
                }
            }
            self.bump();
        }
        let Some(ty) = ty else {
            self.diagnose_here("expected the type of a variable");
            return Err(Confused);
        };
        variable.ty = ty;
        Ok(variable)
    }

    /// `.attribute(.managed, .unified(1, 2))`
    pub(super) fn attribute(&mut self, managed: &mut bool) -> Parsed<()> {
        self.bump();
        self.expect(TokenKind::OpenParen)?;
        let mut depth = 1;
        while depth > 0 {
            match self.peek() {
                TokenKind::OpenParen => depth += 1,
                TokenKind::CloseParen => depth -= 1,
                TokenKind::Dot => *managed |= self.dot() == "managed",
                TokenKind::Comma | TokenKind::Int | TokenKind::Name => {}
                _ => {
                    self.diagnose_here("expected `)` after an attribute");
                    return Err(Confused);
                }
            }
            self.bump();
        }
        Ok(())
    }

    /// Name, dimensions and initialiser. Returns the count of the `name<count>` form.
    fn declarator(&mut self, variable: &mut Variable) -> Parsed<Option<u32>> {
        let Ok(name) = self.name() else {
            self.diagnose_here("expected the name of a variable");
            return Err(Confused);
        };
        variable.name = name;
        let mut range = None;
        if self.eat(TokenKind::Less) {
            range = Some(self.integer()?);
            self.expect(TokenKind::Greater)?;
        }
        while self.eat(TokenKind::OpenBracket) {
            let dim = if self.peek() == TokenKind::CloseBracket {
                0
            } else {
                let value = self.expression()?;
                u64::try_from(value).map_err(|_| Confused)?
            };
            self.expect(TokenKind::CloseBracket)?;
            variable.dims.get_or_insert_default().push(dim);
        }
        if self.eat(TokenKind::Equal) {
            variable.init = Some(self.initialiser(variable)?);
        }
        Ok(range)
    }

    fn initialiser(&mut self, variable: &Variable) -> Parsed<Vec<Init>> {
        let mut elements = Vec::new();
        if self.peek() == TokenKind::OpenBrace {
            let mut dims = variable.dims.clone().unwrap_or_default();
            if variable.vector > 1 {
                dims.push(u64::from(variable.vector));
            }
            self.braced(&dims, variable.ty, &mut elements)?;
        } else {
            elements.push(self.element(variable.ty)?);
        }
        Ok(elements)
    }

    /// `{ a, { b, c }, … }`. A nested list fills the array of the inner dimensions.
    fn braced(&mut self, dims: &[u64], ty: Type, elements: &mut Vec<Init>) -> Parsed<()> {
        self.expect(TokenKind::OpenBrace)?;
        let inner = dims.get(1..).unwrap_or_default();
        let inner_size = inner.iter().fold(1u64, |all, &dim| all.saturating_mul(dim));
        while !self.eat(TokenKind::CloseBrace) {
            if self.peek() == TokenKind::OpenBrace {
                let end = (elements.len() as u64).saturating_add(inner_size);
                self.nested(|parser| parser.braced(inner, ty, elements))?;
                let padding = end.saturating_sub(elements.len() as u64);
                self.spend(padding)?;
                elements.extend((0..padding).map(|_| Init::Int(0)));
            } else {
                let element = self.element(ty)?;
                elements.push(element);
            }
            if !self.eat(TokenKind::Comma) && self.peek() != TokenKind::CloseBrace {
                self.diagnose_here("expected `,` or `}` in an initialiser");
                return Err(Confused);
            }
        }
        Ok(())
    }

    /// Accounts for nodes that the text implies but does not spell out.
    fn spend(&mut self, nodes: u64) -> Parsed<()> {
        match self.budget.checked_sub(nodes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => {
                self.diagnose_here("array is too large to be filled in");
                Err(Confused)
            }
        }
    }

    fn element(&mut self, ty: Type) -> Parsed<Init> {
        if self.peek() == TokenKind::Name && self.word() != "WARP_SZ" {
            return self.symbol(None);
        }
        if let Some(value) = self.float(ty == Type::F32) {
            return Ok(value);
        }
        if self.peek() == TokenKind::Int && self.peek_second() == TokenKind::OpenParen {
            let mask = expression::literal(self.word()).ok_or(Confused)?;
            self.bump();
            self.bump();
            let symbol = self.symbol(Some(mask))?;
            self.expect(TokenKind::CloseParen)?;
            return Ok(symbol);
        }
        match self.expression() {
            // Bits of the value: -1 is all ones.
            Ok(value) => Ok(Init::Int(value as u64)),
            Err(confused) => {
                self.diagnose_here("expected a constant or a symbol");
                Err(confused)
            }
        }
    }

    fn symbol(&mut self, mask: Option<u64>) -> Parsed<Init> {
        let mut name = self.name()?;
        let generic = name == "generic" && self.eat(TokenKind::OpenParen);
        let mut offset = 0;
        if generic {
            name = self.name()?;
            offset = self.offset()?;
            self.expect(TokenKind::CloseParen)?;
        }
        offset = offset.checked_add(self.offset()?).ok_or(Confused)?;
        Ok(Init::Symbol {
            name,
            offset,
            generic,
            mask,
        })
    }

    /// `+ constant - constant …`, 0 if there is none.
    pub(super) fn offset(&mut self) -> Parsed<i64> {
        let mut sum = 0i128;
        loop {
            let sign = match self.peek() {
                TokenKind::Plus => 1,
                TokenKind::Minus => -1,
                _ => return i64::try_from(sum).map_err(|_| Confused),
            };
            self.bump();
            // Each term is below 2^64, and a text holds fewer than 2^32 of them.
            sum += self.term()? * sign;
        }
    }

    /// A floating-point literal with an optional sign.
    fn float(&mut self, single: bool) -> Option<Init> {
        let negative = self.peek() == TokenKind::Minus;
        let kind = if negative {
            self.peek_second()
        } else {
            self.peek()
        };
        if !matches!(kind, TokenKind::F32 | TokenKind::F64 | TokenKind::Decimal) {
            return None;
        }
        if negative {
            self.bump();
        }
        let token = self.bump();
        Some(match float_bits(kind, self.text_of(token))? {
            Init::F32(bits) => Init::F32(bits ^ (u32::from(negative) << 31)),
            Init::F64(bits) => {
                let bits = bits ^ (u64::from(negative) << 63);
                if single && kind == TokenKind::Decimal {
                    Init::F32((f64::from_bits(bits) as f32).to_bits())
                } else {
                    Init::F64(bits)
                }
            }
            other => other,
        })
    }
}

/// The bits of a floating-point literal; decimal ones are taken as 64 bits wide.
pub(super) fn float_bits(kind: TokenKind, word: &str) -> Option<Init> {
    match kind {
        TokenKind::F32 => u32::from_str_radix(&word[2..], 16).ok().map(Init::F32),
        TokenKind::F64 => u64::from_str_radix(&word[2..], 16).ok().map(Init::F64),
        TokenKind::Decimal => word
            .parse::<f64>()
            .ok()
            .map(|value| Init::F64(value.to_bits())),
        _ => None,
    }
}
