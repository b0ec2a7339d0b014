//! Floating-point arithmetic.
//!
//! Round-to-nearest in single and double precision is the host's own; other formats and rounding
//! modes go through exact arithmetic.

use ptx::ast::{Instruction, Type};

use super::context::{Decoder, Unsupported, last_type};
use super::{Result, half};
use crate::lanes::{AluFn, alu, has_fma};
use crate::values::approx::{self, Function, canonical, coarse, fine_rsqrt, flush, single};
use crate::values::directed;
use crate::values::mods::{self, Arith, FTZ, arith, extreme};
use crate::values::soft::{F32, F64, Round};

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let ty = last_type(i)?;
    let m = mods::of(i);
    if i.types().len() > 1 {
        return Unsupported::because("mixed precision");
    }
    if i.has("oob") {
        return Unsupported::because("`.oob`, whose NaN the ISA does not give");
    }
    match ty {
        Type::F32 | Type::F64 => {}
        Type::F16 | Type::F16x2 | Type::BF16 | Type::BF16x2 => return half::decode(cx, i, ty, m),
        _ => return Unsupported::because("an operation on this type"),
    }
    let wide = ty == Type::F64;
    let one = [ty];
    let two = [ty; 2];
    let three = [ty; 3];
    match i.opcode.as_str() {
        "add" => cx.compute(i, &two, sum(Arith::Add, wide, m), m),
        "sub" => cx.compute(i, &two, sum(Arith::Sub, wide, m), m),
        "mul" => cx.compute(i, &two, sum(Arith::Mul, wide, m), m),
        "fma" | "mad" => cx.compute(i, &three, fused(wide, m), m),
        "div" => cx.compute(i, &two, quotient(i, wide, m), m),
        "abs" => {
            let f = if wide {
                alu!(|a: u64| -> u64 { a & !(1 << 63) })
            } else {
                alu!(imm m, |a: f32| -> f32 { ftz(a, m).abs() })
            };
            cx.compute(i, &one, f, m)
        }
        "neg" => {
            let f = if wide {
                alu!(|a: u64| -> u64 { a ^ 1 << 63 })
            } else {
                alu!(imm m, |a: f32| -> f32 { -ftz(a, m) })
            };
            cx.compute(i, &one, f, m)
        }
        "min" | "max" => {
            let of = match i.opcode.as_str() {
                "max" => Extreme::Max,
                _ => Extreme::Min,
            };
            let f = extremes(of, wide, m);
            // `.abs` belongs to `.xorsign` and compares magnitudes.
            cx.compute(i, &two, f, m)
        }
        "rcp" | "sqrt" if !i.has("approx") => cx.compute(i, &one, exact(i, wide, m), m),
        "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => {
            cx.compute(i, &one, approximate(&i.opcode, wide)?, m)
        }
        "copysign" => {
            let f = if wide {
                alu!(|a: f64, b: f64| -> f64 { b.copysign(a) })
            } else {
                alu!(|a: f32, b: f32| -> f32 { b.copysign(a) })
            };
            cx.compute(i, &two, f, 0)
        }
        "testp" => test(cx, i, wide),
        _ => Unsupported::because("this instruction"),
    }
}

#[derive(Clone, Copy, Debug)]
enum Extreme {
    Min,
    Max,
}

/// `min` and `max`.
fn extremes(of: Extreme, wide: bool, m: u32) -> AluFn {
    // Of two zeros the sign decides; equal values have equal bits otherwise.
    match (of, wide, m) {
        (Extreme::Max, false, 0) => alu!(|a: f32, b: f32| -> f32 {
            if a > b {
                a
            } else if a == b {
                f32::from_bits(a.to_bits() & b.to_bits())
            } else {
                other(a, b)
            }
        }),
        (Extreme::Min, false, 0) => alu!(|a: f32, b: f32| -> f32 {
            if a < b {
                a
            } else if a == b {
                f32::from_bits(a.to_bits() | b.to_bits())
            } else {
                other(a, b)
            }
        }),
        (Extreme::Max, true, 0) => alu!(|a: f64, b: f64| -> f64 {
            if a > b || b.is_nan() {
                a
            } else if a == b {
                f64::from_bits(a.to_bits() & b.to_bits())
            } else {
                b
            }
        }),
        (Extreme::Min, true, 0) => alu!(|a: f64, b: f64| -> f64 {
            if a < b || b.is_nan() {
                a
            } else if a == b {
                f64::from_bits(a.to_bits() | b.to_bits())
            } else {
                b
            }
        }),
        (Extreme::Min, false, _) => {
            alu!(imm m, |a: u64, b: u64| -> u64 { extreme(false, F32, m, a, b) })
        }
        (Extreme::Max, false, _) => {
            alu!(imm m, |a: u64, b: u64| -> u64 { extreme(true, F32, m, a, b) })
        }
        (Extreme::Min, true, _) => {
            alu!(imm m, |a: u64, b: u64| -> u64 { extreme(false, F64, m, a, b) })
        }
        (Extreme::Max, true, _) => {
            alu!(imm m, |a: u64, b: u64| -> u64 { extreme(true, F64, m, a, b) })
        }
    }
}

/// `b`, unless that is NaN; then `a`, unless that is, too.
#[inline(always)]
fn other(a: f32, b: f32) -> f32 {
    if b.is_nan() { one_nan(a) } else { b }
}

/// Flushes where the modifiers say so.
#[inline(always)]
fn ftz(x: f32, m: u32) -> f32 {
    if m & FTZ != 0 { flush(x) } else { x }
}

/// Single precision has one NaN.
#[inline(always)]
fn one_nan(x: f32) -> f32 {
    if x.is_nan() { canonical() } else { x }
}

/// An operand in double precision, or a zero if it is subnormal.
#[inline(always)]
fn flushed_operand(x: f32) -> f64 {
    f64::from(flush(x))
}

/// Rounds a result in double precision to a single and flushes it as `.ftz` does. `result` must be exact, or must compare
/// with every number of 25 bits as the exact result does.
///
/// The rule is that of [`Format::pack_flushed`](crate::values::soft::Format::pack_flushed): a result that is less than the
/// least normal number by at most half a unit in its last place is rounded up to it, and a smaller one becomes a zero.
/// Sums do not need this, because a subnormal sum is exact.
#[inline(always)]
fn flushed(result: f64) -> f32 {
    const KEPT: f64 = f32::MIN_POSITIVE as f64 * (1.0 - 1.0 / (1 << 25) as f64);
    let kept = match result.abs() < KEPT {
        true => 0.0_f64.copysign(result),
        false => result,
    };
    one_nan(kept as f32)
}

/// `add`, `sub` and `mul`.
fn sum(op: Arith, wide: bool, m: u32) -> AluFn {
    match (op, wide, m) {
        (Arith::Add, false, 0) => alu!(|a: f32, b: f32| -> f32 { one_nan(a + b) }),
        (Arith::Sub, false, 0) => alu!(|a: f32, b: f32| -> f32 { one_nan(a - b) }),
        (Arith::Mul, false, 0) => alu!(|a: f32, b: f32| -> f32 { one_nan(a * b) }),
        (Arith::Add, false, FTZ) => {
            alu!(|a: f32, b: f32| -> f32 { flush(one_nan(flush(a) + flush(b))) })
        }
        (Arith::Sub, false, FTZ) => {
            alu!(|a: f32, b: f32| -> f32 { flush(one_nan(flush(a) - flush(b))) })
        }
        (Arith::Mul, false, FTZ) => {
            alu!(|a: f32, b: f32| -> f32 { flushed(flushed_operand(a) * flushed_operand(b)) })
        }
        (Arith::Add, true, 0) => alu!(|a: f64, b: f64| -> f64 { a + b }),
        (Arith::Sub, true, 0) => alu!(|a: f64, b: f64| -> f64 { a - b }),
        (Arith::Mul, true, 0) => alu!(|a: f64, b: f64| -> f64 { a * b }),
        (Arith::Add, false, _) => {
            alu!(imm m, |a: u64, b: u64| -> u64 { arith(Arith::Add, F32, m, a, b, 0) })
        }
        (Arith::Sub, false, _) => {
            alu!(imm m, |a: u64, b: u64| -> u64 { arith(Arith::Sub, F32, m, a, b, 0) })
        }
        (_, false, _) => {
            alu!(imm m, |a: u64, b: u64| -> u64 { arith(Arith::Mul, F32, m, a, b, 0) })
        }
        (Arith::Add, true, _) => {
            alu!(imm m, |a: u64, b: u64| -> u64 { arith(Arith::Add, F64, m, a, b, 0) })
        }
        (Arith::Sub, true, _) => {
            alu!(imm m, |a: u64, b: u64| -> u64 { arith(Arith::Sub, F64, m, a, b, 0) })
        }
        (_, true, _) => alu!(imm m, |a: u64, b: u64| -> u64 { arith(Arith::Mul, F64, m, a, b, 0) }),
    }
}

fn fused(wide: bool, m: u32) -> AluFn {
    match (wide, m) {
        (false, 0) if has_fma() => {
            alu!(|a: f32, b: f32, c: f32| -> f32 { one_nan(a.mul_add(b, c)) })
        }
        (false, 0) => alu!(|a: f32, b: f32, c: f32| -> f32 { one_nan(fma32(a, b, c)) }),
        (false, FTZ) => alu!(|a: f32, b: f32, c: f32| -> f32 {
            flushed(directed::odd_sum(
                flushed_operand(a) * flushed_operand(b),
                flushed_operand(c),
            ))
        }),
        (true, 0) => alu!(|a: f64, b: f64, c: f64| -> f64 { a.mul_add(b, c) }),
        (false, 2) => alu!(|a: f32, b: f32, c: f32| -> f32 {
            match directed::fma(a, b, c, Round::Down) {
                Some(result) => result,
                // Of what is not finite the mode makes nothing.
                None => one_nan(fma32(a, b, c)),
            }
        }),
        (false, _) => {
            alu!(imm m, |a: u64, b: u64, c: u64| -> u64 { arith(Arith::Fma, F32, m, a, b, c) })
        }
        (true, _) => {
            alu!(imm m, |a: u64, b: u64, c: u64| -> u64 { arith(Arith::Fma, F64, m, a, b, c) })
        }
    }
}

/// `a * b + c` rounded once, in arithmetic that vectorises without an FMA unit.
///
/// The product is exact in double precision. The sum is rounded to odd there, which leaves enough
/// bits for the second rounding to be right (Boldo and Melquiond, IEEE ToC 2008).
#[inline(always)]
pub(crate) fn fma32(a: f32, b: f32, c: f32) -> f32 {
    directed::odd_sum(f64::from(a) * f64::from(b), f64::from(c)) as f32
}

fn quotient(i: &Instruction, wide: bool, m: u32) -> AluFn {
    // The approximate and full-range divisions are rounded correctly, which their bounds allow.
    let loose = i.has("approx") || i.has("full");
    match (wide, m) {
        (false, 0) => alu!(|a: f32, b: f32| -> f32 { one_nan(a / b) }),
        (false, FTZ) => {
            alu!(|a: f32, b: f32| -> f32 { flushed(flushed_operand(a) / flushed_operand(b)) })
        }
        (true, 0) => alu!(|a: f64, b: f64| -> f64 { a / b }),
        (false, _) if loose => alu!(|a: f32, b: f32| -> f32 { one_nan(a / b) }),
        (false, _) => alu!(imm m, |a: u64, b: u64| -> u64 { arith(Arith::Div, F32, m, a, b, 0) }),
        (true, _) => alu!(imm m, |a: u64, b: u64| -> u64 { arith(Arith::Div, F64, m, a, b, 0) }),
    }
}

/// `rcp` and `sqrt` with a rounding mode.
fn exact(i: &Instruction, wide: bool, m: u32) -> AluFn {
    match (i.opcode == "rcp", wide, m) {
        (true, false, 0) => alu!(|a: f32| -> f32 { one_nan(1.0 / a) }),
        (true, true, 0) => alu!(|a: f64| -> f64 { 1.0 / a }),
        (false, false, 0) => alu!(|a: f32| -> f32 { approx::one_nan(a.sqrt()) }),
        (false, true, 0) => alu!(|a: f64| -> f64 { a.sqrt() }),
        (true, false, _) => alu!(imm m, |a: u64| -> u64 { arith(Arith::Rcp, F32, m, a, 0, 0) }),
        (true, true, _) => alu!(imm m, |a: u64| -> u64 { arith(Arith::Rcp, F64, m, a, 0, 0) }),
        (false, false, _) => alu!(imm m, |a: u64| -> u64 { arith(Arith::Sqrt, F32, m, a, 0, 0) }),
        (false, true, _) => alu!(imm m, |a: u64| -> u64 { arith(Arith::Sqrt, F64, m, a, 0, 0) }),
    }
}

fn approximate(opcode: &str, wide: bool) -> Result<AluFn> {
    Ok(match (opcode, wide) {
        ("rcp", false) => alu!(imm m, |a: f32| -> f32 { single(Function::Rcp, m, a) }),
        ("sqrt", false) => alu!(imm m, |a: f32| -> f32 { single(Function::Sqrt, m, a) }),
        ("rsqrt", false) => alu!(imm m, |a: f32| -> f32 { single(Function::Rsqrt, m, a) }),
        ("sin", false) => alu!(imm m, |a: f32| -> f32 { single(Function::Sin, m, a) }),
        ("cos", false) => alu!(imm m, |a: f32| -> f32 { single(Function::Cos, m, a) }),
        ("lg2", false) => alu!(imm m, |a: f32| -> f32 { single(Function::Lg2, m, a) }),
        ("ex2", false) => alu!(imm m, |a: f32| -> f32 { single(Function::Ex2, m, a) }),
        ("tanh", false) => alu!(imm m, |a: f32| -> f32 { single(Function::Tanh, m, a) }),
        // In double precision and with `.ftz` only the upper half is significant; programs refine it.
        ("rcp", true) => alu!(|a: f64| -> u64 { coarse(Function::Rcp, a) }),
        ("rsqrt", true) => alu!(imm m, |a: f64| -> u64 {
            if m & FTZ != 0 { coarse(Function::Rsqrt, a) } else { fine_rsqrt(a).to_bits() }
        }),
        _ => return Unsupported::because("this instruction"),
    })
}

/// `testp.class p, a;`
fn test(cx: &mut Decoder<'_, '_>, i: &Instruction, wide: bool) -> Result<()> {
    use crate::lanes::{Args, Rows, Shape, test2};
    macro_rules! class {
        ($t:ty, |$x:ident| $e:expr) => {{
            fn run(rows: &mut Rows<'_>, args: &Args, mask: u32) {
                let value = test2::<$t>(rows, args, mask, |$x, _| $e);
                rows.put_pred(args.d, mask, value);
            }
            run as AluFn
        }};
    }
    let name = i.suffixes.first().map_or("", |suffix| suffix.as_str());
    let f = match (name, wide) {
        ("finite", false) => class!(f32, |x| x.is_finite()),
        ("infinite", false) => class!(f32, |x| x.is_infinite()),
        ("number", false) => class!(f32, |x| !x.is_nan()),
        ("notanumber", false) => class!(f32, |x| x.is_nan()),
        // Zeros count as normal.
        ("normal", false) => class!(f32, |x| x.is_finite() && !x.is_subnormal()),
        ("subnormal", false) => class!(f32, |x| x.is_subnormal()),
        ("finite", true) => class!(f64, |x| x.is_finite()),
        ("infinite", true) => class!(f64, |x| x.is_infinite()),
        ("number", true) => class!(f64, |x| !x.is_nan()),
        ("notanumber", true) => class!(f64, |x| x.is_nan()),
        ("normal", true) => class!(f64, |x| x.is_finite() && !x.is_subnormal()),
        ("subnormal", true) => class!(f64, |x| x.is_subnormal()),
        _ => return Unsupported::because("this class"),
    };
    let ty = last_type(i)?;
    let d = cx.dst_pred(super::context::operand(i, 0)?)?;
    let a = cx.src(super::context::operand(i, 1)?, ty)?;
    cx.push_alu(
        f,
        Args {
            d,
            e: 0,
            a,
            b: a,
            c: 0,
            imm: 0,
            shape: Shape::Test,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_vectorised_fma_is_right(a: u32, b: u32, c: u32, near in 0u32..8) {
            let [x, y] = [a, b].map(f32::from_bits);
            let close = (-(x * y)).to_bits() ^ near;
            for c in [c, close, 0, 1] {
                let z = f32::from_bits(c);
                let (have, want) = (fma32(x, y, z), x.mul_add(y, z));
                prop_assert!(have.to_bits() == want.to_bits() || have.is_nan() && want.is_nan(),
                             "{x:e} {y:e} {z:e}: {have:e} {want:e}");
            }
        }

        #[test]
        fn what_is_flushed_is_what_is_subnormal_after_rounding(a: u32, b: u32, c: u32, scale in 0u32..4) {
            // Random products and quotients are seldom near the least normal number.
            let one = |bits: u32| bits & 0x807f_ffff | 127 << 23;
            let least = |bits: u32| bits & 0x807f_ffff | (1 + scale % 2) << 23;
            let near = |bits: u32| f32::MIN_POSITIVE.to_bits() + (bits & 3);
            for (x, y) in [(least(a), one(b) - ((scale / 2) << 23)), (near(a), near(b) + (126 << 23)), (a, b)] {
                let [m, n, o] = [x, y, c].map(f32::from_bits);
                let product = flushed(flushed_operand(m) * flushed_operand(n));
                let quotient = flushed(flushed_operand(m) / flushed_operand(n));
                let sum = flushed(directed::odd_sum(flushed_operand(m) * flushed_operand(n), flushed_operand(o)));
                let exact = |op, c| arith(op, F32, FTZ, x.into(), y.into(), c);
                prop_assert_eq!(u64::from(product.to_bits()), exact(Arith::Mul, 0), "{:e} * {:e}", m, n);
                prop_assert_eq!(u64::from(quotient.to_bits()), exact(Arith::Div, 0), "{:e} / {:e}", m, n);
                prop_assert_eq!(u64::from(sum.to_bits()), exact(Arith::Fma, c.into()), "{:e} * {:e} + {:e}", m, n, o);
            }
        }

        #[test]
        fn the_fast_min_and_max_are_the_exact_ones(a: u64, b: u64, same in 0u32..4) {
            // Random bits are seldom equal, zero or NaN.
            let special = [0, 1 << 31, 0x7fc0_0001, 1 << 63, 0x7ff8 << 48, a, b, a ^ 1 << 63];
            let pick = |n: u32, own| if n < 8 { special[n as usize] } else { own };
            for (x, y) in [(pick(same * 2, a), pick(same * 2 + 1, b)), (a, a), (pick(same, a), b)] {
                for (of, wide) in [(Extreme::Min, false), (Extreme::Min, true), (Extreme::Max, false), (Extreme::Max, true)] {
                    let cut = |v: u64| if wide { v } else { v & 0xffff_ffff };
                    let mut regs = [[cut(x); 32], [cut(y); 32], [0; 32]];
                    let mut rows = crate::lanes::Rows { regs: &mut regs, preds: &mut [], consts: &[] };
                    let args = crate::lanes::Args { d: 2, b: 1, ..Default::default() };
                    extremes(of, wide, 0)(&mut rows, &args, u32::MAX);
                    let format = if wide { F64 } else { F32 };
                    let want = extreme(matches!(of, Extreme::Max), format, 0, cut(x), cut(y));
                    let nan = wide && format.is_nan(want) && format.is_nan(regs[2][7]);
                    prop_assert!(regs[2][7] == want || nan, "{x:#x} {y:#x} {of:?} {wide}");
                }
            }
        }

        #[test]
        fn min_and_max_agree_with_the_host(a: u64, b: u64) {
            let [x, y] = [a, b].map(f64::from_bits);
            let value = |max| f64::from_bits(extreme(max, F64, 0, a, b));
            if !x.is_nan() && !y.is_nan() && x != y {
                prop_assert_eq!(value(true), x.max(y));
                prop_assert_eq!(value(false), x.min(y));
            }
        }
    }

    #[test]
    fn zeros_have_an_order() {
        let (plus, minus) = (0f32.to_bits().into(), (-0f32).to_bits().into());
        assert_eq!(extreme(true, F32, 0, minus, plus), plus);
        assert_eq!(extreme(false, F32, 0, plus, minus), minus);
        assert_eq!(extreme(true, F32, 0, 0x7fc0_0000, minus), minus);
        assert_eq!(
            extreme(true, F32, mods::NAN, 0x7fc0_0000, minus),
            0x7fff_ffff
        );
    }
}
