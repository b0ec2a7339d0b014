//! Integer expressions in the element index `i`, for expected outputs: `out: 0 u32[64] = i * 2 + 1`.
//!
//! C operators with C precedence over wrapping 64-bit values; comparisons give 0 or 1.

use anyhow::{Result, bail};

/// Evaluates `text` for index `i`.
pub fn eval(text: &str, i: u64) -> Result<u64> {
    let mut parser = Parser {
        rest: text.trim(),
        i,
    };
    let value = parser.binary(0)?;
    if !parser.rest.is_empty() {
        bail!("unexpected `{}` in expression `{text}`", parser.rest);
    }
    Ok(value)
}

/// Operators by rising precedence; longer spellings first within a level.
const LEVELS: &[&[&str]] = &[
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Parser<'a> {
    rest: &'a str,
    i: u64,
}

impl Parser<'_> {
    fn binary(&mut self, level: usize) -> Result<u64> {
        let Some(operators) = LEVELS.get(level) else {
            return self.atom();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|op| self.at(op)) {
            self.skip(operator.len());
            let right = self.binary(level + 1)?;
            left = apply(operator, left, right)?;
        }
        Ok(left)
    }

    /// Whether the text goes on with exactly this operator: `<` is not the start of `<<`.
    fn at(&self, operator: &str) -> bool {
        let doubled = matches!(operator, "<" | ">")
            && self.rest[1.min(self.rest.len())..].starts_with(operator);
        self.rest.starts_with(operator) && !doubled
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    fn atom(&mut self) -> Result<u64> {
        if self.rest.starts_with('(') {
            self.skip(1);
            let value = self.binary(0)?;
            if !self.rest.starts_with(')') {
                bail!("missing `)` before `{}`", self.rest);
            }
            self.skip(1);
            return Ok(value);
        }
        if self.rest.starts_with('i') {
            self.skip(1);
            return Ok(self.i);
        }
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        let value = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => word.parse(),
        };
        let Ok(value) = value else {
            bail!("expected a number, `i` or `(` at `{}`", self.rest);
        };
        self.skip(end);
        Ok(value)
    }
}

fn apply(operator: &str, a: u64, b: u64) -> Result<u64> {
    Ok(match operator {
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => u64::from(a == b),
        "!=" => u64::from(a != b),
        "<=" => u64::from(a <= b),
        ">=" => u64::from(a >= b),
        "<" => u64::from(a < b),
        ">" => u64::from(a > b),
        "<<" => a.checked_shl(u32::try_from(b)?).unwrap_or(0),
        ">>" => a.checked_shr(u32::try_from(b)?).unwrap_or(0),
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => bail!("division by zero"),
        "/" => a / b,
        "%" => a % b,
        _ => bail!("unknown operator `{operator}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::eval;

    #[test]
    fn precedence_and_errors() {
        assert_eq!(eval("1 + i * 2", 5).unwrap(), 11);
        assert_eq!(eval("(i ^ 1) << 4 | 0xf", 2).unwrap(), 0x3f);
        assert_eq!(
            eval("i < 3", 2).unwrap() + eval("i % 4 == 2", 6).unwrap(),
            2
        );
        assert_eq!(eval("0 - 1", 0).unwrap(), u64::MAX);
        for text in ["", "1 +", "(1", "j", "1 / 0", "1 2"] {
            assert!(eval(text, 0).is_err(), "{text}");
        }
    }
}
