//! The decoder of one function: which register is which row, and where ops go.

use std::collections::{BTreeMap, HashMap};

use ptx::ast::{Body, Function, Instruction, Operand, Type};
use ptx::scope::{Register, Scopes};

use super::program::Builder;
use crate::code::{Formal, Kind, Narrow, Op};
use crate::lanes::{AluFn, Args, Shape};

/// Row that swallows results nobody wants.
pub(crate) const SINK: u32 = 0;
/// Predicate that always holds.
pub(crate) const TRUE: u32 = 0;
/// Predicate that holds the carry flag.
pub(crate) const CARRY: u32 = 1;
/// Predicate that swallows results nobody wants.
pub(crate) const SINK_PRED: u32 = 2;

/// Why an instruction cannot be decoded; the instruction itself is added to the message later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported(pub(crate) String);

impl Unsupported {
    pub(crate) fn because<T>(what: impl Into<String>) -> Result<T, Self> {
        Err(Self(what.into()))
    }
}

/// The decoder of one function.
pub(crate) struct Decoder<'p, 'm> {
    pub(crate) builder: &'p mut Builder<'m>,
    pub(crate) function: &'m Function,
    pub(crate) body: &'m Body,
    pub(crate) scopes: Scopes<'m>,
    /// Statement being decoded.
    pub(crate) at: usize,
    pub(crate) rows: HashMap<Register, u32>,
    pub(crate) preds: HashMap<Register, u32>,
    pub(crate) row_count: u32,
    pub(crate) pred_count: u32,
    /// Offset in the frame of a body variable, by statement.
    pub(crate) frame: HashMap<usize, (u32, u32)>,
    pub(crate) params: Vec<(&'m str, Formal)>,
    pub(crate) returns: Vec<(&'m str, Formal)>,
    /// Op number of each label, by statement.
    pub(crate) labels: HashMap<usize, u32>,
    /// Ops whose targets are still statement numbers.
    pub(crate) unresolved: Vec<usize>,
    /// Accesses that stand for narrower ones, by statement.
    pub(crate) narrow: BTreeMap<usize, ptx::Narrow>,
}

impl<'m> Decoder<'_, 'm> {
    /// Appends an op; guard and offset are filled in per instruction.
    pub(crate) fn push(&mut self, kind: Kind) -> Result<(), Unsupported> {
        self.builder.program.ops.push(Op {
            kind,
            guard: 0,
            counts: false,
            fences: false,
        });
        Ok(())
    }

    pub(crate) fn push_alu(&mut self, f: AluFn, args: Args) -> Result<(), Unsupported> {
        self.push(Kind::Alu(f, args))
    }

    /// A row of its own.
    pub(crate) fn new_row(&mut self) -> u32 {
        self.row_count += 1;
        self.row_count - 1
    }

    /// A predicate of its own.
    pub(crate) fn new_pred(&mut self) -> u32 {
        self.pred_count += 1;
        self.pred_count - 1
    }

    pub(crate) fn register(&self, name: &str) -> Option<(Register, Type)> {
        let register = self.scopes.register(self.at, name)?;
        let (ty, vector) = self.scopes.register_type(register)?;
        (vector == 1).then_some((register, ty))
    }

    /// The row of a register; two rows for 128-bit ones.
    pub(crate) fn row(&mut self, register: Register, ty: Type) -> u32 {
        if let Some(&row) = self.rows.get(&register) {
            return row;
        }
        let row = self.new_row();
        if ty == Type::B128 {
            self.new_row();
        }
        self.rows.insert(register, row);
        row
    }

    pub(crate) fn pred(&mut self, register: Register) -> u32 {
        if let Some(&pred) = self.preds.get(&register) {
            return pred;
        }
        let pred = self.new_pred();
        self.preds.insert(register, pred);
        pred
    }

    /// What the access of so many bytes that is being decoded stands for, if that is less.
    pub(crate) fn narrow(&mut self, around: u32) -> Result<Option<Narrow>, Unsupported> {
        let Some(of) = self.narrow.get(&self.at) else {
            return Ok(None);
        };
        let (name, bytes) = (of.pointer.clone(), of.bytes);
        let pointer = Operand::Name {
            name,
            component: None,
            offset: 0,
        };
        Ok(Some(Narrow {
            pointer: self.src(&pointer, Type::U64)?,
            bytes,
            around,
        }))
    }

    /// An operation with one result and as many row sources as `f` takes.
    pub(crate) fn compute(
        &mut self,
        i: &Instruction,
        types: &[Type],
        f: AluFn,
        imm: u32,
    ) -> Result<(), Unsupported> {
        self.compute_as(i, types, f, imm, Shape::Rows)
    }

    /// The same for an op of another shape.
    pub(crate) fn compute_as(
        &mut self,
        i: &Instruction,
        types: &[Type],
        f: AluFn,
        imm: u32,
        shape: Shape,
    ) -> Result<(), Unsupported> {
        if i.operands.len() > types.len() + 1 && i.opcode != "lop3" {
            return Unsupported::because("more operands");
        }
        let d = self.dst(operand(i, 0)?)?;
        let mut sources = [SINK; 3];
        for (index, &ty) in types.iter().enumerate().take(3) {
            sources[index] = self.src(operand(i, index + 1)?, ty)?;
        }
        let [a, b, c] = sources;
        self.push_alu(
            f,
            Args {
                d,
                e: 0,
                a,
                b,
                c,
                imm,
                shape,
            },
        )
    }
}

/// An operand that must be there.
pub(crate) fn operand(i: &Instruction, index: usize) -> Result<&Operand, Unsupported> {
    match i.operands.get(index) {
        Some(operand) => Ok(operand),
        None => Unsupported::because(format!("fewer than {} operands", index + 1)),
    }
}

/// The last type suffix, which must be there.
pub(crate) fn last_type(i: &Instruction) -> Result<Type, Unsupported> {
    match i.types().last() {
        Some(&ty) => Ok(ty),
        None => Unsupported::because("an instruction without a type"),
    }
}
