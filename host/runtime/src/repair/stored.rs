//! What stores write, where the text of a module says it: then two stores of the same are known as such in every mode.

use ptx::ast::Type;
use ptx::ast::{Body, Instruction, Module, Operand};
use ptx::dataflow::Dataflow;
use ptx::isa::{self, MemoryKind};

/// Copies between a constant and its store, at most.
const COPIES: usize = 4;

/// The stores on two lines always write the same constant, of the same size: since accesses are aligned, they write the
/// same to each byte that both write.
pub(super) fn same(module: &Module, lines: [u32; 2]) -> bool {
    let [one, other] = lines.map(|line| on_line(module, line));
    one.is_some() && one == other
}

fn on_line(module: &Module, line: u32) -> Option<Vec<u8>> {
    module.functions().find_map(|function| {
        let body = function.body.as_ref()?;
        let mut all = body.instructions();
        let on_line = |of: &Instruction| module.line_column(of.span.start).0 == line;
        let (at, store) = all.find(|(_, of)| of.opcode == "st" && on_line(of))?;
        written(body, at, store)
    })
}

/// The bytes that a store writes whenever it is executed.
fn written<'a>(body: &'a Body, at: usize, store: &'a Instruction) -> Option<Vec<u8>> {
    let op = isa::memory(store).filter(|op| op.kind == MemoryKind::Store)?;
    let flow = Dataflow::new(body);
    let value = store.operands.get(op.address + 1)?;
    let elements = match value {
        Operand::Vector(elements) => &elements[..],
        one => std::slice::from_ref(one),
    };
    let mut bytes = Vec::new();
    for element in elements {
        let bits = constant(&flow, at, element, op.ty)?;
        let size = usize::try_from(op.bytes_per_element).ok()?;
        bytes.extend(bits.to_le_bytes().get(..size)?);
    }
    Some(bytes)
}

/// The bits of an operand that is a constant, or a register that nothing but a copy of one is written to; the upper ones
/// of a negative integer are set.
fn constant<'a>(
    flow: &Dataflow<'a>,
    mut at: usize,
    mut operand: &'a Operand,
    mut ty: Type,
) -> Option<i128> {
    for _ in 0..=COPIES {
        match operand {
            Operand::Int(value) if !ty.is_float() => return Some(*value),
            Operand::F32(bits) if ty.bytes() == 4 => return Some(i128::from(*bits)),
            Operand::F64(bits) if ty.bytes() == 8 => return Some(i128::from(*bits)),
            Operand::Name { name, .. } => {
                let (write, copy) = flow.only_write(at, name)?;
                let [of] = &copy.suffixes[..] else {
                    return None;
                };
                ty = Type::from_suffix(of).filter(|_| copy.opcode == "mov")?;
                (at, operand) = (write, copy.operands.get(1)?);
            }
            _ => return None,
        }
    }
    None
}
