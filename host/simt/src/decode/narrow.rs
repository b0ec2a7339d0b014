//! `cvt` from and to pairs of 8-bit floats, and `cvt.pack`.

use ptx::ast::{Instruction, Type};

use super::Result;
use super::context::{Decoder, Unsupported};
use crate::lanes::{AluFn, alu};
use crate::values::mods;
use crate::values::narrow::{E4M3, E5M2, Narrow};
use crate::values::soft::{F16, F64, Round, convert};

/// Bits of an op's modifiers.
const WIDE_EXPONENT: u32 = 1;
const RELU: u32 = 2;

fn format(m: u32) -> Narrow {
    if m & WIDE_EXPONENT != 0 { E5M2 } else { E4M3 }
}

/// True for the conversions that are decoded here.
pub(super) fn is_narrow(i: &Instruction) -> bool {
    let narrow = |ty: &Type| matches!(ty, Type::E4m3x2 | Type::E5m2x2);
    i.has("pack") || i.types().iter().any(narrow)
}

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    if i.has("pack") {
        return pack(cx, i);
    }
    let imm = |ty| {
        let wide = if ty == Type::E5m2x2 { WIDE_EXPONENT } else { 0 };
        let relu = if mods::of(i) & mods::RELU != 0 {
            RELU
        } else {
            0
        };
        wide | relu
    };
    match i.types()[..] {
        [to @ (Type::E4m3x2 | Type::E5m2x2), Type::F32] => {
            let f = alu!(imm m, |a: f32, b: f32| -> u32 {
                cut(m, a.into()) << 8 | cut(m, b.into())
            });
            cx.compute(i, &[Type::F32; 2], f, imm(to))
        }
        [to @ (Type::E4m3x2 | Type::E5m2x2), Type::F16x2] => {
            let f = alu!(imm m, |a: u32| -> u32 {
                let part = |half: u32| {
                    f64::from_bits(convert(u64::from(half), F16, F64, Round::Nearest))
                };
                cut(m, part(a >> 16)) << 8 | cut(m, part(a & 0xffff))
            });
            cx.compute(i, &[Type::F16x2], f, imm(to))
        }
        [Type::F16x2, from @ (Type::E4m3x2 | Type::E5m2x2)] => {
            let f =
                alu!(imm m, |a: u32| -> u32 { widen(m, a >> 8 & 0xff) << 16 | widen(m, a & 0xff) });
            cx.compute(i, &[Type::B16], f, imm(from))
        }
        _ => Unsupported::because("a conversion of these types"),
    }
}

/// The 8 bits of a value.
fn cut(m: u32, x: f64) -> u32 {
    let negative = m & RELU != 0 && x.is_sign_negative() && !x.is_nan();
    format(m).nearest(if negative { 0.0 } else { x })
}

/// The half with the value of 8 bits, which it always has.
fn widen(m: u32, bits: u32) -> u32 {
    let value = format(m).value(bits);
    let negative = m & RELU != 0 && value.is_sign_negative() && !value.is_nan();
    let value = if negative { 0.0 } else { value };
    convert(value.to_bits(), F64, F16, Round::Nearest) as u32
}

/// `cvt.pack.sat.type.s32{.b32} d, a, b{, c};`: both at the ends of the type's range at most, beside
/// each other, `b` lowest, and `c` behind them.
fn pack(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let suffix = i.suffixes.get(2).map_or("", |suffix| suffix.as_str());
    let (signed, bits) = match suffix {
        "u16" => (false, 16),
        "s16" => (true, 16),
        "u8" => (false, 8),
        "s8" => (true, 8),
        "u4" => (false, 4),
        "s4" => (true, 4),
        "u2" => (false, 2),
        "s2" => (true, 2),
        _ => return Unsupported::because("a conversion of these types"),
    };
    #[inline(always)]
    fn limit(m: u32, x: i32) -> u32 {
        let (signed, bits) = (m >> 8 != 0, m & 255);
        let (low, high) = if signed {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        };
        x.clamp(low, high) as u32 & ((1 << bits) - 1)
    }
    let f: AluFn = if bits == 16 {
        alu!(imm m, |a: i32, b: i32| -> u32 { limit(m, a) << 16 | limit(m, b) })
    } else {
        alu!(imm m, |a: i32, b: i32, c: u32| -> u32 {
            let bits = m & 255;
            c << (2 * bits) | limit(m, a) << bits | limit(m, b)
        })
    };
    let types: &[Type] = if bits == 16 {
        &[Type::S32; 2]
    } else {
        &[Type::S32; 3]
    };
    cx.compute(i, types, f, bits | u32::from(signed) << 8)
}
