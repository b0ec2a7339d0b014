//! What `atom` and `red` leave in memory (PTX ISA 9.0, chapter 9.7.13).

use anyhow::{Context, Result};

use super::integer::{cut, read};
use super::{Expected, Opcode, eval, width};

/// The operations that these instructions name.
const OPERATIONS: [&str; 10] = [
    "and", "or", "xor", "exch", "cas", "add", "min", "max", "inc", "dec",
];

/// The new value, of the old one and the operands.
pub(super) fn update(op: &Opcode<'_>, inputs: &[u64]) -> Result<Expected> {
    let ty = op.ty()?;
    let named = op.suffixes.iter().find(|s| OPERATIONS.contains(s));
    let operation = *named.context("an atomic without an operation")?;
    let raw = |n: usize| read(cut(inputs[n].into(), width(ty).unwrap_or(64)), "u64");
    let (old, given) = (raw(0), raw(1));
    let new = match operation {
        "exch" => given,
        "cas" if old == given => raw(2),
        "cas" => old,
        "inc" if old >= given => 0,
        "inc" => old + 1,
        "dec" if old == 0 || old > given => given,
        "dec" => old - 1,
        // "Current implementation of atom.add.f32 on global memory flushes subnormal inputs and
        // results to sign-preserving zero".
        "add" if ty == "f32" && !op.has("shared") => return eval("add.ftz.f32", inputs),
        _ => return eval(&format!("{operation}.{ty}"), inputs),
    };
    Ok(Expected::Exact(new as u64))
}
