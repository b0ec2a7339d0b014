//! Video instructions: arithmetic on bytes and halves of registers, one by one or side by side.
//!
//! Source: PTX ISA 9.0, "Scalar Video Instructions" and "SIMD Video Instructions", whose steps are
//! ops here: parts are taken out of the sources, the operation is done in 64 bits, and the result is
//! saturated, combined with the last operand, and put into its part.

use ptx::ast::{Instruction, Operand, Type};

use super::Result;
use super::context::{Decoder, SINK, Unsupported, operand};
use crate::lanes::{AluFn, Args, Shape, alu};

/// A part of a register: 0 for all of it, bytes as 4 to 7, halves as 8 and 9.
type Part = u32;

/// A source: what is named, its part, and whether it is negated.
fn part(operand: &Operand) -> Result<(Operand, Part, bool)> {
    match operand {
        Operand::Not(inner) => part(inner).map(|(inner, at, _)| (inner, at, true)),
        Operand::Name {
            name,
            component: Some(at @ 4..=9),
            offset,
        } => {
            let whole = Operand::Name {
                name: name.clone(),
                component: None,
                offset: *offset,
            };
            Ok((whole, u32::from(*at), false))
        }
        Operand::Name {
            component: Some(_), ..
        } => Unsupported::because("a selector of this form"),
        other => Ok((other.clone(), 0, false)),
    }
}

/// Lowest bit and width of a part.
#[inline(always)]
fn span(part: Part) -> (u32, u32) {
    match part {
        4..=7 => (8 * (part - 4), 8),
        8 | 9 => (16 * (part - 8), 16),
        _ => (0, 32),
    }
}

#[inline(always)]
fn extend(value: u64, bits: u32, signed: bool) -> i64 {
    let unused = 64 - bits;
    if signed {
        (value << unused) as i64 >> unused
    } else {
        (value << unused >> unused) as i64
    }
}

fn args(d: u32, [a, b, c]: [u32; 3], imm: u32) -> Args {
    Args {
        d,
        e: 0,
        a,
        b,
        c,
        imm,
        shape: Shape::Rows,
    }
}

const SIGNED: u32 = 1 << 8;

/// A row with a part of a source, extended to 64 bits, and whether it is negated.
fn source(cx: &mut Decoder<'_, '_>, from: &Operand, ty: Type) -> Result<(u32, bool)> {
    let (whole, part, negated) = part(from)?;
    let a = cx.src(&whole, Type::B32)?;
    let row = cx.new_row();
    let f = alu!(imm m, |a: u64| -> i64 {
        let (low, bits) = span(m & 15);
        extend(a >> low, bits, m & SIGNED != 0)
    });
    let signed = if ty.is_signed() { SIGNED } else { 0 };
    cx.push_alu(f, args(row, [a, SINK, SINK], part | signed))?;
    Ok((row, negated))
}

/// The types of an instruction's result and sources.
fn types(i: &Instruction) -> Result<[Type; 3]> {
    let types = i.types();
    if !types.iter().all(|ty| matches!(ty, Type::U32 | Type::S32)) {
        return Unsupported::because("an operation on this type");
    }
    match types[..] {
        [d, a, b] => Ok([d, a, b]),
        [a, b] if i.opcode.starts_with("vset") => Ok([Type::U32, a, b]),
        _ => Unsupported::because("an operation on this type"),
    }
}

const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

fn comparison(i: &Instruction) -> Result<u32> {
    match COMPARISONS.iter().position(|name| i.has(name)) {
        Some(number) => Ok(number as u32),
        None => Unsupported::because("this comparison"),
    }
}

#[inline(always)]
fn compare(comparison: u32, a: i64, b: i64) -> i64 {
    i64::from(match comparison {
        0 => a == b,
        1 => a != b,
        2 => a < b,
        3 => a <= b,
        4 => a > b,
        _ => a >= b,
    })
}

/// `op d{.part}, a{.part}, b{.part}{, c};`
pub(super) fn scalar(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let [to, left, right] = types(i)?;
    let (a, minus_a) = source(cx, operand(i, 1)?, left)?;
    let (b, minus_b) = source(cx, operand(i, 2)?, right)?;
    let value = cx.new_row();
    if i.opcode == "vmad" {
        return multiply(cx, i, a, b, minus_a != minus_b);
    }
    let wrap = u32::from(i.has("wrap"));
    let (f, imm): (AluFn, u32) = match i.opcode.as_str() {
        "vadd" => (alu!(|a: i64, b: i64| -> i64 { a + b }), 0),
        "vsub" => (alu!(|a: i64, b: i64| -> i64 { a - b }), 0),
        "vabsdiff" => (alu!(|a: i64, b: i64| -> i64 { (a - b).abs() }), 0),
        "vmin" => (alu!(|a: i64, b: i64| -> i64 { a.min(b) }), 0),
        "vmax" => (alu!(|a: i64, b: i64| -> i64 { a.max(b) }), 0),
        "vshl" => (
            alu!(imm m, |a: i64, b: i64| -> i64 {
                match amount(m, b) {
                    // Too large for 64 bits: with as large a value all low bits are zero, too.
                    32 => a.clamp(i32::MIN.into(), i32::MAX.into()) << 32,
                    by => a << by,
                }
            }),
            wrap,
        ),
        "vshr" => (
            alu!(imm m, |a: i64, b: i64| -> i64 { a >> amount(m, b) }),
            wrap,
        ),
        _ => (
            alu!(imm m, |a: i64, b: i64| -> i64 { compare(m, a, b) }),
            comparison(i)?,
        ),
    };
    cx.push_alu(f, args(value, [a, b, SINK], imm))?;
    finish(cx, i, to, value)
}

/// By how much is shifted.
#[inline(always)]
fn amount(wrap: u32, b: i64) -> u32 {
    let b = b as u64 & 0xffff_ffff;
    if wrap == 1 {
        (b & 31) as u32
    } else {
        b.min(32) as u32
    }
}

const SATURATE: u32 = 1 << 4;
const ADD: u32 = 1 << 5;
const MIN: u32 = 1 << 6;
const MAX: u32 = 1 << 7;

/// Saturates a value, combines it with the last operand, and writes it.
fn finish(cx: &mut Decoder<'_, '_>, i: &Instruction, to: Type, value: u32) -> Result<()> {
    let (whole, part, _) = part(operand(i, 0)?)?;
    let d = cx.dst(&whole)?;
    let mut imm = part;
    imm |= if to.is_signed() { SIGNED } else { 0 };
    for (name, bit) in [("sat", SATURATE), ("add", ADD), ("min", MIN), ("max", MAX)] {
        imm |= if i.has(name) { bit } else { 0 };
    }
    let combines = imm & (ADD | MIN | MAX) != 0;
    if combines && part != 0 {
        return Unsupported::because("a part and a second operation");
    }
    if i.operands.len() != if combines || part != 0 { 4 } else { 3 } {
        return Unsupported::because("operands of this form");
    }
    let c = match i.operands.get(3) {
        Some(c) => cx.src(c, Type::B32)?,
        None => SINK,
    };
    let f = alu!(imm m, |value: i64, c: u32| -> u32 { combine(m, value, c) });
    cx.push_alu(f, args(d, [value, c, SINK], imm))
}

#[inline(always)]
fn combine(m: u32, value: i64, c: u32) -> u32 {
    let signed = m & SIGNED != 0;
    let (low, bits) = span(m & 15);
    let value = if m & SATURATE != 0 {
        saturate(value, bits, signed)
    } else {
        value
    };
    let ends = if signed {
        let (value, c) = (value as i32, c as i32);
        (value.min(c) as u32, value.max(c) as u32)
    } else {
        (c.min(value as u32), c.max(value as u32))
    };
    if m & ADD != 0 {
        (value as u32).wrapping_add(c)
    } else if m & MIN != 0 {
        ends.0
    } else if m & MAX != 0 {
        ends.1
    } else if bits < 32 {
        let keep = ((1 << bits) - 1) << low;
        c & !keep | (value as u32) << low & keep
    } else {
        value as u32
    }
}

#[inline(always)]
fn saturate(value: i64, bits: u32, signed: bool) -> i64 {
    if signed {
        value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        value.clamp(0, (1 << bits) - 1)
    }
}

/// The product is negated, or the last operand is.
const MINUS_PRODUCT: u32 = 1;
const MINUS_LAST: u32 = 2;
const PLUS_ONE: u32 = 4;
/// The sum is signed.
const SIGNED_SUM: u32 = 8;

/// `vmad.d.a.b{.sat}{.scale} d, {-}a, {-}b, {-}c;`
fn multiply(
    cx: &mut Decoder<'_, '_>,
    i: &Instruction,
    a: u32,
    b: u32,
    minus_product: bool,
) -> Result<()> {
    let [_, left, right] = types(i)?;
    let (c, part, minus_last) = part(operand(i, 3)?)?;
    if part != 0 || minus_product && minus_last {
        return Unsupported::because("operands of this form");
    }
    let c = cx.src(&c, Type::B32)?;
    let d = cx.dst(operand(i, 0)?)?;
    let signed = left.is_signed() || right.is_signed() || minus_product || minus_last;
    let shift = match () {
        () if i.has("shr7") => 7,
        () if i.has("shr15") => 15,
        () => 0,
    };
    let mut imm = shift << 16;
    for (holds, bit) in [
        (minus_product, MINUS_PRODUCT),
        (minus_last, MINUS_LAST),
        (i.has("po"), PLUS_ONE),
        (signed, SIGNED_SUM),
        (i.has("sat"), SATURATE),
    ] {
        imm |= if holds { bit } else { 0 };
    }
    let f = alu!(imm m, |a: i64, b: i64, c: u32| -> u32 {
        let signed = m & SIGNED_SUM != 0;
        let product = i128::from(a) * i128::from(b);
        let c = if signed { i128::from(c as i32) } else { i128::from(c) };
        let product = if m & MINUS_PRODUCT != 0 { -product } else { product };
        let c = if m & MINUS_LAST != 0 { -c } else { c };
        let sum = product + c + i128::from(m & PLUS_ONE != 0);
        let value = sum >> (m >> 16);
        let (low, high) = if signed {
            (i128::from(i32::MIN), i128::from(i32::MAX))
        } else {
            (0, i128::from(u32::MAX))
        };
        (if m & SATURATE != 0 { value.clamp(low, high) } else { value }) as u32
    });
    cx.push_alu(f, args(d, [a, b, c], imm))
}

/// The parts that a selector names, first the highest; `default` without one.
fn selected(operand: &Operand, halves: bool, default: &[u16]) -> Result<(Operand, Vec<u16>)> {
    let Operand::Name {
        name,
        component: Some(component),
        offset,
    } = operand
    else {
        return Ok((operand.clone(), default.to_vec()));
    };
    let parts = match (component, halves) {
        (4..=7, false) => vec![component - 4],
        (8 | 9, true) => vec![component - 8],
        (0x1000.., _) if (component & 0x8000 != 0) == halves => {
            let digits = component >> 12 & 7;
            (0..digits)
                .rev()
                .map(|n| component >> (3 * n) & 7)
                .collect()
        }
        _ => return Unsupported::because("a selector of this form"),
    };
    let whole = Operand::Name {
        name: name.clone(),
        component: None,
        offset: *offset,
    };
    Ok((whole, parts))
}

const LEFT_SIGNED: u32 = 1 << 9;
const RIGHT_SIGNED: u32 = 1 << 10;
const BYTES: u32 = 1 << 11;
const OPERATION: u32 = 12;
const COMPARISON: u32 = 16;

/// `op2 d{.parts}, a{.parts}, b{.parts}, c;`, or `op4`
pub(super) fn simd(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    const OPERATIONS: [&str; 6] = ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"];
    let [to, left, right] = types(i)?;
    let halves = i.opcode.ends_with('2');
    let count = if halves { 2 } else { 4 };
    let name = i.opcode.trim_end_matches(['2', '4']);
    let operation = OPERATIONS.iter().position(|&known| known == name);
    let all: Vec<u16> = (0..count).rev().collect();
    let second: Vec<u16> = (count..2 * count).rev().collect();
    let (to_register, written) = selected(operand(i, 0)?, halves, &all)?;
    let (a, a_parts) = selected(operand(i, 1)?, halves, &all)?;
    let (b, b_parts) = selected(operand(i, 2)?, halves, &second)?;
    let limit = 2 * count;
    let sized =
        |parts: &[u16]| parts.len() == usize::from(count) && parts.iter().all(|&n| n < limit);
    if !sized(&a_parts) || !sized(&b_parts) || written.iter().any(|&n| n >= count) {
        return Unsupported::because("a selector of this form");
    }
    let (a, b) = (cx.src(&a, Type::B32)?, cx.src(&b, Type::B32)?);
    let c = cx.src(operand(i, 3)?, Type::B32)?;
    let d = cx.dst(&to_register)?;
    let (first, last) = (cx.new_row(), cx.new_row());
    let gather = alu!(imm m, |a: u32, b: u32| -> u32 {
        let bytes = u64::from(b) << 32 | u64::from(a);
        (0..4).fold(0, |all, n| all | (bytes >> (8 * (m >> (3 * n) & 7)) & 0xff) << (8 * n)) as u32
    });
    for (row, parts) in [(first, &a_parts), (last, &b_parts)] {
        // Bytes of the eight that the two sources have, lowest first.
        let bytes = parts.iter().rev().flat_map(|&part| match halves {
            true => vec![2 * part, 2 * part + 1],
            false => vec![part],
        });
        let imm = bytes
            .enumerate()
            .fold(0, |imm, (n, byte)| imm | u32::from(byte) << (3 * n));
        cx.push_alu(gather, args(row, [a, b, SINK], imm))?;
    }
    let mut imm = written.iter().fold(0, |mask, &part| mask | 1 << part);
    for (holds, bit) in [
        (i.has("sat"), SATURATE),
        (i.has("add"), ADD),
        (to.is_signed(), SIGNED),
        (left.is_signed(), LEFT_SIGNED),
        (right.is_signed(), RIGHT_SIGNED),
        (!halves, BYTES),
    ] {
        imm |= if holds { bit } else { 0 };
    }
    imm |= match operation {
        Some(number) => (number as u32) << OPERATION,
        None => 6 << OPERATION | comparison(i)? << COMPARISON,
    };
    let f = alu!(imm m, |a: u32, b: u32, c: u32| -> u32 { side_by_side(m, a, b, c) });
    cx.push_alu(f, args(d, [first, last, c], imm))
}

/// All parts of two sources; the low four bits of `m` are the parts that are written.
fn side_by_side(m: u32, a: u32, b: u32, c: u32) -> u32 {
    let bits = if m & BYTES != 0 { 8 } else { 16 };
    let keep = (1u32 << bits) - 1;
    let mut result = c;
    for n in (0..32 / bits).filter(|n| m >> n & 1 == 1) {
        let a = extend(u64::from(a >> (bits * n)), bits, m & LEFT_SIGNED != 0);
        let b = extend(u64::from(b >> (bits * n)), bits, m & RIGHT_SIGNED != 0);
        let value = match m >> OPERATION & 15 {
            0 => a + b,
            1 => a - b,
            // Halves are rounded away from zero.
            2 => (a + b + i64::from(a + b >= 0)) >> 1,
            3 => (a - b).abs(),
            4 => a.min(b),
            5 => a.max(b),
            _ => compare(m >> COMPARISON & 7, a, b),
        };
        let value = if m & SATURATE != 0 {
            saturate(value, bits, m & SIGNED != 0)
        } else {
            value
        };
        if m & ADD != 0 {
            result = result.wrapping_add(value as u32);
        } else {
            let shift = bits * n;
            result = result & !(keep << shift) | (value as u32 & keep) << shift;
        }
    }
    result
}
