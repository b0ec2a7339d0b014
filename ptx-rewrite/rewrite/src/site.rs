//! A site: one static instruction that accesses memory and is checked.

use ptx::Frame;
use ptx::ast::{Body, Function, Instruction, Module};
use ptx::isa::MemoryOp;
use shadow::rule;

use crate::access::{self, Access, Checked, Located};
use crate::analysis::Granules;
use crate::copies::Copy;
use crate::names::Names;

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

/// The accesses of a module that are checked.
#[derive(Debug)]
pub(crate) struct Sites {
    first: u32,
    all: Vec<Site>,
}

/// An instruction that is checked, and its id.
pub(crate) enum Entered {
    Access(Access, u32),
    Copy(Copy, u32),
}

impl Sites {
    /// Their ids begin with `first`.
    pub(crate) fn new(first: u32) -> Self {
        Self {
            first,
            all: Vec::new(),
        }
    }

    pub(crate) fn into_all(self) -> Vec<Site> {
        self.all
    }

    /// Enters an instruction if it is checked; with its id.
    pub(crate) fn enter(
        &mut self,
        module: &Module,
        function: &Function,
        names: &Names<'_>,
        granules: Granules,
        located: Located<'_>,
    ) -> Option<Entered> {
        let Located { at, instruction } = located;
        let id = self.first + self.all.len() as u32;
        let (op, kind, entered) = match names.checked(at) {
            Checked::Yes(access)
                if access.address_space.may_be_global() || granules.shared.is_some() =>
            {
                let wide = match access.address_space.may_be_global() {
                    true => access::GLOBAL,
                    false => access::SHARED,
                };
                let op = access.op;
                (op, access::kind(&op, wide), Entered::Access(access, id))
            }
            Checked::Copy(copy) => (copy.op, rule::WEAK_STORE, Entered::Copy(copy, id)),
            _ => return None,
        };
        let body = names.body();
        let site = Site::new(module, function, body, instruction, id, op, kind);
        self.all.push(site);
        Some(entered)
    }
}
