//! Which operands, and which registers, an instruction reads and writes.

use super::{Operands, lookup};
use crate::ast::{AddressBase, Instruction, Operand};

/// The operands an instruction writes, in order. An operand in brackets is never among them: the
/// memory it addresses may be written, its registers are read.
pub fn writes(instruction: &Instruction) -> impl Iterator<Item = &Operand> {
    instruction.operands[..written(instruction)].iter()
}

/// The operands an instruction reads, in order, the guard aside. One that is updated is here and
/// in [`writes`].
pub fn reads(instruction: &Instruction) -> impl Iterator<Item = &Operand> {
    let first = match lookup(&instruction.opcode).map(|row| row.operands) {
        Some(Operands::Update) => 0,
        _ if updates(instruction) => 0,
        _ => written(instruction),
    };
    instruction.operands[first..].iter()
}

/// Calls `note` with every name that is written as a register: `%r1` in `{%r1, _}` or `%p|%q`.
pub fn register_writes<'a>(instruction: &'a Instruction, mut note: impl FnMut(&'a str)) {
    for operand in writes(instruction) {
        names(operand, &mut note);
    }
}

/// Calls `note` with every name that is read: registers, but also special registers and symbols,
/// and labels of branches. The guard comes first.
pub fn register_reads<'a>(instruction: &'a Instruction, mut note: impl FnMut(&'a str)) {
    if let Some(guard) = &instruction.guard {
        note(&guard.predicate);
    }
    for operand in reads(instruction) {
        names(operand, &mut note);
    }
}

/// How many operands, from the first, are written.
fn written(instruction: &Instruction) -> usize {
    let Some(first) = instruction.operands.first() else {
        return 0;
    };
    let in_brackets = matches!(first, Operand::Address { .. } | Operand::Bracket(_));
    let row = lookup(&instruction.opcode);
    let writes = match row.map_or(Operands::Read, |row| row.operands) {
        Operands::Read => false,
        Operands::Write | Operands::WriteUnlessAddress | Operands::Update => !in_brackets,
        Operands::Barrier => instruction.has("red"),
        // Without results the function comes first.
        Operands::Call => return usize::from(has_results(instruction)),
    };
    // `wgmma.fence` and the like have no result even when they have operands.
    usize::from(writes && !is_command(instruction))
}

/// True when a call has a list of results: parentheses in front of the function.
fn has_results(call: &Instruction) -> bool {
    matches!(call.operands.first(), Some(Operand::Paren(_)))
}

/// Accumulates into its first operand.
fn updates(instruction: &Instruction) -> bool {
    instruction.opcode == "wgmma" && instruction.has("mma_async")
}

/// An instruction of a family with results that has none.
fn is_command(instruction: &Instruction) -> bool {
    let first = instruction.suffixes.first().map_or("", |suffix| suffix);
    match instruction.opcode.as_str() {
        "wgmma" => first != "mma_async",
        "tcgen05" => first != "ld",
        _ => false,
    }
}

fn names<'a>(operand: &'a Operand, note: &mut impl FnMut(&'a str)) {
    match operand {
        Operand::Name { name, .. } => note(name),
        Operand::Address {
            base: AddressBase::Name(name),
            ..
        } => note(name),
        Operand::Vector(all) | Operand::Paren(all) | Operand::Bracket(all) => {
            for operand in all {
                names(operand, note);
            }
        }
        Operand::Pair(first, second) => {
            names(first, note);
            names(second, note);
        }
        Operand::Not(inner) => names(inner, note),
        Operand::Address {
            base: AddressBase::Absolute(_),
            ..
        }
        | Operand::Int(_)
        | Operand::F32(_)
        | Operand::F64(_)
        | Operand::Sink
        | Operand::Unknown(_) => {}
    }
}
