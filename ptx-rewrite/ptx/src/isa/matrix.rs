//! Which bytes the lanes of a warp access when they load or store a matrix together.
//!
//! Source: PTX ISA 9.0, "Warp Level Matrix Instructions". Of `wmma` it is not told which lane
//! accesses what; so each line of the matrix is given to a lane.

use super::memory;
use super::memory::MemoryKind;
use crate::ast::Instruction;

/// The lines of a matrix, or of several. One lane accesses one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    /// How many there are; lane 0 has the first one, and lanes from this on have none. 1 to 32.
    pub count: u32,
    /// Bytes of a line.
    pub bytes: u32,
    /// Where they are.
    pub pitch: Pitch,
}

/// How far the lines of a matrix are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pitch {
    /// Each lane gives the address of its own line.
    Own,
    /// So many bytes behind the line before; all lanes give the address of the first line.
    Bytes(u32),
    /// Likewise, as many elements as an operand says.
    Elements {
        /// Index of the operand.
        operand: usize,
        /// Bits of an element.
        bits: u32,
    },
}

/// The lines that an instruction loads or stores; none if it does not, or in a way that is not known
/// here.
pub fn lines(instruction: &Instruction) -> Option<Lines> {
    let op = memory(instruction)?;
    if !matches!(op.kind, MemoryKind::MatrixLoad | MemoryKind::MatrixStore) {
        return None;
    }
    match instruction.opcode.as_str() {
        "wmma" => tile(instruction, op.address, op.kind == MemoryKind::MatrixStore),
        _ => matrices(instruction),
    }
}

/// `ldmatrix`, `stmatrix`: matrices of 8 by 8 elements of 16 bits, a row per lane.
fn matrices(instruction: &Instruction) -> Option<Lines> {
    let numbers = [("x1", 8), ("x2", 16), ("x4", 32)];
    let (_, count) = numbers.into_iter().find(|(x, _)| instruction.has(x))?;
    (instruction.has("m8n8") && instruction.has("b16")).then_some(Lines {
        count,
        bytes: 16,
        pitch: Pitch::Own,
    })
}

/// `wmma.load`, `wmma.store`: one matrix, in rows or columns.
fn tile(instruction: &Instruction, address: usize, stores: bool) -> Option<Lines> {
    let shape = instruction.suffixes.iter().find_map(|suffix| size(suffix));
    let [m, n, k] = shape?;
    let [rows, columns] = match instruction.suffixes.get(1)?.as_str() {
        "a" => [m, k],
        "b" => [k, n],
        "c" | "d" => [m, n],
        _ => return None,
    };
    let bits = bits(instruction.suffixes.last()?)?;
    let (count, long) = match (instruction.has("row"), instruction.has("col")) {
        (true, _) => (rows, columns),
        (_, true) => (columns, rows),
        _ => return None,
    };
    let bytes = long * bits / 8;
    // What is stored stands between the address and the pitch.
    let operand = address + 1 + usize::from(stores);
    let pitch = match instruction.operands.get(operand) {
        Some(_) => Pitch::Elements { operand, bits },
        None => Pitch::Bytes(bytes),
    };
    ((1..=32).contains(&count) && bytes > 0).then_some(Lines {
        count,
        bytes,
        pitch,
    })
}

/// `m16n8k32` as its three numbers.
fn size(suffix: &str) -> Option<[u32; 3]> {
    let (m, rest) = suffix.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let number = |text: &str| text.parse().ok();
    Some([number(m)?, number(n)?, number(k)?])
}

fn bits(ty: &str) -> Option<u32> {
    Some(match ty {
        "f64" => 64,
        "f32" | "tf32" | "s32" => 32,
        "f16" | "bf16" => 16,
        "s8" | "u8" => 8,
        "s4" | "u4" => 4,
        "b1" => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the only instruction of a kernel.
    fn of(text: &str) -> Option<Lines> {
        let text =
            format!(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {{ {text} }}");
        let (module, _) = crate::parse(&text);
        let function = module.functions().next()?;
        let (_, instruction) = function.body.as_ref()?.instructions().next()?;
        lines(instruction)
    }

    #[test]
    fn rows_and_columns_as_the_isa_says() {
        let own = |count| Lines {
            count,
            bytes: 16,
            pitch: Pitch::Own,
        };
        let pitched = |count, bytes, operand, bits| Lines {
            count,
            bytes,
            pitch: Pitch::Elements { operand, bits },
        };
        for (text, lines) in [
            (
                "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a}, [%p];",
                Some(own(8)),
            ),
            (
                "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%a, %b, %c, %d}, [%p];",
                Some(own(32)),
            ),
            (
                "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%p], {%a, %b};",
                Some(own(16)),
            ),
            (
                "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%p], {%a};",
                None,
            ),
            (
                "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a}, [%p], %s;",
                Some(pitched(16, 32, 2, 16)),
            ),
            (
                "wmma.load.b.sync.aligned.col.m8n32k16.shared.u8 {%a}, [%p], 64;",
                Some(pitched(32, 16, 2, 8)),
            ),
            (
                "wmma.store.d.sync.aligned.col.m32n8k16.shared.f32 [%p], {%a}, %s;",
                Some(pitched(8, 128, 2, 32)),
            ),
            (
                "wmma.load.a.sync.aligned.row.m8n8k128.b1 {%a}, [%p];",
                Some(Lines {
                    count: 8,
                    bytes: 16,
                    pitch: Pitch::Bytes(16),
                }),
            ),
            ("ld.shared.u32 %a, [%p];", None),
        ] {
            assert_eq!(of(text), lines, "{text}");
        }
    }
}
