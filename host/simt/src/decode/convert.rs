//! `cvt`.
//!
//! The conversions that programs use all the time are loops of the host's own; the others go
//! through exact arithmetic ([`slow`]).

use ptx::ast::{Instruction, Type};

use super::Result;
use super::context::{Decoder, Unsupported, operand};
use crate::lanes::{AluFn, Args, Shape, alu};
use crate::values::approx::{canonical, flush};
use crate::values::mods;
use crate::values::soft::{self, Exact, F32, F64, Format, Number, Round};

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let types = i.types();
    let (to, from) = match types[..] {
        [to, from] => (to, from),
        _ => return Unsupported::because("a conversion of these types"),
    };
    let m = mods::of(i);
    if matches!(to, Type::F16x2 | Type::BF16x2) && from == Type::F32 {
        let imm = m << 16 | code(scalar(to))? << 8 | code(Type::F32)?;
        let f = alu!(imm m, |a: u64, b: u64| -> u32 { (slow(a, m) << 16 | slow(b, m)) as u32 });
        return cx.compute(i, &[from, from], f, imm);
    }
    let d = cx.dst(operand(i, 0)?)?;
    let a = cx.src(operand(i, 1)?, from)?;
    // A result narrower than its register is extended to fill it.
    let width = cx.register_bits(operand(i, 0)?);
    let args = |imm| Args {
        d,
        e: 0,
        a,
        b: 0,
        c: 0,
        imm,
        shape: Shape::Rows,
    };
    if to.is_integer() && from.is_integer() && !i.has("sat") {
        let (f, imm) = integer(to, from, width);
        return cx.push_alu(f, args(imm));
    }
    let integral = ["rni", "rzi", "rmi", "rpi"]
        .iter()
        .any(|round| i.has(round));
    if let Some(f) = fast(to, from, m, integral) {
        return cx.push_alu(f, args(m));
    }
    let imm = m << 16 | u32::from(integral) << 31 | code(to)? << 8 | code(from)?;
    cx.push_alu(alu!(imm m, |a: u64| -> u64 { slow(a, m) }), args(imm))?;
    if to.is_signed() && 8 * to.bytes() < width {
        let (f, imm) = integer(to, to, width);
        return cx.push_alu(f, Args { a: d, ..args(imm) });
    }
    Ok(())
}

fn scalar(ty: Type) -> Type {
    match ty {
        Type::F16x2 => Type::F16,
        Type::BF16x2 => Type::BF16,
        ty => ty,
    }
}

/// Cutting and extending: the source's bits above its width go, the sign comes from the narrower
/// of the two when the source is signed, and the result is extended by its own signedness.
fn integer(to: Type, from: Type, width: u32) -> (AluFn, u32) {
    let (to_bits, from_bits) = (8 * to.bytes(), 8 * from.bytes());
    let cut = 64 - to_bits.min(from_bits);
    // Widening extends by the source's sign, cutting by the result's.
    let signed = if to_bits > from_bits {
        from.is_signed()
    } else {
        to.is_signed()
    };
    // A signed source widened to an unsigned result fills only the result.
    let keep = if to.is_signed() || !signed {
        width
    } else {
        to_bits
    };
    let f = if signed {
        alu!(imm m, |a: u64| -> u64 {
            let (cut, keep) = (m & 63, m >> 8);
            ((a << cut) as i64 >> cut) as u64 & (u64::MAX >> (64 - keep))
        })
    } else {
        alu!(imm m, |a: u64| -> u64 { (a << (m & 63)) >> (m & 63) })
    };
    (f, cut | keep << 8)
}

/// Conversions with a loop of their own.
fn fast(to: Type, from: Type, m: u32, integral: bool) -> Option<AluFn> {
    use Type::{F32, F64, S32, S64, U8, U16, U32, U64};
    Some(match (to, from, m) {
        (F64, F32, 0) => alu!(|a: f32| -> f64 {
            if a.is_nan() {
                f64::from_bits(soft::F64.nan_of(a.to_bits().into(), soft::F32))
            } else {
                f64::from(a)
            }
        }),
        (F32, F64, 0) if !integral => alu!(|a: f64| -> f32 {
            if a.is_nan() {
                f32::from_bits(soft::F32.nan_of(a.to_bits(), soft::F64) as u32)
            } else {
                a as f32
            }
        }),
        (F32, S32, 0) => alu!(|a: i32| -> f32 { a as f32 }),
        (F32, U32, 0) => alu!(|a: u32| -> f32 { a as f32 }),
        (F32, U16, 0) => alu!(|a: u16| -> f32 { f32::from(a) }),
        (F32, U8, 0) => alu!(|a: u8| -> f32 { f32::from(a) }),
        (F32, S64, 0) => alu!(|a: i64| -> f32 { a as f32 }),
        (F32, U64, 0) => alu!(|a: u64| -> f32 { a as f32 }),
        (F64, S32, 0) => alu!(|a: i32| -> f64 { f64::from(a) }),
        (F64, U32, 0) => alu!(|a: u32| -> f64 { f64::from(a) }),
        (F64, S64, 0) => alu!(|a: i64| -> f64 { a as f64 }),
        (F64, U64, 0) => alu!(|a: u64| -> f64 { a as f64 }),
        // Towards zero, saturating, NaN of a single to zero: just what the host's conversion does.
        (S32, F32, 1) => alu!(|a: f32| -> i32 { a as i32 }),
        (U32, F32, 1) => alu!(|a: f32| -> u32 { a as u32 }),
        (S32, F32, 9) => alu!(|a: f32| -> i32 { flush(a) as i32 }),
        (U32, F32, 9) => alu!(|a: f32| -> u32 { flush(a) as u32 }),
        (F32, F32, mods::SAT) if !integral => alu!(|a: f32| -> f32 { clamped(a) }),
        (F32, F32, 0) if integral => alu!(|a: f32| -> f32 { one_nan(a.round_ties_even()) }),
        (F32, F32, 1) if integral => alu!(|a: f32| -> f32 { one_nan(a.trunc()) }),
        (F32, F32, 2) if integral => alu!(|a: f32| -> f32 { one_nan(a.floor()) }),
        (F32, F32, 3) if integral => alu!(|a: f32| -> f32 { one_nan(a.ceil()) }),
        (S32, F64, 1) => alu!(|a: f64| -> i32 { if a.is_nan() { i32::MIN } else { a as i32 } }),
        (U32, F64, 1) => alu!(|a: f64| -> u32 { if a.is_nan() { 1 << 31 } else { a as u32 } }),
        _ => return None,
    })
}

/// Single precision has one NaN.
#[inline(always)]
fn one_nan(x: f32) -> f32 {
    if x.is_nan() { canonical() } else { x }
}

/// `.sat`: in [0, 1], and zero for a NaN and both zeros.
#[inline(always)]
fn clamped(x: f32) -> f32 {
    match x > 0.0 {
        true => x.min(1.0),
        false => 0.0,
    }
}

/// Types as numbers in an op's modifiers.
const CODES: [Type; 16] = [
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::BF16,
    Type::F32,
    Type::F64,
    Type::TF32,
    Type::B8,
    Type::B16,
    Type::B32,
];

fn code(ty: Type) -> Result<u32> {
    match CODES.iter().position(|&code| code == ty) {
        Some(code) => Ok(code as u32),
        None => Unsupported::because("a conversion of this type"),
    }
}

/// Any conversion. `m` holds the modifiers, both types, and whether a float is rounded to an
/// integral value.
fn slow(a: u64, m: u32) -> u64 {
    let (to, from) = (CODES[(m >> 8 & 15) as usize], CODES[(m & 15) as usize]);
    let (integral, m) = (m >> 31 == 1, m >> 16 & 0x7fff);
    let round = mods::round_of(m);
    // `.ftz` is about single precision only.
    let own = |ty| if ty == Type::F32 { m } else { m & !mods::FTZ };
    let number = match mods::format(from) {
        Some(format) => format.unpack(mods::input(a, format, own(from))),
        None => {
            let unused = 64 - 8 * from.bytes();
            let value = match from.is_signed() {
                true => i128::from((a << unused) as i64 >> unused),
                false => i128::from((a << unused) >> unused),
            };
            Number::Finite(Exact::integer(value))
        }
    };
    match mods::format(to) {
        Some(format) => {
            let number = match number {
                Number::Finite(exact) if integral => Number::Finite(to_integral(exact, round)),
                number => number,
            };
            let round = if integral { Round::Nearest } else { round };
            let nan = matches!(number, Number::Nan);
            let mut bits = match mods::format(from) {
                Some(from) if nan && keeps_nan(format, from) => format.nan_of(a, from),
                _ => format.pack(number, round),
            };
            if m & mods::SATFINITE != 0 && !nan && bits & format.infinity() == format.infinity() {
                bits -= 1;
            }
            let bits = mods::output(bits, format, own(to));
            // tf32 lives in the upper bits of a single.
            if to == Type::TF32 { bits << 13 } else { bits }
        }
        None => {
            let bits = 8 * to.bytes();
            let (low, high) = match to.is_signed() {
                true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                false => (0, (1i128 << bits) - 1),
            };
            let keep = u64::MAX >> (64 - bits);
            let value = match number {
                Number::Nan if from == Type::F64 || bits == 64 => return 1 << (bits - 1),
                Number::Nan => 0,
                Number::Infinite { negative: true } => low,
                Number::Infinite { negative: false } => high,
                Number::Finite(exact) => soft::to_integer(exact, round),
            };
            value.clamp(low, high) as u64 & keep
        }
    }
}

/// Whether a conversion keeps the sign of a NaN and the high bits of its payload. On an H100 conversions from double
/// precision and from single to double precision do; all others give the canonical NaN.
fn keeps_nan(to: Format, from: Format) -> bool {
    from == F64 || (to, from) == (F64, F32)
}

/// The integral value that `x` rounds to, with its sign even when that is zero.
fn to_integral(x: Exact, round: Round) -> Exact {
    if x.exponent >= 0 {
        return x;
    }
    let value = soft::to_integer(x, round);
    Exact {
        negative: x.negative,
        ..Exact::integer(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(to: Type, from: Type, mods: u32, integral: bool, a: u64) -> u64 {
        let codes = code(to).unwrap() << 8 | code(from).unwrap();
        slow(a, mods << 16 | u32::from(integral) << 31 | codes)
    }

    #[test]
    fn the_fast_conversions_agree_with_the_exact_ones() {
        let samples = [
            0,
            1,
            0x7f,
            0x80,
            0xffff_ffff,
            1 << 31,
            1 << 63,
            u64::MAX,
            0x3ff8 << 48,
            0xc5a1_b2c3_d4e5_f607,
            0x4f00_0000,
            0xcf00_0001,
            0x7f80_0000,
            0x7fc0_0000,
            0x3f80_0001,
        ];
        for to in CODES {
            for from in CODES {
                for m in [0, 1, 9] {
                    let rounds = to.is_integer() && from.is_float();
                    let Some(f) = fast(to, from, m, rounds) else {
                        continue;
                    };
                    for a in samples {
                        let a = if from.bytes() < 8 {
                            a & ((1 << (8 * from.bytes())) - 1)
                        } else {
                            a
                        };
                        let mut regs = [[a; 32], [0; 32]];
                        let mut rows = crate::lanes::Rows {
                            regs: &mut regs,
                            preds: &mut [],
                            consts: &[],
                        };
                        f(
                            &mut rows,
                            &Args {
                                d: 1,
                                imm: m,
                                ..Args::default()
                            },
                            u32::MAX,
                        );
                        let want = run(to, from, m, false, a);
                        assert!(
                            regs[1][0] == want,
                            "{to:?} {from:?} {m} {a:#x}: {:#x} {want:#x}",
                            regs[1][0]
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn rounding_to_integers() {
        let f = |x: f32| u64::from(x.to_bits());
        for (mods, want) in [(0, -2i32), (1, -2), (2, -3), (3, -2)] {
            assert_eq!(run(Type::S32, Type::F32, mods, true, f(-2.5)) as i32, want);
            assert_eq!(
                run(Type::F32, Type::F32, mods, true, f(-2.5)),
                f(want as f32)
            );
        }
        assert_eq!(run(Type::U8, Type::S32, mods::SAT, false, 300), 255);
        assert_eq!(
            run(
                Type::U8,
                Type::S32,
                mods::SAT,
                false,
                u64::from(-5i32 as u32)
            ),
            0
        );
        assert_eq!(run(Type::S64, Type::F32, 1, true, f(f32::NAN)), 1 << 63);
        assert_eq!(run(Type::F32, Type::F32, 0, true, f(-0.25)), f(-0.0));
    }
}
