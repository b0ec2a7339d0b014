//! Comparisons, predicates, and choosing by them.

use ptx::ast::{Instruction, Operand, Type};

use super::context::{Decoder, SINK_PRED, TRUE, Unsupported, operand};
use super::{Result, pairs, special};
use crate::lanes::{AluFn, Args, Rows, Shape, WARP, alu, map3, test2};
use crate::values::approx::flush;
use crate::values::soft::{BF16, F16, F32, Round, convert};

/// What becomes of the comparison and a second predicate.
pub(super) const AND: u32 = 1;
pub(super) const OR: u32 = 2;
pub(super) const XOR: u32 = 3;

#[inline(always)]
fn store(rows: &mut Rows<'_>, args: &Args, mask: u32, test: u32) {
    let other = rows.pred(args.c);
    let combine = |test: u32| match args.imm {
        AND => test & other,
        OR => test | other,
        XOR => test ^ other,
        _ => test,
    };
    rows.put_pred(args.d, mask, combine(test));
    rows.put_pred(args.e, mask, combine(!test));
}

macro_rules! comparison {
    (|$a:ident, $b:ident: $t:ty| $test:expr) => {{
        fn run(rows: &mut Rows<'_>, args: &Args, mask: u32) {
            let test = test2::<$t>(rows, args, mask, |$a, $b| $test);
            store(rows, args, mask, test);
        }
        run as AluFn
    }};
}

macro_rules! integer {
    ($op:expr, $t:ty) => {
        match $op {
            "eq" => comparison!(|a, b: $t| a == b),
            "ne" => comparison!(|a, b: $t| a != b),
            "lt" | "lo" => comparison!(|a, b: $t| a < b),
            "le" | "ls" => comparison!(|a, b: $t| a <= b),
            "gt" | "hi" => comparison!(|a, b: $t| a > b),
            "ge" | "hs" => comparison!(|a, b: $t| a >= b),
            _ => return Unsupported::because("this comparison"),
        }
    };
}

macro_rules! float {
    ($op:expr, $t:ty, $read:expr) => {
        match $op {
            "eq" => comparison!(|a, b: $t| $read(a) == $read(b)),
            "ne" => comparison!(|a, b: $t| {
                let (x, y) = ($read(a), $read(b));
                x != y && x.partial_cmp(&y).is_some()
            }),
            "lt" => comparison!(|a, b: $t| $read(a) < $read(b)),
            "le" => comparison!(|a, b: $t| $read(a) <= $read(b)),
            "gt" => comparison!(|a, b: $t| $read(a) > $read(b)),
            "ge" => comparison!(|a, b: $t| $read(a) >= $read(b)),
            "equ" => comparison!(|a, b: $t| {
                let (x, y) = ($read(a), $read(b));
                x == y || x.partial_cmp(&y).is_none()
            }),
            "neu" => comparison!(|a, b: $t| $read(a) != $read(b)),
            "ltu" => comparison!(|a, b: $t| !($read(a) >= $read(b))),
            "leu" => comparison!(|a, b: $t| !($read(a) > $read(b))),
            "gtu" => comparison!(|a, b: $t| !($read(a) <= $read(b))),
            "geu" => comparison!(|a, b: $t| !($read(a) < $read(b))),
            "num" => comparison!(|a, b: $t| !$read(a).is_nan() && !$read(b).is_nan()),
            "nan" => comparison!(|a, b: $t| $read(a).is_nan() || $read(b).is_nan()),
            _ => return Unsupported::because("this comparison"),
        }
    };
}

#[inline(always)]
fn plain<T>(x: T) -> T {
    x
}

fn half(bits: u16) -> f32 {
    f32::from_bits(convert(u64::from(bits), F16, F32, Round::Nearest) as u32)
}

fn flushed_half(bits: u16) -> f32 {
    half(F16.flush(bits.into()) as u16)
}

fn bfloat(bits: u16) -> f32 {
    f32::from_bits(convert(u64::from(bits), BF16, F32, Round::Nearest) as u32)
}

#[allow(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "the unordered comparisons hold for NaN"
)]
pub(super) fn comparison(op: &str, ty: Type, ftz: bool) -> Result<AluFn> {
    Ok(match ty {
        Type::U16 | Type::B16 => integer!(op, u16),
        Type::S16 => integer!(op, i16),
        Type::U32 | Type::B32 => integer!(op, u32),
        Type::S32 => integer!(op, i32),
        Type::U64 | Type::B64 => integer!(op, u64),
        Type::S64 => integer!(op, i64),
        Type::F32 if ftz => float!(op, f32, flush),
        Type::F32 => float!(op, f32, plain),
        Type::F64 => float!(op, f64, plain),
        Type::F16 if ftz => float!(op, u16, flushed_half),
        Type::F16 => float!(op, u16, half),
        Type::BF16 => float!(op, u16, bfloat),
        _ => return Unsupported::because("a comparison of this type"),
    })
}

/// What an instruction compares, and how.
#[derive(Clone, Copy)]
pub(super) struct Comparison {
    pub(super) f: AluFn,
    /// What becomes of the result and a second predicate.
    pub(super) imm: u32,
    /// What is compared.
    pub(super) ty: Type,
}

/// The comparison that the suffixes of `i` name.
pub(super) fn parts(i: &Instruction) -> Result<Comparison> {
    let op = i.suffixes.first().map_or("", |suffix| suffix.as_str());
    let Some(&ty) = i.types().last() else {
        return Unsupported::because("a comparison without a type");
    };
    let combine = match i.suffixes.get(1).map_or("", |suffix| suffix.as_str()) {
        "and" => AND,
        "or" => OR,
        "xor" => XOR,
        _ => 0,
    };
    let scalar = match ty {
        Type::F16x2 => Type::F16,
        Type::BF16x2 => Type::BF16,
        ty => ty,
    };
    Ok(Comparison {
        f: comparison(op, scalar, i.has("ftz"))?,
        imm: combine,
        ty,
    })
}

/// `setp.op{.bool}.type p{|q}, a, b{, c};`
pub(super) fn setp(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let by @ Comparison { f, imm, ty } = parts(i)?;
    if matches!(ty, Type::F16x2 | Type::BF16x2) {
        return pairs::setp(cx, i, by);
    }
    let (d, e) = match operand(i, 0)? {
        Operand::Pair(p, q) => (cx.dst_pred(p)?, cx.dst_pred(q)?),
        p => (cx.dst_pred(p)?, SINK_PRED),
    };
    let a = cx.src(operand(i, 1)?, ty)?;
    let b = cx.src(operand(i, 2)?, ty)?;
    let c = if imm == 0 {
        2 * TRUE
    } else {
        cx.src_pred(operand(i, 3)?)?
    };
    cx.push_alu(
        f,
        Args {
            d,
            e,
            a,
            b,
            c,
            imm,
            shape: Shape::Test,
        },
    )
}

/// `set.op{.bool}.dtype.stype d, a, b{, c};`: all ones, or 1.0, where it holds.
pub(super) fn set(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let by @ Comparison { f, imm, ty } = parts(i)?;
    let types = i.types();
    if matches!(ty, Type::F16x2 | Type::BF16x2) {
        return pairs::set(cx, i, by);
    }
    let one = match types.first() {
        Some(Type::U32 | Type::S32) => u64::from(u32::MAX),
        Some(Type::U16 | Type::S16) => u64::from(u16::MAX),
        Some(Type::F32) => u64::from(1f32.to_bits()),
        Some(Type::F16) => 0x3c00,
        Some(Type::BF16) => 0x3f80,
        _ => return Unsupported::because("a result of this type"),
    };
    if types.len() < 2 {
        return Unsupported::because("a set with one type");
    }
    let d = cx.dst(operand(i, 0)?)?;
    let a = cx.src(operand(i, 1)?, ty)?;
    let b = cx.src(operand(i, 2)?, ty)?;
    let c = if imm == 0 {
        2 * TRUE
    } else {
        cx.src_pred(operand(i, 3)?)?
    };
    let test = cx.new_pred();
    cx.push_alu(
        f,
        Args {
            d: test,
            e: SINK_PRED,
            a,
            b,
            c,
            imm,
            shape: Shape::Test,
        },
    )?;
    let (a, b) = (cx.builder.constant(one), cx.builder.constant(0));
    cx.push_alu(
        choose,
        Args {
            d,
            e: 0,
            a,
            b,
            c: 2 * test,
            imm: 0,
            shape: Shape::Choose,
        },
    )
}

/// `a` where the predicate holds, `b` elsewhere.
pub(super) fn choose(rows: &mut Rows<'_>, args: &Args, mask: u32) {
    let pred = rows.pred(args.c);
    let mut out = [0; WARP];
    let (a, b) = (rows.src(args.a), rows.src(args.b));
    for lane in 0..WARP {
        out[lane] = if pred >> lane & 1 == 1 {
            a[lane]
        } else {
            b[lane]
        };
    }
    rows.put(args.d, mask, &out);
}

/// `selp` chooses by a predicate, `slct` by a sign.
pub(super) fn select(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let types = i.types();
    let Some(&ty) = types.first() else {
        return Unsupported::because("an instruction without a type");
    };
    if i.opcode == "slct" {
        let by = types.get(1).copied().unwrap_or(Type::S32);
        let f: AluFn = match (by, i.has("ftz")) {
            (Type::F32, true) => |rows, args, mask| {
                map3(
                    rows,
                    args,
                    mask,
                    |a: u64, b: u64, c: f32| if flush(c) >= 0.0 { a } else { b },
                )
            },
            (Type::F32, false) => {
                alu!(|a: u64, b: u64, c: f32| -> u64 { if c >= 0.0 { a } else { b } })
            }
            _ => alu!(|a: u64, b: u64, c: i32| -> u64 { if c >= 0 { a } else { b } }),
        };
        return cx.compute(i, &[ty, ty, by], f, 0);
    }
    let d = cx.dst(operand(i, 0)?)?;
    let a = cx.src(operand(i, 1)?, ty)?;
    let b = cx.src(operand(i, 2)?, ty)?;
    let c = cx.src_pred(operand(i, 3)?)?;
    cx.push_alu(
        choose,
        Args {
            d,
            e: 0,
            a,
            b,
            c,
            imm: 0,
            shape: Shape::Choose,
        },
    )
}

/// `and`, `or`, `xor` and `not` of predicates.
pub(super) fn logic(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let d = cx.dst_pred(operand(i, 0)?)?;
    let a = cx.src_pred(operand(i, 1)?)?;
    let not = i.opcode == "not";
    let b = if not {
        2 * TRUE
    } else {
        cx.src_pred(operand(i, 2)?)?
    };
    let f: AluFn = match i.opcode.as_str() {
        "and" => |rows, args, mask| {
            let value = rows.pred(args.a) & rows.pred(args.b);
            rows.put_pred(args.d, mask, value);
        },
        "or" => |rows, args, mask| {
            let value = rows.pred(args.a) | rows.pred(args.b);
            rows.put_pred(args.d, mask, value);
        },
        // The other source of `not` always holds.
        _ => |rows, args, mask| {
            let value = rows.pred(args.a) ^ rows.pred(args.b);
            rows.put_pred(args.d, mask, value);
        },
    };
    cx.push_alu(
        f,
        Args {
            d,
            e: 0,
            a,
            b,
            c: 0,
            imm: 0,
            shape: Shape::Preds,
        },
    )
}

/// `mov.pred`
pub(super) fn move_pred(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let d = cx.dst_pred(operand(i, 0)?)?;
    if let Operand::Name {
        name, component, ..
    } = operand(i, 1)?
        && cx.register(name).is_none()
        && let Some(special) = special::lookup(name, *component)
    {
        let row = cx.new_row();
        cx.push(crate::code::Kind::Special(row, special))?;
        return holds(cx, row, d, 2 * TRUE, 0);
    }
    let a = cx.src_pred(operand(i, 1)?)?;
    copy(cx, d, a)
}

/// Lets a predicate be whether a row is not zero, combined with another predicate source.
pub(super) fn holds(
    cx: &mut Decoder<'_, '_>,
    row: u32,
    d: u32,
    other: u32,
    imm: u32,
) -> Result<()> {
    let zero = cx.builder.constant(0);
    cx.push_alu(
        comparison("ne", Type::U32, false)?,
        Args {
            d,
            e: SINK_PRED,
            a: row,
            b: zero,
            c: other,
            imm,
            shape: Shape::Test,
        },
    )
}

/// Lets a predicate be what a predicate source is.
pub(super) fn copy(cx: &mut Decoder<'_, '_>, d: u32, a: u32) -> Result<()> {
    let f: AluFn = |rows, args, mask| {
        let value = rows.pred(args.a);
        rows.put_pred(args.d, mask, value);
    };
    cx.push_alu(
        f,
        Args {
            d,
            e: 0,
            a,
            b: 0,
            c: 0,
            imm: 0,
            shape: Shape::Preds,
        },
    )
}
