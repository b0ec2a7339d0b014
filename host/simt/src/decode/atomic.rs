//! `atom` and `red`.

use ptx::ast::{Instruction, Operand, Type};
use ptx::isa::AtomicOp;

use super::Result;
use super::context::{Decoder, Unsupported, last_type, operand};
use crate::code::{Atomic, HalfOp, Kind, Rmw};

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction, returns: bool) -> Result<()> {
    let ty = last_type(i)?;
    let Some(op) = ptx::isa::memory(i).and_then(|memory| memory.op) else {
        return Unsupported::because("an atomic without an operation");
    };
    let first = usize::from(returns);
    let rmw = rmw(op, ty)?;
    let bytes = ty.bytes() as u8;
    let results = if returns {
        rows(cx, operand(i, 0)?, ty, true)?
    } else {
        Vec::new()
    };
    let address = cx.address(operand(i, first)?, i.space())?;
    let operands = rows(cx, operand(i, first + 1)?, ty, false)?;
    let second = match rmw {
        Rmw::Cas => rows(cx, operand(i, first + 2)?, ty, false)?,
        _ => Vec::new(),
    };
    let narrow = cx.narrow(bytes.into())?;
    cx.push(Kind::Atomic(Box::new(Atomic {
        address,
        op: rmw,
        bytes,
        results,
        operands,
        second,
        narrow,
    })))
}

/// The rows of an operand, two per element of 128 bits.
fn rows(cx: &mut Decoder<'_, '_>, from: &Operand, ty: Type, result: bool) -> Result<Vec<u32>> {
    let parts = match from {
        Operand::Vector(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut rows = Vec::new();
    for part in parts {
        let row = if result {
            cx.dst(part)?
        } else {
            cx.src(part, ty)?
        };
        rows.push(row);
        if ty.bytes() == 16 {
            // The sink and constants have no second row to speak of.
            let alone = matches!(part, Operand::Sink | Operand::Int(_));
            rows.push(if alone { row } else { row + 1 });
        }
    }
    Ok(rows)
}

pub(super) fn rmw(op: AtomicOp, ty: Type) -> Result<Rmw> {
    use Type::{BF16, BF16x2, F16, F16x2, F32, F64, S32, S64};
    let half = |op| Rmw::Half {
        bfloat: matches!(ty, BF16 | BF16x2),
        op,
    };
    let packed = matches!(ty, F16 | F16x2 | BF16 | BF16x2);
    Ok(match (op, ty) {
        (AtomicOp::And, _) => Rmw::And,
        (AtomicOp::Or, _) => Rmw::Or,
        (AtomicOp::Xor, _) => Rmw::Xor,
        (AtomicOp::Exch, _) => Rmw::Exch,
        (AtomicOp::Cas, _) => Rmw::Cas,
        (AtomicOp::Inc, _) => Rmw::Inc,
        (AtomicOp::Dec, _) => Rmw::Dec,
        (AtomicOp::Add, F32) => Rmw::AddF32,
        (AtomicOp::Add, F64) => Rmw::AddF64,
        (AtomicOp::Add, _) if packed => half(HalfOp::Add),
        (AtomicOp::Min, _) if packed => half(HalfOp::Min),
        (AtomicOp::Max, _) if packed => half(HalfOp::Max),
        (AtomicOp::Add, _) => Rmw::Add,
        (AtomicOp::Min, S32 | S64) => Rmw::MinS,
        (AtomicOp::Max, S32 | S64) => Rmw::MaxS,
        (AtomicOp::Min | AtomicOp::Max, F32 | F64) => {
            return Unsupported::because("an atomic of this type");
        }
        (AtomicOp::Min, _) => Rmw::MinU,
        (AtomicOp::Max, _) => Rmw::MaxU,
    })
}
