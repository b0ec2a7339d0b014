//! Modifiers of an arithmetic instruction, packed into an op, and operations that obey them.

use ptx::ast::{Instruction, Type};

use super::directed;
use super::soft::{self, BF16, F16, F32, F64, Format, Number, Round};

/// Rounding mode in bits 0 to 2.
const ROUND: u32 = 7;
/// Subnormal inputs and results become zero. A result counts as subnormal by the rule of [`Format::pack_flushed`].
pub(crate) const FTZ: u32 = 1 << 3;
/// Results are clamped to [0, 1].
pub(crate) const SAT: u32 = 1 << 4;
/// Negative results become zero.
pub(crate) const RELU: u32 = 1 << 5;
/// NaN wins in min and max.
pub(crate) const NAN: u32 = 1 << 6;
/// min and max by magnitude, with the sign of the product.
pub(crate) const XORSIGN: u32 = 1 << 7;
/// min and max compare magnitudes.
pub(crate) const ABS: u32 = 1 << 8;
/// Infinite results become the largest finite value.
pub(crate) const SATFINITE: u32 = 1 << 9;

/// The modifiers an instruction names.
pub(crate) fn of(instruction: &Instruction) -> u32 {
    let bit = |suffix: &str| match suffix {
        "rn" | "rni" => 0,
        "rz" | "rzi" => 1,
        "rm" | "rmi" => 2,
        "rp" | "rpi" => 3,
        "rna" => 4,
        "ftz" => FTZ,
        "sat" => SAT,
        "satfinite" => SATFINITE,
        "relu" => RELU,
        "NaN" => NAN,
        "xorsign" => XORSIGN,
        "abs" => ABS,
        _ => 0,
    };
    instruction
        .suffixes
        .iter()
        .fold(0, |mods, suffix| mods | bit(suffix))
}

pub(crate) fn round_of(mods: u32) -> Round {
    match mods & ROUND {
        0 => Round::Nearest,
        1 => Round::Zero,
        2 => Round::Down,
        3 => Round::Up,
        _ => Round::Away,
    }
}

/// The format of a scalar type.
pub(crate) fn format(ty: Type) -> Option<Format> {
    Some(match ty {
        Type::F16 | Type::F16x2 => F16,
        Type::BF16 | Type::BF16x2 => BF16,
        Type::F32 => F32,
        Type::F64 => F64,
        Type::TF32 => soft::TF32,
        _ => return None,
    })
}

/// An input as the instruction sees it.
pub(crate) fn input(bits: u64, format: Format, mods: u32) -> u64 {
    if mods & FTZ != 0 {
        format.flush(bits)
    } else {
        bits
    }
}

/// A result as the instruction leaves it.
pub(crate) fn output(bits: u64, format: Format, mods: u32) -> u64 {
    let mut bits = if mods & FTZ != 0 {
        format.flush(bits)
    } else {
        bits
    };
    if mods & (SAT | RELU) != 0 {
        let negative = bits & format.sign() != 0;
        let nan = format.is_nan(bits);
        if mods & RELU != 0 && nan {
            return format.nan();
        }
        if nan || negative {
            return 0;
        }
        let one = ((1u64 << (format.exponent - 1)) - 1) << format.fraction;
        if mods & SAT != 0 && bits > one {
            bits = one;
        }
    }
    bits
}

/// What an arithmetic instruction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arith {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Sqrt,
}

/// Any arithmetic in any format with any modifiers. `b` and `c` are zero where not needed.
pub(crate) fn arith(op: Arith, format: Format, mods: u32, a: u64, b: u64, c: u64) -> u64 {
    // Double precision keeps a NaN's payload.
    if format == F64
        && let Some(nan) = [a, b, c].into_iter().find(|&bits| F64.is_nan(bits))
    {
        return nan | 1 << 51;
    }
    let round = round_of(mods);
    if format == F32 {
        let [a, b, c] = [a, b, c].map(|bits| f32::from_bits(input(bits, F32, mods) as u32));
        let quick = match op {
            Arith::Add => directed::fma(a, 1.0, b, round),
            Arith::Sub => directed::fma(a, 1.0, -b, round),
            Arith::Mul => directed::mul(a, b, round),
            Arith::Fma => directed::fma(a, b, c, round),
            Arith::Div | Arith::Rcp | Arith::Sqrt => None,
        };
        // A subnormal result may have been rounded up to the least normal number.
        let open = |result: f32| mods & FTZ != 0 && result.abs() == f32::MIN_POSITIVE;
        if let Some(result) = quick.filter(|&result| !open(result)) {
            return output(result.to_bits().into(), F32, mods);
        }
    }
    let get = |bits| format.unpack(input(bits, format, mods));
    let one = Number::Finite(soft::Exact::integer(1));
    let number = match op {
        Arith::Add => soft::add(get(a), get(b), round),
        Arith::Sub => soft::add(get(a), get(negate(b, format)), round),
        Arith::Mul => soft::mul(get(a), get(b)),
        Arith::Fma => soft::fma(get(a), get(b), get(c), round),
        Arith::Div => soft::div(get(a), get(b)),
        Arith::Rcp => soft::div(one, get(a)),
        Arith::Sqrt => soft::sqrt(get(a)),
    };
    let bits = match mods & FTZ {
        0 => format.pack(number, round),
        _ => format.pack_flushed(number, round),
    };
    output(bits, format, mods)
}

fn negate(bits: u64, format: Format) -> u64 {
    if format.is_nan(bits) {
        bits
    } else {
        bits ^ format.sign()
    }
}

/// `min` or `max` in any format.
pub(crate) fn extreme(max: bool, format: Format, mods: u32, a: u64, b: u64) -> u64 {
    let (a, b) = (input(a, format, mods), input(b, format, mods));
    let sign = format.sign();
    let (x, y) = if mods & ABS != 0 {
        (a & !sign, b & !sign)
    } else {
        (a, b)
    };
    // Order of the values, with -0 below +0.
    let key = |bits: u64| {
        if bits & sign != 0 {
            -((bits ^ sign) as i128) - 1
        } else {
            bits as i128
        }
    };
    let first = match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => return format.nan(),
        (true, _) | (_, true) if mods & NAN != 0 => return format.nan(),
        (true, false) => false,
        (false, true) => true,
        (false, false) if max => key(x) >= key(y),
        (false, false) => key(x) <= key(y),
    };
    let mut chosen = if first { x } else { y };
    if mods & XORSIGN != 0 {
        chosen = chosen & !sign | (a ^ b) & sign;
    }
    chosen
}
