//! Asynchronous copies and the barriers that count them.
//!
//! Departure: a copy is done when it is issued, so that waiting for it has nothing to do.

use ptx::ast::{Instruction, Operand, Space, Type};
use ptx::isa::{MbarrierOp, SyncOp};

use super::context::{Decoder, SINK, Unsupported, last_type, operand};
use super::{Result, atomic, memory};
use crate::code::{AsyncStore, Copy, Kind, Mbarrier, MbarrierKind, Rmw};

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let has = |suffix| i.has(suffix);
    if has("prefetch") {
        return cx.push(Kind::Nop);
    }
    if has("commit_group") || has("wait_group") || has("wait_all") {
        return cx.push(Kind::Copies);
    }
    if has("mbarrier") && has("arrive") {
        // `cp.async.mbarrier.arrive`: the copies are done, so the arrival is due now. Unless
        // `.noinc`, it raises the pending count first, which leaves that as it was.
        let kind = match has("noinc") {
            true => MbarrierKind::Arrive {
                drop: false,
                expect: false,
            },
            false => MbarrierKind::CopyArrive,
        };
        let address = cx.address(operand(i, 0)?, i.space())?;
        let one = cx.builder.constant(1);
        return cx.push(Kind::Mbarrier(Box::new(Mbarrier {
            kind,
            address,
            d: None,
            a: one,
            b: SINK,
        })));
    }
    if has("tensor") || has("cp_mask") {
        return Unsupported::because("this instruction");
    }
    let (to_space, from_space) = memory::spaces(i);
    let to = cx.address(operand(i, 0)?, to_space)?;
    let from = cx.address(operand(i, 1)?, from_space)?;
    let bytes = cx.src(operand(i, 2)?, Type::U32)?;
    let bulk = has("bulk");
    let complete = match i.operands.get(3) {
        Some(barrier) if bulk && has("mbarrier::complete_tx::bytes") => {
            Some(cx.address(barrier, Space::Shared)?)
        }
        _ => None,
    };
    let (mut source_bytes, mut ignore) = (None, None);
    if !bulk {
        match i.operands.get(3) {
            Some(Operand::Name { name, .. })
                if cx.register(name).is_some_and(|(_, ty)| ty == Type::Pred) =>
            {
                ignore = Some(cx.src_pred(operand(i, 3)?)?);
            }
            Some(Operand::Not(_)) => ignore = Some(cx.src_pred(operand(i, 3)?)?),
            Some(size) if !has("L2::cache_hint") || i.operands.len() > 4 => {
                source_bytes = Some(cx.src(size, Type::U32)?);
            }
            _ => {}
        }
    }
    let multicast = match has("multicast::cluster") {
        true => Some(cx.src(operand(i, 4)?, Type::U16)?),
        false => None,
    };
    let copy = Copy {
        reduce: if has("reduce") {
            Some(reduction(i)?)
        } else {
            None
        },
        multicast,
        to,
        from,
        bytes,
        source_bytes,
        ignore,
        complete,
        bulk,
    };
    cx.push(Kind::Copy(Box::new(copy)))
}

/// What a copy that reduces does, and the bytes of its elements.
fn reduction(i: &Instruction) -> Result<(Rmw, u8)> {
    let op = ptx::isa::memory(i).and_then(|memory| memory.op);
    let ty = last_type(i)?;
    match op {
        Some(op) => Ok((atomic::rmw(op, ty)?, ty.bytes() as u8)),
        None => Unsupported::because("a reduction without an operation"),
    }
}

/// `st.async… [to], value, [barrier];` and `red.async… [to], value, [barrier];`
pub(super) fn store(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let space = i.space();
    if !matches!(space, Space::SharedCluster | Space::Shared) {
        return Unsupported::because("this instruction");
    }
    let ty = last_type(i)?;
    let to = cx.address(operand(i, 0)?, space)?;
    let value = operand(i, 1)?;
    let parts = match value {
        Operand::Vector(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    if parts.len() != usize::from(i.vector()) || ty.bytes() > 8 {
        return Unsupported::because("a vector of another width than the suffix says");
    }
    let mut rows = Vec::new();
    for part in parts {
        rows.push(cx.src(part, ty)?);
    }
    let reduce = match i.opcode == "red" {
        true => Some(reduction(i)?.0),
        false => None,
    };
    let complete = cx.address(operand(i, 2)?, space)?;
    cx.push(Kind::AsyncStore(Box::new(AsyncStore {
        to,
        rows,
        bytes: ty.bytes() as u8,
        reduce,
        complete,
    })))
}

pub(super) fn mbarrier(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let Some(SyncOp::Mbarrier { op, address, .. }) = ptx::isa::sync(i) else {
        return Unsupported::because("this instruction");
    };
    let one = cx.builder.constant(1);
    let space = i.space();
    if op == MbarrierOp::PendingCount {
        let d = cx.dst(operand(i, 0)?)?;
        let a = cx.src(operand(i, 1)?, Type::B64)?;
        let zero = cx.builder.constant(0);
        let address = crate::code::Address {
            address_space: crate::code::AddressSpace::Shared,
            base: zero,
            offset: 0,
        };
        let kind = MbarrierKind::PendingCount;
        return cx.push(Kind::Mbarrier(Box::new(Mbarrier {
            kind,
            address,
            d: Some(d),
            a,
            b: SINK,
        })));
    }
    let at = cx.address(operand(i, address)?, space)?;
    let mut mbarrier = Mbarrier {
        kind: MbarrierKind::Inval,
        address: at,
        d: None,
        a: one,
        b: one,
    };
    let tests = matches!(op, MbarrierOp::TestWait | MbarrierOp::TryWait);
    if address > 0 {
        let first = operand(i, 0)?;
        mbarrier.d = Some(if tests {
            cx.dst_pred(first)?
        } else {
            cx.dst(first)?
        });
    }
    let argument = i.operands.get(address + 1);
    mbarrier.kind = match op {
        MbarrierOp::Init => MbarrierKind::Init,
        MbarrierOp::Inval => MbarrierKind::Inval,
        MbarrierOp::Arrive | MbarrierOp::ArriveDrop => MbarrierKind::Arrive {
            drop: op == MbarrierOp::ArriveDrop,
            expect: i.has("expect_tx"),
        },
        MbarrierOp::ExpectTx => MbarrierKind::ExpectTx,
        MbarrierOp::CompleteTx => MbarrierKind::CompleteTx,
        MbarrierOp::TestWait | MbarrierOp::TryWait => MbarrierKind::TestWait {
            parity: i.has("parity"),
        },
        MbarrierOp::PendingCount | MbarrierOp::CopyArrive => {
            return Unsupported::because("this instruction");
        }
    };
    if let Some(argument) = argument {
        let ty = if tests { Type::B64 } else { Type::U32 };
        let value = cx.src(argument, ty)?;
        match mbarrier.kind {
            // The count expected; the arrival itself counts once.
            MbarrierKind::Arrive { expect: true, .. } => mbarrier.b = value,
            _ => mbarrier.a = value,
        }
    }
    cx.push(Kind::Mbarrier(Box::new(mbarrier)))
}
