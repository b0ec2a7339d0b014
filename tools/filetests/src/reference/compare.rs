//! Comparing and choosing (PTX ISA 9.0, chapters 9.7.6 and 9.7.7).

use std::cmp::Ordering;

use anyhow::{Result, bail};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};

use super::float::flush;
use super::integer::{cut, read};
use super::{Opcode, width};

/// Whether the comparison that an opcode names holds for operands in this order; without one they
/// are unordered.
fn holds(name: &str, order: Option<Ordering>) -> Result<bool> {
    let (name, unordered) = match name {
        "equ" | "neu" | "ltu" | "leu" | "gtu" | "geu" => (&name[..2], true),
        "num" => return Ok(order.is_some()),
        "nan" => return Ok(order.is_none()),
        name => (name, false),
    };
    let Some(order) = order else {
        return Ok(unordered);
    };
    Ok(match name {
        "eq" => order.is_eq(),
        "ne" => order.is_ne(),
        "lt" | "lo" => order.is_lt(),
        "le" | "ls" => order.is_le(),
        "gt" | "hi" => order.is_gt(),
        "ge" | "hs" => order.is_ge(),
        other => bail!("unknown comparison `.{other}`"),
    })
}

/// The order of two operands of the opcode's last type.
fn order(op: &Opcode<'_>, a: u64, b: u64) -> Result<Option<Ordering>> {
    fn floats<F: Float>(op: &Opcode<'_>, a: u64, b: u64) -> Option<Ordering> {
        let [a, b] = [a, b].map(|bits| flush(op, F::from_bits(u128::from(bits))));
        a.partial_cmp(&b)
    }
    Ok(match op.ty()? {
        "f16" => floats::<Half>(op, a, b),
        "bf16" => floats::<BFloat>(op, a, b),
        "f32" => floats::<Single>(op, a, b),
        "f64" => floats::<Double>(op, a, b),
        ty => Some(read(a, ty).cmp(&read(b, ty))),
    })
}

/// What becomes of a comparison and a predicate in the third operand.
fn combined(op: &Opcode<'_>, test: bool, inputs: &[u64]) -> Result<bool> {
    let other = || inputs[2] & 1 != 0;
    Ok(match op.suffixes[1] {
        "and" => test & other(),
        "or" => test | other(),
        "xor" => test ^ other(),
        _ => test,
    })
}

/// The first predicate of `setp`.
pub(super) fn first(op: &Opcode<'_>, inputs: &[u64]) -> Result<bool> {
    let test = holds(op.suffixes[0], order(op, inputs[0], inputs[1])?)?;
    combined(op, test, inputs)
}

/// The second predicate of `setp` on the bits of its operands: the comparison is negated, and then
/// combined as the first one.
///
/// # Errors
/// When `opcode` is no comparison.
pub fn second(opcode: &str, inputs: &[u64]) -> Result<bool> {
    let op = Opcode::new(opcode);
    let test = holds(op.suffixes[0], order(&op, inputs[0], inputs[1])?)?;
    combined(&op, !test, inputs)
}

/// `set`: all ones, or 1.0, of the first type.
pub(super) fn set(op: &Opcode<'_>, inputs: &[u64]) -> Result<u64> {
    let result = op.types().next().unwrap_or_default();
    // `set.lt.u32` has one type for both.
    let yes = match result {
        _ if op.types().count() < 2 => u64::from(u32::MAX),
        "f16" => Half::from_u128(1).value.to_bits() as u64,
        "bf16" => BFloat::from_u128(1).value.to_bits() as u64,
        "f32" => Single::from_u128(1).value.to_bits() as u64,
        ty => cut(-1, width(ty).unwrap_or(32)),
    };
    Ok(if first(op, inputs)? { yes } else { 0 })
}

/// `selp` by a predicate, `slct` by whether the third operand is at least zero.
pub(super) fn select(op: &Opcode<'_>, inputs: &[u64]) -> Result<u64> {
    let types: Vec<_> = op.types().collect();
    let first = match (op.name, &types[..]) {
        ("selp", [_]) => inputs[2] & 1 != 0,
        ("slct", [_, "s32"]) => read(inputs[2], "s32") >= 0,
        ("slct", [_, "f32"]) => {
            let by = flush(op, Single::from_bits(u128::from(inputs[2])));
            by >= Single::ZERO
        }
        _ => bail!("no CPU reference for `{}` of {types:?}", op.name),
    };
    let bits = width(types[0]).unwrap_or(64);
    let chosen = inputs[usize::from(!first)];
    Ok(cut(i128::from(chosen), bits))
}
