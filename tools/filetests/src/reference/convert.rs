//! `cvt` between integers and floats (PTX ISA 9.0, section "cvt").

use anyhow::{Result, bail};
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

use super::float::{finish, flush, rounding};
use super::integer::{range, read};
use super::{Expected, Opcode};
use crate::header::bits;

pub(super) fn cvt(op: &Opcode<'_>, input: u64) -> Result<Expected> {
    let types: Vec<_> = op.types().collect();
    let [to, from] = types[..] else {
        bail!("cvt needs two types");
    };
    match from {
        "f16" => from_float(op, Half::from_bits(u128::from(input & 0xffff)), to, from),
        "f32" => from_float(
            op,
            Single::from_bits(u128::from(input & 0xffff_ffff)),
            to,
            from,
        ),
        "f64" => from_float(op, Double::from_bits(u128::from(input)), to, from),
        _ => from_integer(op, read(input, from), to),
    }
}

fn from_integer(op: &Opcode<'_>, value: i128, to: &str) -> Result<Expected> {
    let round = rounding(op);
    Ok(match to {
        "f16" => finish(op, Half::from_i128_r(value, round).value),
        "f32" => finish(op, Single::from_i128_r(value, round).value),
        "f64" => finish(op, Double::from_i128_r(value, round).value),
        _ => {
            let (low, high) = range(to);
            let value = if op.has("sat") {
                value.clamp(low, high)
            } else {
                value
            };
            Expected::Exact(cut(value, to))
        }
    })
}

fn cut(value: i128, ty: &str) -> u64 {
    let width = bits(ty).unwrap_or(64);
    (value as u128 & ((1 << width) - 1)) as u64
}

fn from_float<F>(op: &Opcode<'_>, value: F, to: &str, from: &str) -> Result<Expected>
where
    F: Float + FloatConvert<Half> + FloatConvert<Single> + FloatConvert<Double>,
{
    // `.ftz` applies to single-precision inputs only.
    let value = if from == "f32" {
        flush(op, value)
    } else {
        value
    };
    let round = rounding(op);
    let integral = ["rni", "rzi", "rmi", "rpi"].iter().any(|mode| op.has(mode));
    if !to.starts_with('f') {
        return Ok(Expected::Exact(to_integer(op, value, to, from)));
    }
    let value = if integral {
        value.round_to_integral(round).value
    } else {
        value
    };
    let mut lossy = false;
    Ok(match to {
        "f16" => finish(
            op,
            FloatConvert::<Half>::convert_r(value, round, &mut lossy).value,
        ),
        "f32" => finish(
            op,
            FloatConvert::<Single>::convert_r(value, round, &mut lossy).value,
        ),
        _ => finish(
            op,
            FloatConvert::<Double>::convert_r(value, round, &mut lossy).value,
        ),
    })
}

/// Out-of-range values go to the nearest end of the range; a NaN gives zero, or the lone top bit
/// when either side has 64 bits.
fn to_integer<F: Float>(op: &Opcode<'_>, value: F, to: &str, from: &str) -> u64 {
    let width = bits(to).unwrap_or(64);
    if value.is_nan() {
        let wide = from == "f64" || width == 64;
        return if wide { 1 << (width - 1) } else { 0 };
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
    cut(value, to)
}
