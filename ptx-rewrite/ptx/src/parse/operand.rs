//! Instructions and their operands.

use smol_str::SmolStr;

use super::variable::float_bits;
use super::{Confused, Parsed, Parser};
use crate::ast::{AddressBase, Guard, Init, Instruction, Operand, Span};
use crate::isa;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// The parser stands at the guard or the opcode.
    pub(super) fn instruction(&mut self, loc: Option<u32>) -> Parsed<Instruction> {
        let start = self.start();
        let mut guard = None;
        if self.eat(TokenKind::At) {
            let negated = self.eat(TokenKind::Bang);
            let Ok(predicate) = self.name() else {
                self.diagnose_here("expected a predicate after `@`");
                return Err(Confused);
            };
            guard = Some(Guard { negated, predicate });
        }
        let opcode_at = self.tokens[self.at];
        let Ok(opcode) = self.name() else {
            self.diagnose_here("expected an instruction");
            return Err(Confused);
        };
        let opcode_span = Span {
            start: opcode_at.start,
            end: opcode_at.end,
        };
        let mut suffixes = Vec::with_capacity(4);
        while self.peek() == TokenKind::Dot {
            suffixes.push(SmolStr::new(self.dot()));
            self.bump();
        }
        let call = opcode == "call";
        let mut operands = Vec::with_capacity(3);
        if self.peek() != TokenKind::Semicolon {
            loop {
                let before = self.at;
                match self.operand(call) {
                    Ok(operand) => operands.push(operand),
                    Err(confused) => {
                        // Not an unknown instruction, but text that is none.
                        self.diagnose_here("expected an operand");
                        self.at = self.at.max(before);
                        return Err(confused);
                    }
                }
                if !self.eat(TokenKind::Comma) {
                    break;
                }
            }
        }
        if !self.eat(TokenKind::Semicolon) {
            self.diagnose_here("expected `,` or `;` after an operand");
            return Err(Confused);
        }
        if isa::lookup(&opcode).is_none() {
            let message = format!("unknown instruction {}", super::shorten(&opcode));
            self.diagnose(opcode_span, true, message);
        }
        let span = self.span_from(start);
        let mut instruction = Instruction {
            guard,
            opcode,
            suffixes,
            operands,
            span,
            loc,
            meaning: isa::Meaning::default(),
        };
        instruction.meaning = isa::Meaning::of(&instruction);
        Ok(instruction)
    }

    fn operand(&mut self, call: bool) -> Parsed<Operand> {
        let first = self.primary(call)?;
        if !self.eat(TokenKind::Pipe) {
            return Ok(first);
        }
        let second = self.primary(call)?;
        Ok(Operand::Pair(Box::new(first), Box::new(second)))
    }

    fn primary(&mut self, call: bool) -> Parsed<Operand> {
        match self.peek() {
            TokenKind::Name => self.named(),
            TokenKind::OpenBracket => self.nested(Self::bracket),
            TokenKind::OpenBrace => {
                self.bump();
                let elements = self.nested(|parser| parser.list(TokenKind::CloseBrace))?;
                Ok(Operand::Vector(elements))
            }
            TokenKind::OpenParen if call => {
                self.bump();
                let elements = self.nested(|parser| parser.list(TokenKind::CloseParen))?;
                Ok(Operand::Paren(elements))
            }
            TokenKind::F32 | TokenKind::F64 | TokenKind::Decimal => self.float_operand(false),
            TokenKind::Bang if self.peek_second() == TokenKind::Name => {
                self.bump();
                Ok(Operand::Not(Box::new(self.named()?)))
            }
            TokenKind::Minus
                if matches!(
                    self.peek_second(),
                    TokenKind::F32 | TokenKind::F64 | TokenKind::Decimal
                ) =>
            {
                self.bump();
                self.float_operand(true)
            }
            TokenKind::Minus
                if self.peek_second() == TokenKind::Name && !self.second_is_warp_size() =>
            {
                self.bump();
                Ok(Operand::Not(Box::new(self.named()?)))
            }
            _ if self.at_expression() => self.expression().map(Operand::Int),
            TokenKind::String => {
                let start = self.start();
                self.bump();
                let span = self.span_from(start);
                self.diagnose(span, true, "a string is not an operand");
                Ok(Operand::Unknown(span))
            }
            _ => Err(Confused),
        }
    }

    fn second_is_warp_size(&self) -> bool {
        self.tokens
            .get(self.at + 1)
            .is_some_and(|&token| self.text_of(token) == "WARP_SZ")
    }

    /// Operands with commas up to `close`, which may follow at once.
    fn list(&mut self, close: TokenKind) -> Parsed<Vec<Operand>> {
        let mut elements = Vec::new();
        if self.eat(close) {
            return Ok(elements);
        }
        loop {
            elements.push(self.operand(false)?);
            if self.eat(close) {
                return Ok(elements);
            }
            self.expect(TokenKind::Comma)?;
        }
    }

    /// `[…]`: an address if it holds one name or number, otherwise a texture operand or the like.
    fn bracket(&mut self) -> Parsed<Operand> {
        self.bump();
        if self.peek() == TokenKind::Name && self.peek_second() == TokenKind::Minus {
            let start = self.start();
            let span = Span {
                start,
                end: self.tokens[self.at + 1].end,
            };
            let message = "an offset is added, also a negative one: expected `+` before `-`";
            self.diagnose(span, false, message);
        }
        let mut elements = self.list(TokenKind::CloseBracket)?;
        Ok(match elements.as_mut_slice() {
            [
                Operand::Name {
                    name,
                    component: None,
                    offset,
                },
            ] => Operand::Address {
                base: AddressBase::Name(std::mem::take(name)),
                offset: *offset,
            },
            // Bits of the value: a negative address is one at the top of memory.
            [Operand::Int(address)] => Operand::Address {
                base: AddressBase::Absolute(*address as u64),
                offset: 0,
            },
            _ => Operand::Bracket(elements),
        })
    }

    fn named(&mut self) -> Parsed<Operand> {
        if self.word() == "_" {
            self.bump();
            return Ok(Operand::Sink);
        }
        let name = self.name()?;
        let component = match self.dot() {
            "x" | "r" => Some(0),
            "y" | "g" => Some(1),
            "z" | "b" => Some(2),
            "w" | "a" => Some(3),
            "b0" => Some(4),
            "b1" => Some(5),
            "b2" => Some(6),
            "b3" => Some(7),
            "h0" => Some(8),
            "h1" => Some(9),
            word => selectors(word),
        };
        if component.is_some() {
            self.bump();
        }
        let offset = self.offset()?;
        Ok(Operand::Name {
            name,
            component,
            offset,
        })
    }

    fn float_operand(&mut self, negative: bool) -> Parsed<Operand> {
        let token = self.bump();
        match float_bits(token.kind, self.text_of(token)) {
            Some(Init::F32(bits)) => Ok(Operand::F32(bits ^ (u32::from(negative) << 31))),
            Some(Init::F64(bits)) => Ok(Operand::F64(bits ^ (u64::from(negative) << 63))),
            _ => Err(Confused),
        }
    }
}

/// The selectors of a SIMD video instruction: `h10` to `h33`, `b10` to `b7777`.
fn selectors(word: &str) -> Option<u16> {
    let (parts, most, halves) = match word.strip_prefix('h') {
        Some(parts) => (parts, 2, 0x8000),
        None => (word.strip_prefix('b')?, 4, 0),
    };
    let digits = parts.len();
    let valid =
        (2..=most).contains(&digits) && parts.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    let value = u16::from_str_radix(parts, 8).ok().filter(|_| valid)?;
    Some(halves | value | (digits as u16) << 12)
}
