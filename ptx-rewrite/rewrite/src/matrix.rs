//! Matrix loads and stores: each lane checks one line of the matrix.

use ptx::ast::{Instruction, Operand};
use ptx::isa::matrix::{Lines, Pitch};
use ptx::isa::{MemoryKind, MemoryOp};

/// The registers that [`line`] uses besides those of all checks.
pub(crate) const DECLARATIONS: &str =
    "\n.reg .pred %crc_no_line;\n.reg .b32 %crc_line;\n.reg .b64 %crc_along;\n";

/// What one lane does to its line.
pub(crate) fn access(op: MemoryOp, lines: &Lines) -> MemoryOp {
    MemoryOp {
        kind: match op.kind {
            MemoryKind::MatrixLoad => MemoryKind::Load,
            _ => MemoryKind::Store,
        },
        vector: 1,
        bytes_per_element: lines.bytes,
        ..op
    }
}

/// Turns `%crc_address`, the address that the instruction has, into that of the lane's own line; goes
/// to `skip` in lanes that have none.
pub(crate) fn line(instruction: &Instruction, lines: &Lines, skip: &str) -> String {
    let mut text = "mov.u32 %crc_line, %laneid;\n".to_owned();
    if lines.count < 32 {
        let count = lines.count;
        text.push_str(&format!(
            "setp.ge.u32 %crc_no_line, %crc_line, {count};\n@%crc_no_line bra {skip};\n"
        ));
    }
    match lines.pitch {
        Pitch::Own => {}
        Pitch::Bytes(bytes) => text.push_str(&format!(
            "mul.wide.u32 %crc_along, %crc_line, {bytes};\n\
             add.s64 %crc_address, %crc_address, %crc_along;\n"
        )),
        Pitch::Elements { operand, bits } => {
            let pitch = match instruction.operands.get(operand) {
                Some(Operand::Name { name, .. }) => name.to_string(),
                Some(Operand::Int(value)) => value.to_string(),
                _ => "0".to_owned(),
            };
            text.push_str(&format!(
                "mul.wide.u32 %crc_along, %crc_line, {pitch};\n\
                 mul.lo.u64 %crc_along, %crc_along, {bits};\n\
                 shr.u64 %crc_along, %crc_along, 3;\n\
                 add.s64 %crc_address, %crc_address, %crc_along;\n"
            ));
        }
    }
    text
}
