//! Video instructions, scalar and side by side (PTX ISA 9.0, chapters 9.7.18.1 and 9.7.18.2).

use anyhow::{Context, Result, bail};

use super::Opcode;
use super::integer::{cut, read};

/// An operand as it stands in the text.
struct Operand<'a> {
    negated: bool,
    /// `b0`, `h1`, `b3210` and so on; empty without one.
    selector: &'a str,
}

impl<'a> Operand<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            negated: text.starts_with('-'),
            selector: text.split_once('.').map_or("", |(_, selector)| selector),
        }
    }

    /// Lowest bit and width of a single part.
    fn span(&self) -> Result<(u32, u32)> {
        let Some((unit, number)) = self.selector.split_at_checked(1) else {
            return Ok((0, 32));
        };
        let bits = if unit == "b" { 8 } else { 16 };
        Ok((bits * number.parse::<u32>()?, bits))
    }

    /// A single part of a register, extended.
    fn part(&self, register: u64, signed: bool) -> Result<i128> {
        let (low, bits) = self.span()?;
        Ok(extend(register >> low, bits, signed))
    }
}

fn extend(value: u64, bits: u32, signed: bool) -> i128 {
    let kind = if signed { 's' } else { 'u' };
    read(value, &format!("{kind}{bits}"))
}

/// The result of an instruction as it stands in the text, with operands behind the first that are these
/// registers.
///
/// # Errors
/// When it is no video instruction.
pub fn video(text: &str, inputs: &[u64]) -> Result<u64> {
    let text = text.trim_end_matches(';');
    let (opcode, operands) = text.split_once(' ').context("no operands")?;
    let op = Opcode::new(opcode);
    let operands: Vec<_> = operands.split(", ").map(Operand::new).collect();
    let types: Vec<_> = op.types().map(|ty| ty.starts_with('s')).collect();
    // The result of a comparison is unsigned.
    let signed = match types[..] {
        [d, a, b] => [d, a, b],
        [a, b] => [false, a, b],
        _ => bail!("`{opcode}` without types"),
    };
    let all = |n: usize| inputs.get(n).copied().unwrap_or(0);
    let registers = [all(0), all(1), all(2)];
    let value = match op.name.strip_suffix(['2', '4']) {
        Some(name) => side_by_side(&op, name, &operands, signed, registers)?,
        None if op.name == "vmad" => multiply(&op, &operands, signed, registers)?,
        None => scalar(&op, &operands, signed, registers)?,
    };
    Ok(cut(value, 32))
}

/// What an instruction does with two parts.
fn operate(op: &Opcode<'_>, name: &str, a: i128, b: i128) -> Result<i128> {
    let by = if op.has("wrap") { b & 31 } else { b.min(32) };
    let holds = |name: &str| match name {
        "eq" => a == b,
        "ne" => a != b,
        "lt" => a < b,
        "le" => a <= b,
        "gt" => a > b,
        _ => a >= b,
    };
    Ok(match name {
        "vadd" => a + b,
        "vsub" => a - b,
        "vabsdiff" => (a - b).abs(),
        "vmin" => a.min(b),
        "vmax" => a.max(b),
        "vavrg" if a + b >= 0 => (a + b + 1) >> 1,
        "vavrg" => (a + b) >> 1,
        "vshl" => a << by,
        "vshr" => a >> by,
        "vset" => {
            let names = ["eq", "ne", "lt", "le", "gt", "ge"];
            let comparison = names.into_iter().find(|name| op.has(name));
            i128::from(holds(comparison.context("no comparison")?))
        }
        _ => bail!("no CPU reference for `{name}`"),
    })
}

fn saturate(op: &Opcode<'_>, value: i128, bits: u32, signed: bool) -> i128 {
    match (op.has("sat"), signed) {
        (false, _) => value,
        (true, true) => value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        (true, false) => value.clamp(0, (1 << bits) - 1),
    }
}

fn scalar(
    op: &Opcode<'_>,
    operands: &[Operand<'_>],
    [to, left, right]: [bool; 3],
    [a, b, c]: [u64; 3],
) -> Result<i128> {
    let (low, bits) = operands[0].span()?;
    let (a, b) = (operands[1].part(a, left)?, operands[2].part(b, right)?);
    let value = saturate(op, operate(op, op.name, a, b)?, bits, to);
    let (whole, last) = (extend(cut(value, 32), 32, to), extend(c, 32, to));
    Ok(match () {
        () if op.has("add") => whole + last,
        () if op.has("min") => whole.min(last),
        () if op.has("max") => whole.max(last),
        () if bits == 32 => whole,
        () => {
            let keep = ((1 << bits) - 1) << low;
            i128::from(c) & !keep | value << low & keep
        }
    })
}

/// `vmad`, as the ISA's pseudo-code has it.
fn multiply(
    op: &Opcode<'_>,
    operands: &[Operand<'_>],
    [_, left, right]: [bool; 3],
    [a, b, c]: [u64; 3],
) -> Result<i128> {
    let negated = operands[1].negated != operands[2].negated;
    let signed = left || right || negated || operands[3].negated;
    let product = operands[1].part(a, left)? * operands[2].part(b, right)?;
    let (product, c, one) = match () {
        () if op.has("po") => (product, c, 1),
        () if negated => (!product, c, 1),
        () if operands[3].negated => (product, !c, 1),
        () => (product, c, 0),
    };
    let sum = product + extend(c, 32, signed) + one;
    let shift = match () {
        () if op.has("shr7") => 7,
        () if op.has("shr15") => 15,
        () => 0,
    };
    Ok(saturate(op, sum >> shift, 32, signed))
}

/// Each part for itself; those that the result's selector names are written, or added up.
fn side_by_side(
    op: &Opcode<'_>,
    name: &str,
    operands: &[Operand<'_>],
    [to, left, right]: [bool; 3],
    [a, b, c]: [u64; 3],
) -> Result<i128> {
    let halves = op.name.ends_with('2');
    let (count, bits) = if halves { (2, 16) } else { (4, 8) };
    let both = b << 32 | a;
    // Digits of a selector, those of the lowest part first.
    let digits = |n: usize, default: &str| -> Vec<u32> {
        let selector = match operands[n].selector {
            "" => default,
            selector => &selector[1..],
        };
        selector
            .chars()
            .rev()
            .filter_map(|c| c.to_digit(10))
            .collect()
    };
    let defaults = if halves {
        ["10", "32"]
    } else {
        ["3210", "7654"]
    };
    let (mask, first) = (digits(0, defaults[0]), digits(1, defaults[0]));
    let second = digits(2, defaults[1]);
    let mut result = i128::from(c);
    for part in (0..count).filter(|part| mask.contains(part)) {
        let of =
            |digits: &[u32], signed| extend(both >> (bits * digits[part as usize]), bits, signed);
        let value = operate(op, name, of(&first, left), of(&second, right))?;
        let value = saturate(op, value, bits, to);
        if op.has("add") {
            result += value;
        } else {
            let keep = ((1i128 << bits) - 1) << (bits * part);
            result = result & !keep | value << (bits * part) & keep;
        }
    }
    Ok(result)
}
