//! Barriers, and what the lanes of a warp do together.

use ptx::ast::{Instruction, Operand, Type};

use super::Result;
use super::context::{Decoder, SINK, SINK_PRED, TRUE, Unsupported, last_type, operand};
use crate::code::{Barrier, BarrierKind, Exchange, ExchangeKind, Kind};

pub(super) fn barrier(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let has = |suffix| i.has(suffix);
    if has("cluster") {
        return cx.push(Kind::ClusterBarrier {
            arrive: has("arrive"),
        });
    }
    if has("warp") {
        let members = cx.src(operand(i, 0)?, Type::B32)?;
        return cx.push(Kind::Exchange(Box::new(Exchange {
            kind: ExchangeKind::Barrier,
            members: Some(members),
            d: None,
            p: None,
            a: SINK,
            b: SINK,
            c: SINK,
        })));
    }
    let mut next = 0;
    let mut barrier = Barrier {
        kind: BarrierKind::Sync,
        id: 0,
        count: None,
        aligned: i.opcode == "bar" || has("aligned"),
        d: SINK,
        predicate: 2 * TRUE,
    };
    if has("red") {
        if has("popc") {
            barrier.kind = BarrierKind::Popc;
            barrier.d = cx.dst(operand(i, 0)?)?;
        } else {
            barrier.kind = if has("and") {
                BarrierKind::And
            } else {
                BarrierKind::Or
            };
            barrier.d = cx.dst_pred(operand(i, 0)?)?;
        }
        let last = i.operands.len().saturating_sub(1);
        barrier.predicate = cx.src_pred(operand(i, last)?)?;
        next = 1;
    } else if has("arrive") {
        barrier.kind = BarrierKind::Arrive;
    }
    let counts = i.operands.len() - usize::from(has("red"));
    barrier.id = cx.src(operand(i, next)?, Type::U32)?;
    if counts > next + 1 {
        barrier.count = Some(cx.src(operand(i, next + 1)?, Type::U32)?);
    }
    cx.push(Kind::Barrier(Box::new(barrier)))
}

pub(super) fn exchange(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let has = |suffix| i.has(suffix);
    let mut x = Exchange {
        kind: ExchangeKind::Elect,
        members: None,
        d: None,
        p: None,
        a: SINK,
        b: SINK,
        c: SINK,
    };
    let last = i.operands.len().saturating_sub(1);
    if has("sync") {
        x.members = Some(cx.src(operand(i, last)?, Type::B32)?);
    }
    match i.opcode.as_str() {
        "shfl" => {
            x.kind = match () {
                () if has("up") => ExchangeKind::ShflUp,
                () if has("down") => ExchangeKind::ShflDown,
                () if has("bfly") => ExchangeKind::ShflBfly,
                () => ExchangeKind::ShflIdx,
            };
            result(cx, &mut x, operand(i, 0)?)?;
            x.a = cx.src(operand(i, 1)?, Type::B32)?;
            x.b = cx.src(operand(i, 2)?, Type::U32)?;
            x.c = cx.src(operand(i, 3)?, Type::U32)?;
        }
        "vote" => {
            x.kind = match () {
                () if has("ballot") => ExchangeKind::Ballot,
                () if has("all") => ExchangeKind::VoteAll,
                () if has("any") => ExchangeKind::VoteAny,
                () => ExchangeKind::VoteUni,
            };
            if x.kind == ExchangeKind::Ballot {
                x.d = Some(cx.dst(operand(i, 0)?)?);
            } else {
                x.p = Some(cx.dst_pred(operand(i, 0)?)?);
            }
            x.a = cx.src_pred(operand(i, 1)?)?;
        }
        "match" => {
            let ty = last_type(i)?;
            let wide = ty.bytes() == 8;
            x.kind = if has("all") {
                ExchangeKind::MatchAll { wide }
            } else {
                ExchangeKind::MatchAny { wide }
            };
            result(cx, &mut x, operand(i, 0)?)?;
            x.a = cx.src(operand(i, 1)?, ty)?;
        }
        "redux" => {
            let ty = last_type(i)?;
            let signed = ty.is_signed();
            x.kind = match () {
                () if ty.is_float() => return Unsupported::because("a reduction of this type"),
                () if has("add") => ExchangeKind::ReduxAdd,
                () if has("min") && signed => ExchangeKind::ReduxMinS,
                () if has("min") => ExchangeKind::ReduxMinU,
                () if has("max") && signed => ExchangeKind::ReduxMaxS,
                () if has("max") => ExchangeKind::ReduxMaxU,
                () if has("and") => ExchangeKind::ReduxAnd,
                () if has("or") => ExchangeKind::ReduxOr,
                () => ExchangeKind::ReduxXor,
            };
            x.d = Some(cx.dst(operand(i, 0)?)?);
            x.a = cx.src(operand(i, 1)?, ty)?;
        }
        _ => result(cx, &mut x, operand(i, 0)?)?,
    }
    cx.push(Kind::Exchange(Box::new(x)))
}

/// `d` or `d|p`
fn result(cx: &mut Decoder<'_, '_>, x: &mut Exchange, operand: &Operand) -> Result<()> {
    let (d, p) = match operand {
        Operand::Pair(d, p) => (cx.dst(d)?, cx.dst_pred(p)?),
        d => (cx.dst(d)?, SINK_PRED),
    };
    (x.d, x.p) = (Some(d), Some(p));
    Ok(())
}

pub(super) fn activemask(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let d = cx.dst(operand(i, 0)?)?;
    cx.push(Kind::ActiveMask(d))
}
