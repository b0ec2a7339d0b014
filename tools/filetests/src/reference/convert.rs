//! `cvt` of one value (PTX ISA 9.0, section "cvt").

use anyhow::{Result, bail};
use rustc_apfloat::ieee::{
    BFloat, Double, Float8E4M3FN, Float8E5M2, Half, IeeeFloat, Semantics, Single,
};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::float::{finish, flush, rounding};
use super::integer::{cut, range, read};
use super::{Expected, Opcode, width};

/// The part of a `tf32` that is defined.
struct Tf32Semantics;

impl Semantics for Tf32Semantics {
    const BITS: usize = 19;
    const EXP_BITS: usize = 8;
}

type Tf32 = IeeeFloat<Tf32Semantics>;

/// A format that every other one can be made of.
trait Source:
    Float
    + FloatConvert<Half>
    + FloatConvert<BFloat>
    + FloatConvert<Single>
    + FloatConvert<Double>
    + FloatConvert<Tf32>
    + FloatConvert<Float8E4M3FN>
    + FloatConvert<Float8E5M2>
{
}

impl<S: Semantics> Source for IeeeFloat<S> {}

pub(super) fn cvt(op: &Opcode<'_>, input: u64) -> Result<Expected> {
    let types: Vec<_> = op.types().collect();
    let [to, from] = types[..] else {
        bail!("cvt needs two types");
    };
    let bits = u128::from(cut(i128::from(input), width(from).unwrap_or(64)));
    match from {
        "e4m3" => from_float(op, Float8E4M3FN::from_bits(bits), to, from),
        "e5m2" => from_float(op, Float8E5M2::from_bits(bits), to, from),
        "f16" => from_float(op, Half::from_bits(bits), to, from),
        "bf16" => from_float(op, BFloat::from_bits(bits), to, from),
        "f32" => from_float(op, flush(op, Single::from_bits(bits)), to, from),
        "f64" => from_float(op, Double::from_bits(bits), to, from),
        _ => from_integer(op, read(input, from), to),
    }
}

/// The rounding mode; `.rna` is one of conversions only.
fn round_of(op: &Opcode<'_>) -> Round {
    match op.has("rna") {
        true => Round::NearestTiesToAway,
        false => rounding(op),
    }
}

fn from_integer(op: &Opcode<'_>, value: i128, to: &str) -> Result<Expected> {
    let round = rounding(op);
    Ok(match to {
        "f16" => finish(op, Half::from_i128_r(value, round).value),
        "bf16" => finish(op, BFloat::from_i128_r(value, round).value),
        "f32" => finish(op, Single::from_i128_r(value, round).value),
        "f64" => finish(op, Double::from_i128_r(value, round).value),
        _ => {
            let (low, high) = range(to);
            let value = if op.has("sat") {
                value.clamp(low, high)
            } else {
                value
            };
            Expected::Exact(cut(value, width(to).unwrap_or(64)))
        }
    })
}

fn from_float<F: Source>(op: &Opcode<'_>, value: F, to: &str, from: &str) -> Result<Expected> {
    let round = round_of(op);
    let integral = ["rni", "rzi", "rmi", "rpi"].iter().any(|mode| op.has(mode));
    let value = match integral && width(to) == width(from) && range_of(to).is_none() {
        true => value.round_to_integral(round).value,
        false => value,
    };
    let kept = (from == "f64" || (from, to) == ("f32", "f64"))
        && value.is_nan()
        && !["sat", "relu"].iter().any(|suffix| op.has(suffix));
    Ok(match to {
        "f16" if kept => nan_of::<F, Half>(value),
        "bf16" if kept => nan_of::<F, BFloat>(value),
        "f32" if kept => nan_of::<F, Single>(value),
        "f64" if kept => nan_of::<F, Double>(value),
        // Where the ISA says that the NaN is unspecified.
        "f32" if from == "bf16" && value.is_nan() && !op.has("sat") => Expected::Nan,
        "e4m3" => into::<F, Float8E4M3FN>(op, value, round),
        "e5m2" => into::<F, Float8E5M2>(op, value, round),
        "f16" => into::<F, Half>(op, value, round),
        "bf16" => into::<F, BFloat>(op, value, round),
        "f32" => into::<F, Single>(op, value, round),
        "f64" => into::<F, Double>(op, value, round),
        // The NaN of a format whose layout is the implementation's.
        "tf32" if value.is_nan() => Expected::Nan,
        "tf32" => match into::<F, Tf32>(op, value, round) {
            Expected::Exact(bits) => Expected::Exact(bits << 13),
            other => other,
        },
        _ => Expected::Exact(to_integer(op, value, to, from)),
    })
}

/// A quiet NaN with the sign of `value` and as many high bits of its payload as fit. The PTX ISA leaves the payload open;
/// an H100 gives this one.
fn nan_of<F: FloatConvert<G>, G: Float>(value: F) -> Expected {
    let moved: G = value.convert(&mut false).value;
    let quiet = 1 << (G::PRECISION - 2);
    Expected::Exact((moved.to_bits() | quiet) as u64)
}

/// The range of an integer type.
fn range_of(ty: &str) -> Option<(i128, i128)> {
    ty.starts_with(['u', 's']).then(|| range(ty))
}

/// A value in another format, rounded once. `.satfinite` ends at the largest finite value.
fn into<F: Source + FloatConvert<G>, G: Source>(
    op: &Opcode<'_>,
    value: F,
    round: Round,
) -> Expected {
    let wide = |x: F| FloatConvert::<Double>::convert(x.abs(), &mut false).value;
    let largest: Double = G::largest().convert(&mut false).value;
    let result: G = if op.has("satfinite") && !value.is_nan() && wide(value) > largest {
        match value.is_negative() {
            true => -G::largest(),
            false => G::largest(),
        }
    } else {
        value.convert_r(round, &mut false).value
    };
    // `.ftz` is about single precision only.
    let result = match G::BITS {
        32 => flush(op, result),
        _ => result,
    };
    let kept = ["sat", "relu"].into_iter().filter(|suffix| op.has(suffix));
    let rest = Opcode {
        name: op.name,
        suffixes: kept.collect(),
    };
    finish(&rest, result)
}

/// Out-of-range values go to the nearest end of the range; a NaN gives zero, or the lone top bit
/// when either side has 64 bits.
fn to_integer<F: Float>(op: &Opcode<'_>, value: F, to: &str, from: &str) -> u64 {
    let bits = width(to).unwrap_or(64);
    if value.is_nan() {
        let wide = from == "f64" || bits == 64;
        return if wide { 1 << (bits - 1) } else { 0 };
    }
    let (low, high) = range(to);
    let integral = value.round_to_integral(rounding(op)).value;
    let negative = integral.is_negative();
    let mut exact = false;
    let wide = integral.to_i128_r(100, rounding(op), &mut exact);
    let value = match (integral.is_finite() && exact, negative) {
        (true, _) => wide.value.clamp(low, high),
        (false, true) => low,
        (false, false) => high,
    };
    cut(value, bits)
}
