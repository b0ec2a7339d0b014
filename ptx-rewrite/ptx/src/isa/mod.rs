//! The instruction table: what each opcode does with its operands, with control flow and with
//! memory.
//!
//! [`OPCODES`] is the one list of opcodes; every question about an instruction starts from its row.
//! Where the suffixes decide (`bar.red` has a result, `bar.sync` has none), the row names the rule
//! and the functions here apply it.
//! Source: PTX ISA 9.0, chapter "Instruction Set". [`mod@memory`] and [`mod@sync`] read the qualifiers,
//! [`mod@matrix`] those of matrices.
//!
//! An opcode that is missing is an `unknown` diagnostic of the parser. The list is longer than
//! what nvcc emits, because inline assembly may hold anything.

pub mod matrix;
pub mod memory;
mod roles;
pub mod sync;
mod table;

pub use events::{Scope, Semantics};

use crate::ast::{Instruction, Operand};

pub use memory::{AtomicOp, MemoryKind, MemoryOp};
pub use roles::{reads, register_reads, register_writes, writes};
pub use sync::{BarrierKind, FenceSemantics, MbarrierOp, SyncOp};
pub use table::OPCODES;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode {
    /// The text before the first dot.
    pub name: &'static str,
    /// Which operands are written and which are read.
    pub operands: Operands,
    /// Where control goes.
    pub control: Control,
    /// What it does beyond registers.
    pub effect: Effect,
}

/// Which operands are written; the others are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// None.
    Read,
    /// The first.
    Write,
    /// The first, unless it is an address: `mbarrier.arrive %state, [a]` but
    /// `mbarrier.init [a], 1`.
    WriteUnlessAddress,
    /// The first if there is a suffix `red`.
    Barrier,
    /// The first is read and written.
    Update,
    /// The parentheses in front of the function.
    Call,
}

/// Where control goes after an instruction (or past it, when its guard is false).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// To the next instruction.
    Next,
    /// To the label in the first operand.
    Branch,
    /// To one of a list of labels, named by the second operand.
    BranchIndexed,
    /// Into a function, then to the next instruction if the function returns.
    Call,
    /// Out of the function.
    Return,
    /// The thread ends.
    Exit,
    /// The grid ends in an error.
    Trap,
}

/// What an instruction does beyond reading and writing registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Adds to, or takes from, the carry flag, depending on its suffixes.
    Carry,
    /// Exchanges register values with other lanes of the warp.
    Warp,
    /// Reads or writes memory; see [`memory()`].
    Memory,
    /// Orders threads or memory; see [`sync()`].
    Sync,
    /// One or the other, depending on suffixes.
    MemoryOrSync,
    /// Something outside the program: hints, timers, events, resources.
    Outside,
}

/// What an instruction does to memory, and what it orders. The parser finds out, once for each instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meaning {
    memory: Option<MemoryOp>,
    sync: Option<SyncOp>,
}

impl Meaning {
    /// Classifies an instruction by its opcode, suffixes and operands.
    pub(crate) fn of(instruction: &Instruction) -> Self {
        Self {
            memory: memory::classify(instruction),
            sync: sync::classify(instruction),
        }
    }
}

/// What an instruction does to memory; none if it does nothing there.
///
/// `mbarrier` operations are synchronisation, see [`sync()`], though the barrier they work on lies in shared memory.
pub fn memory(instruction: &Instruction) -> Option<MemoryOp> {
    instruction.meaning.memory
}

/// What an instruction orders; none if it orders nothing.
pub fn sync(instruction: &Instruction) -> Option<SyncOp> {
    instruction.meaning.sync
}

/// The row of an opcode, if it is known.
pub fn lookup(opcode: &str) -> Option<&'static Opcode> {
    OPCODES
        .binary_search_by(|row| row.name.cmp(opcode))
        .ok()
        .map(|index| &OPCODES[index])
}

/// The name a `call` calls: a function, or the register of an indirect call. None for other
/// instructions.
pub fn callee(instruction: &Instruction) -> Option<&str> {
    if instruction.opcode != "call" {
        return None;
    }
    instruction
        .operands
        .iter()
        .find_map(|operand| match operand {
            Operand::Name { name, .. } => Some(name.as_str()),
            _ => None,
        })
}
