//! Floating-point instructions (PTX ISA 9.0, chapter 9.7.3) in every rounding mode.

use anyhow::{Result, bail};
use rustc_apfloat::ieee::{Double, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::{Expected, Opcode, value};

pub(super) fn eval(op: &Opcode<'_>, ty: &str, inputs: &[u64]) -> Result<Expected> {
    if op.has("approx") || op.has("full") {
        return approximate(op, ty, inputs);
    }
    match ty {
        "f32" => exact::<Single>(op, inputs, 32),
        "f64" => exact::<Double>(op, inputs, 64),
        _ => bail!("no CPU reference for `{}.{ty}`", op.name),
    }
}

/// The rounding mode of the opcode, nearest-even by default.
pub(super) fn rounding(op: &Opcode<'_>) -> Round {
    let any = |names: [&str; 2]| names.iter().any(|name| op.has(name));
    if any(["rz", "rzi"]) {
        Round::TowardZero
    } else if any(["rm", "rmi"]) {
        Round::TowardNegative
    } else if any(["rp", "rpi"]) {
        Round::TowardPositive
    } else {
        Round::NearestTiesToEven
    }
}

/// Subnormals become zeros of the same sign under `.ftz`.
pub(super) fn flush<F: Float>(op: &Opcode<'_>, value: F) -> F {
    if op.has("ftz") && value.is_denormal() {
        F::ZERO.copy_sign(value)
    } else {
        value
    }
}

fn exact<F: Float + FloatConvert<Quad>>(
    op: &Opcode<'_>,
    inputs: &[u64],
    width: u32,
) -> Result<Expected> {
    let round = rounding(op);
    let arg = |n: usize| flush(op, F::from_bits(u128::from(inputs[n])));
    let one = || F::from_u128(1).value;
    let result = match op.name {
        "add" => arg(0).add_r(arg(1), round).value,
        "sub" => arg(0).sub_r(arg(1), round).value,
        "mul" => arg(0).mul_r(arg(1), round).value,
        "fma" | "mad" => arg(0).mul_add_r(arg(1), arg(2), round).value,
        "div" => arg(0).div_r(arg(1), round).value,
        "rcp" => one().div_r(arg(0), round).value,
        "sqrt" => sqrt(arg(0), round),
        "abs" => arg(0).abs(),
        "neg" => -arg(0),
        "copysign" => return Ok(Expected::Exact(copysign(inputs, width))),
        "min" | "max" => minmax(op, arg(0), arg(1)),
        "setp" => return Ok(Expected::Exact(u64::from(compare(op, arg(0), arg(1))?))),
        "set" => {
            let yes = compare(op, arg(0), arg(1))?;
            return Ok(Expected::Exact(if yes { 0xffff_ffff } else { 0 }));
        }
        "testp" => return Ok(Expected::Exact(u64::from(testp(op, arg(0))?))),
        "selp" => F::from_bits(u128::from(if inputs[2] & 1 != 0 {
            inputs[0]
        } else {
            inputs[1]
        })),
        name => bail!("no CPU reference for floating-point `{name}`"),
    };
    Ok(finish(op, result))
}

/// Applies `.ftz` and `.sat` to a result; a NaN may have any payload, saturated it is +0.
pub(super) fn finish<F: Float>(op: &Opcode<'_>, result: F) -> Expected {
    let result = flush(op, result);
    if op.has("sat") {
        let one = F::from_u128(1).value;
        if result.is_nan() || result <= F::ZERO {
            return Expected::Exact(0);
        }
        return Expected::Exact(if result > one { one } else { result }.to_bits() as u64);
    }
    if result.is_nan() {
        return Expected::Nan;
    }
    Expected::Exact(result.to_bits() as u64)
}

/// `copysign d, a, b`: the magnitude of `b` with the sign of `a`.
fn copysign(inputs: &[u64], width: u32) -> u64 {
    let sign = 1 << (width - 1);
    inputs[0] & sign | inputs[1] & (sign - 1)
}

/// The other operand wins over a NaN unless `.NaN`; -0 is below +0.
fn minmax<F: Float>(op: &Opcode<'_>, a: F, b: F) -> F {
    if a.is_nan() || b.is_nan() {
        let both = a.is_nan() && b.is_nan();
        return if both || op.has("NaN") {
            F::NAN
        } else if a.is_nan() {
            b
        } else {
            a
        };
    }
    let a_first = a < b || (a == b && a.is_negative());
    if a_first == (op.name == "min") { a } else { b }
}

/// Square root by bracketing: apfloat has none.
///
/// The largest representable `r` with `r * r <= x` is found by bisection over the bits; comparing
/// with the product rounded up is exact because `x` is representable.
fn sqrt<F: Float + FloatConvert<Quad>>(x: F, round: Round) -> F {
    if x.is_nan() || (x.is_negative() && !x.is_zero()) {
        return F::NAN;
    }
    if x.is_zero() || x.is_infinite() {
        return x;
    }
    let square_le = |r: F| r.mul_r(r, Round::TowardPositive).value <= x;
    let (mut low, mut high) = (0u128, F::INFINITY.to_bits());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if square_le(F::from_bits(middle)) {
            low = middle
        } else {
            high = middle
        }
    }
    let (below, above) = (F::from_bits(low), F::from_bits(high));
    let exact = below.mul_r(below, Round::TowardPositive).value == x
        && below.mul_r(below, Round::TowardNegative).value == x;
    let up = match round {
        Round::TowardPositive => !exact,
        Round::NearestTiesToEven => {
            // x against the square of the midpoint, exact in quadruple precision: four times x
            // against the square of the sum. A square root is never exactly a midpoint.
            let quad = |v: F| v.convert(&mut false).value;
            let sum = quad(below).add_r(quad(above), Round::TowardZero).value;
            let four = Quad::from_u128(4).value;
            let x = quad(x).mul_r(four, Round::TowardZero).value;
            !exact && sum.mul_r(sum, Round::TowardZero).value < x
        }
        _ => false,
    };
    if up { above } else { below }
}

fn compare<F: Float>(op: &Opcode<'_>, a: F, b: F) -> Result<bool> {
    let unordered = a.is_nan() || b.is_nan();
    Ok(match op.suffixes[0] {
        "eq" => a == b,
        "ne" => !unordered && a != b,
        "lt" => a < b,
        "le" => a <= b,
        "gt" => a > b,
        "ge" => a >= b,
        "equ" => unordered || a == b,
        "neu" => unordered || a != b,
        "ltu" => unordered || a < b,
        "leu" => unordered || a <= b,
        "gtu" => unordered || a > b,
        "geu" => unordered || a >= b,
        "num" => !unordered,
        "nan" => unordered,
        other => bail!("unknown floating-point comparison `.{other}`"),
    })
}

fn testp<F: Float>(op: &Opcode<'_>, a: F) -> Result<bool> {
    Ok(match op.suffixes[0] {
        "finite" => a.is_finite(),
        "infinite" => a.is_infinite(),
        "number" => !a.is_nan(),
        "notanumber" => a.is_nan(),
        "normal" => a.is_finite() && !a.is_denormal() && !a.is_zero(),
        "subnormal" => a.is_denormal(),
        other => bail!("unknown property `.{other}`"),
    })
}

/// The `.approx` and `.full` forms with the error bounds the ISA states for each.
fn approximate(op: &Opcode<'_>, ty: &str, inputs: &[u64]) -> Result<Expected> {
    let arg = |n: usize| {
        let x = value(inputs[n], ty);
        let tiny = ty == "f32" && x != 0.0 && x.abs() < f64::from(f32::MIN_POSITIVE);
        if op.has("ftz") && tiny {
            0.0_f64.copysign(x)
        } else {
            x
        }
    };
    // Two ulps of a 24-bit significand, relative to the smallest significand of its binade.
    let two_ulp = 2.0_f64.powi(-22);
    let pi = std::f64::consts::PI;
    let (value, relative, absolute) = match op.name {
        "div" => {
            let divisor = arg(1).abs();
            if op.has("approx") && divisor > 2.0_f64.powi(126) {
                return Ok(Expected::Open);
            }
            (arg(0) / arg(1), two_ulp, 0.0)
        }
        "rcp" if ty == "f64" => (1.0 / arg(0), 2.0_f64.powi(-20), 0.0),
        "rcp" => (1.0 / arg(0), 2.0_f64.powi(-23), 0.0),
        "sqrt" => (arg(0).sqrt(), 2.0_f64.powi(-23), 0.0),
        // The ISA states no bound for f64: with .ftz the reciprocal's, and without it that of CUDA's rsqrt().
        "rsqrt" if ty == "f64" && !op.has("ftz") => (1.0 / arg(0).sqrt(), 2.0_f64.powi(-51), 0.0),
        "rsqrt" if ty == "f64" => (1.0 / arg(0).sqrt(), 2.0_f64.powi(-20), 0.0),
        "rsqrt" => (1.0 / arg(0).sqrt(), 2.0_f64.powf(-22.9), 0.0),
        "ex2" => (arg(0).exp2(), two_ulp, 0.0),
        "lg2" if arg(0) > 0.5 && arg(0) < 2.0 => (arg(0).log2(), 0.0, 2.0_f64.powi(-22)),
        "lg2" => (arg(0).log2(), 2.0_f64.powi(-22), 0.0),
        "sin" | "cos" if arg(0).abs() > pi => return Ok(Expected::Open),
        "sin" => (arg(0).sin(), 0.0, 2.0_f64.powf(-20.5)),
        "cos" => (arg(0).cos(), 0.0, 2.0_f64.powf(-20.5)),
        "tanh" => (arg(0).tanh(), 2.0_f64.powi(-11), 0.0),
        name => bail!("no CPU reference for approximate `{name}`"),
    };
    Ok(near(op, ty, value, relative, absolute))
}

/// A result in the `ty` that may over- or underflow there.
fn near(op: &Opcode<'_>, ty: &str, value: f64, relative: f64, absolute: f64) -> Expected {
    if ty == "f64" {
        return Expected::Near {
            value,
            relative,
            absolute,
        };
    }
    let largest = f64::from(f32::MAX);
    let smallest = f64::from(f32::MIN_POSITIVE);
    if value.abs() > largest * (1.0 - relative) {
        // At the edge of the range either neighbour is right; beyond it only infinity.
        let beyond = value.abs() > largest * (1.0 + 2.0 * relative);
        return match beyond {
            true => Expected::Near {
                value: f64::INFINITY.copysign(value),
                relative: 0.0,
                absolute: 0.0,
            },
            false => Expected::Open,
        };
    }
    if value.abs() < smallest {
        // A subnormal result may be flushed or rounded to the subnormal grid.
        let flushed = if op.has("ftz") { smallest } else { 0.0 };
        return Expected::Near {
            value,
            relative,
            absolute: absolute + flushed + 2.0_f64.powi(-148),
        };
    }
    Expected::Near {
        value,
        relative,
        absolute,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the host's own correctly rounded square root.
    #[test]
    fn square_roots_agree_with_the_host() {
        for n in 0..2000u32 {
            let bits = n.wrapping_mul(2_654_435_761) >> 1;
            let x = f32::from_bits(bits);
            if x.is_nan() {
                continue;
            }
            let got = sqrt(
                Single::from_bits(u128::from(bits)),
                Round::NearestTiesToEven,
            );
            assert_eq!(got.to_bits() as u32, x.sqrt().to_bits(), "sqrt({x})");
        }
    }
}
