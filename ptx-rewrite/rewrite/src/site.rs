//! A site: one static instruction that accesses memory and is checked.

use ptx::ast::{Body, Function, Instruction, Module};
use ptx::isa::MemoryOp;

use ptx::Frame;

/// A checked instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// What race records call it.
    pub id: u32,
    /// The kernel or device function it stands in, mangled.
    pub function: String,
    /// The instruction's text.
    pub text: String,
    /// Its first byte in the original PTX.
    pub offset: u32,
    /// Line in the original PTX, from 1.
    pub ptx_line: u32,
    /// What it does.
    pub op: MemoryOp,
    /// The kind the rule knows, `shadow::rule::WEAK_LOAD` and on.
    pub kind: u32,
    /// Bytes one thread accesses.
    pub bytes: u32,
    /// Source lines, innermost inlined function first; empty without `-lineinfo`.
    pub frames: Vec<Frame>,
}

impl Site {
    pub(crate) fn new(
        module: &Module,
        function: &Function,
        body: &Body,
        instruction: &Instruction,
        id: u32,
        op: MemoryOp,
        kind: u32,
    ) -> Self {
        let text = module.slice(instruction.span);
        Self {
            id,
            function: function.name.to_string(),
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            offset: instruction.span.start,
            ptx_line: module.line_column(instruction.span.start).0,
            op,
            kind,
            bytes: op.bytes(),
            frames: instruction
                .loc
                .map(|loc| module.inline_frames(body, loc))
                .unwrap_or_default(),
        }
    }
}
