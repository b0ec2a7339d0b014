//! Integer literals and constant expressions, folded while parsing.
//!
//! The manual folds in 64 bits, signed or unsigned by operand. Here values are `i128`, wide enough
//! for both; the results differ only when a 64-bit operation overflows.

use super::{Confused, Parsed, Parser};
use crate::lexer::TokenKind;

/// Lanes of a warp, the value of the constant `WARP_SZ`.
const WARP_SIZE: i128 = 32;

/// Precedence of `*`, the highest.
const PRODUCT: u8 = 9;

/// Value of an integer literal: decimal, octal, hexadecimal, binary, with an optional `U`.
/// None when it does not fit in 64 bits.
pub(super) fn literal(word: &str) -> Option<u64> {
    let word = word.strip_suffix('U').unwrap_or(word);
    let (digits, radix) = match word.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&word[2..], 16),
        [b'0', b'b' | b'B', ..] => (&word[2..], 2),
        [b'0', _, ..] => (&word[1..], 8),
        _ => (word, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}

impl Parser<'_> {
    /// True when the next token can start a constant expression.
    pub(super) fn at_expression(&self) -> bool {
        match self.peek() {
            TokenKind::Int | TokenKind::Tilde | TokenKind::OpenParen => true,
            TokenKind::Minus | TokenKind::Plus | TokenKind::Bang => {
                matches!(
                    self.peek_second(),
                    TokenKind::Int | TokenKind::OpenParen | TokenKind::Minus | TokenKind::Tilde
                )
            }
            _ => false,
        }
    }

    pub(super) fn expression(&mut self) -> Parsed<i128> {
        let condition = self.binary(0)?;
        if !self.eat(TokenKind::Question) {
            return Ok(condition);
        }
        self.nested(|parser| {
            let yes = parser.expression()?;
            parser.expect(TokenKind::Colon)?;
            let no = parser.expression()?;
            Ok(if condition != 0 { yes } else { no })
        })
    }

    /// What may follow the `+` or `-` of an address: products, no sums.
    pub(super) fn term(&mut self) -> Parsed<i128> {
        self.binary(PRODUCT)
    }

    fn binary(&mut self, minimum: u8) -> Parsed<i128> {
        let mut left = self.unary()?;
        while let Some((operator, precedence, tokens)) = self.operator() {
            if precedence < minimum {
                break;
            }
            self.at += tokens;
            let right = self.nested(|parser| parser.binary(precedence + 1))?;
            left = apply(operator, left, right).ok_or(Confused)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<i128> {
        let value = match self.peek() {
            TokenKind::Int => {
                let value = literal(self.word()).ok_or(Confused)?;
                self.bump();
                return Ok(i128::from(value));
            }
            TokenKind::Name if self.word() == "WARP_SZ" => {
                self.bump();
                return Ok(WARP_SIZE);
            }
            kind @ (TokenKind::Minus | TokenKind::Plus | TokenKind::Tilde | TokenKind::Bang) => {
                self.bump();
                let value = self.nested(Self::unary)?;
                match kind {
                    TokenKind::Minus => -value,
                    TokenKind::Tilde => !value,
                    TokenKind::Bang => i128::from(value == 0),
                    _ => value,
                }
            }
            TokenKind::OpenParen => {
                self.bump();
                let cast = self.dot();
                if matches!(cast, "s64" | "u64") {
                    self.bump();
                    self.expect(TokenKind::CloseParen)?;
                    let value = self.nested(Self::unary)?;
                    return Ok(if cast == "s64" {
                        i128::from(value as i64)
                    } else {
                        i128::from(value as u64)
                    });
                }
                let value = self.nested(Self::expression)?;
                self.expect(TokenKind::CloseParen)?;
                value
            }
            _ => return Err(Confused),
        };
        // Keeps every operand below 2^64 in size, so that no operation on two of them overflows.
        let fits = value.unsigned_abs() < 1 << 64;
        if fits { Ok(value) } else { Err(Confused) }
    }

    /// The binary operator at hand, its precedence as in C, and how many tokens it takes.
    fn operator(&self) -> Option<(&'static str, u8, usize)> {
        use TokenKind::{
            Ampersand, Bang, Caret, Equal, Greater, Less, Minus, Percent, Pipe, Plus, Slash, Star,
        };
        let first = self.tokens[self.at];
        let next = self
            .tokens
            .get(self.at + 1)
            .filter(|next| next.start == first.end);
        let row = match (first.kind, next.map(|next| next.kind)) {
            (Pipe, Some(Pipe)) => ("||", 0, 2),
            (Ampersand, Some(Ampersand)) => ("&&", 1, 2),
            (Equal, Some(Equal)) => ("==", 5, 2),
            (Bang, Some(Equal)) => ("!=", 5, 2),
            (Less, Some(Equal)) => ("<=", 6, 2),
            (Greater, Some(Equal)) => (">=", 6, 2),
            (Less, Some(Less)) => ("<<", 7, 2),
            (Greater, Some(Greater)) => (">>", 7, 2),
            (Pipe, _) => ("|", 2, 1),
            (Caret, _) => ("^", 3, 1),
            (Ampersand, _) => ("&", 4, 1),
            (Less, _) => ("<", 6, 1),
            (Greater, _) => (">", 6, 1),
            (Plus, _) => ("+", 8, 1),
            (Minus, _) => ("-", 8, 1),
            (Star, _) => ("*", PRODUCT, 1),
            (Slash, _) => ("/", PRODUCT, 1),
            (Percent, _) => ("%", PRODUCT, 1),
            _ => return None,
        };
        Some(row)
    }
}

/// None for a division by zero, a shift by more than 63 and a result beyond 64 bits.
fn apply(operator: &str, left: i128, right: i128) -> Option<i128> {
    let shift = || u32::try_from(right).ok().filter(|&by| by < 64);
    let value = match operator {
        "||" => i128::from(left != 0 || right != 0),
        "&&" => i128::from(left != 0 && right != 0),
        "==" => i128::from(left == right),
        "!=" => i128::from(left != right),
        "<=" => i128::from(left <= right),
        ">=" => i128::from(left >= right),
        "<" => i128::from(left < right),
        ">" => i128::from(left > right),
        "<<" => i128::from((left as u64) << shift()?),
        ">>" => left >> shift()?,
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "+" => left + right,
        "-" => left - right,
        "*" => left.checked_mul(right)?,
        "/" => left.checked_div(right)?,
        "%" => left.checked_rem(right)?,
        _ => return None,
    };
    (value.unsigned_abs() < 1 << 64).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(text: &str) -> Option<i128> {
        let mut parser = Parser::new(text);
        let value = parser.expression().ok()?;
        (parser.peek() == TokenKind::End).then_some(value)
    }

    #[test]
    fn literals() {
        assert_eq!(literal("0"), Some(0));
        assert_eq!(literal("017"), Some(15));
        assert_eq!(literal("0x1FU"), Some(31));
        assert_eq!(literal("0b101"), Some(5));
        assert_eq!(literal("18446744073709551615"), Some(u64::MAX));
        assert_eq!(literal("18446744073709551616"), None);
    }

    #[test]
    fn precedence_is_that_of_c() {
        assert_eq!(fold("1+2*3-4"), Some(3));
        assert_eq!(fold("(1+2)*3"), Some(9));
        assert_eq!(fold("1 << 4 | 3"), Some(19));
        assert_eq!(fold("10-3-2"), Some(5));
        assert_eq!(fold("2 > 1 ? WARP_SZ : -1"), Some(32));
        assert_eq!(fold("-8"), Some(-8));
        assert_eq!(fold("~0 & 0xff"), Some(255));
        assert_eq!(fold("(.u64)-1"), Some(i128::from(u64::MAX)));
        assert_eq!(fold("!0 == 1"), Some(1));
    }

    #[test]
    fn what_has_no_value_is_refused() {
        for text in [
            "1/0",
            "1%0",
            "1<<64",
            "1+",
            "(1",
            "0xffffffffffffffff*0xffffffffffffffff*2",
        ] {
            assert_eq!(fold(text), None, "{text}");
        }
        assert_eq!(fold(&"(".repeat(100_000)), None);
        assert_eq!(fold(&"-".repeat(100_000)), None);
    }
}
