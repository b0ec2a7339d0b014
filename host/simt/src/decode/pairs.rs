//! Comparisons of packed halves: `setp` and `set` of `f16x2` and `bf16x2`.

use ptx::ast::{Instruction, Operand, Type};

use super::Result;
use super::compare::{Comparison, choose, copy};
use super::context::{Decoder, SINK_PRED, TRUE, Unsupported, operand};
use crate::lanes::{Args, Shape, alu};

/// Compares the halves; the predicates of the low and the high one. `d`, if it is given, is the
/// predicate of the low one.
fn compare(
    cx: &mut Decoder<'_, '_>,
    i: &Instruction,
    Comparison { f, imm, ty }: Comparison,
    low: u32,
) -> Result<(u32, u32)> {
    let sources = [cx.src(operand(i, 1)?, ty)?, cx.src(operand(i, 2)?, ty)?];
    let c = if imm == 0 {
        2 * TRUE
    } else {
        cx.src_pred(operand(i, 3)?)?
    };
    let high = cx.new_pred();
    let upper = alu!(|a: u32| -> u32 { a >> 16 });
    let mut halves = [0; 2];
    for (half, a) in halves.iter_mut().zip(sources) {
        *half = cx.new_row();
        let d = *half;
        cx.push_alu(
            upper,
            Args {
                d,
                a,
                ..Args::default()
            },
        )?;
    }
    // The high one first: what it is combined with may be the low one's result.
    for (d, [a, b]) in [(high, halves), (low, sources)] {
        cx.push_alu(
            f,
            Args {
                d,
                e: SINK_PRED,
                a,
                b,
                c,
                imm,
                shape: Shape::Test,
            },
        )?;
    }
    Ok((low, high))
}

/// `setp… p|q, a, b{, c};`: one predicate per half.
pub(super) fn setp(cx: &mut Decoder<'_, '_>, i: &Instruction, by: Comparison) -> Result<()> {
    let Operand::Pair(p, q) = operand(i, 0)? else {
        return Unsupported::because("a result of this form");
    };
    let (p, q) = (cx.dst_pred(p)?, cx.dst_pred(q)?);
    let (_, high) = compare(cx, i, by, p)?;
    copy(cx, q, 2 * high)
}

/// `set… d, a, b{, c};`: ones, or 1.0, in each half where it holds.
pub(super) fn set(cx: &mut Decoder<'_, '_>, i: &Instruction, by: Comparison) -> Result<()> {
    let one = match i.types()[..] {
        [Type::F16x2, _] => 0x3c00,
        [Type::BF16x2, _] => 0x3f80,
        [Type::U32 | Type::S32, _] => 0xffff,
        _ => return Unsupported::because("a result of this type"),
    };
    let d = cx.dst(operand(i, 0)?)?;
    let low = cx.new_pred();
    let (low, high) = compare(cx, i, by, low)?;
    let zero = cx.builder.constant(0);
    let mut parts = [0; 2];
    for (part, (pred, shift)) in parts.iter_mut().zip([(low, 0), (high, 16)]) {
        *part = cx.new_row();
        let (d, a) = (*part, cx.builder.constant(one << shift));
        cx.push_alu(
            choose,
            Args {
                d,
                a,
                b: zero,
                c: 2 * pred,
                shape: Shape::Choose,
                ..Args::default()
            },
        )?;
    }
    let [a, b] = parts;
    let join = alu!(|a: u32, b: u32| -> u32 { a | b });
    cx.push_alu(
        join,
        Args {
            d,
            a,
            b,
            ..Args::default()
        },
    )
}
