//! The `.approx` and `.full` forms, with the error bounds that the ISA states for each.

use anyhow::{Result, bail};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{BFloat, Half, Single};

use super::float::canonical;
use super::{Expected, Opcode, value};

/// A bound on the error of a result.
struct Bound {
    relative: f64,
    absolute: f64,
}

const fn relative(relative: f64) -> Bound {
    Bound {
        relative,
        absolute: 0.0,
    }
}

const fn absolute(absolute: f64) -> Bound {
    Bound {
        relative: 0.0,
        absolute,
    }
}

pub(super) fn approximate(op: &Opcode<'_>, ty: &str, inputs: &[u64]) -> Result<Expected> {
    if ty == "f64" {
        return double(op, inputs);
    }
    let arg = |n: usize| {
        let x = value(inputs[n], ty);
        let tiny = x != 0.0 && x.abs() < smallest(ty);
        if op.has("ftz") && tiny {
            0.0_f64.copysign(x)
        } else {
            x
        }
    };
    let pi = std::f64::consts::PI;
    // Two ulps of a 24-bit significand, relative to the smallest significand of its binade.
    let two_ulp = 2.0_f64.powi(-22);
    let (value, bound) = match (op.name, ty) {
        ("div", "f32") => {
            let divisor = arg(1).abs();
            if op.has("approx") && divisor > 2.0_f64.powi(126) && divisor.is_finite() {
                return Ok(Expected::Open);
            }
            (arg(0) / arg(1), relative(two_ulp))
        }
        ("rcp", "f32") => (1.0 / arg(0), relative(2.0_f64.powi(-23))),
        ("sqrt", "f32") => (arg(0).sqrt(), relative(2.0_f64.powi(-23))),
        ("rsqrt", "f32") => (rsqrt(arg(0)), relative(2.0_f64.powf(-22.9))),
        ("ex2", "f32") => (arg(0).exp2(), relative(two_ulp)),
        ("ex2", "f16") => (arg(0).exp2(), relative(2.0_f64.powf(-9.9))),
        ("ex2", "bf16") => (arg(0).exp2(), relative(2.0_f64.powi(-7))),
        ("lg2", "f32") if arg(0) > 0.5 && arg(0) < 2.0 => {
            (arg(0).log2(), absolute(2.0_f64.powi(-22)))
        }
        ("lg2", "f32") => (arg(0).log2(), relative(2.0_f64.powi(-22))),
        ("sin" | "cos", "f32") if arg(0).abs() > pi && arg(0).is_finite() => {
            return Ok(Expected::Open);
        }
        ("sin", "f32") => (arg(0).sin(), absolute(2.0_f64.powf(-20.5))),
        ("cos", "f32") => (arg(0).cos(), absolute(2.0_f64.powf(-20.5))),
        ("tanh", "f32") => (arg(0).tanh(), relative(2.0_f64.powi(-11))),
        ("tanh", "f16") => (arg(0).tanh(), absolute(2.0_f64.powf(-10.987))),
        ("tanh", "bf16") => (arg(0).tanh(), absolute(2.0_f64.powi(-8))),
        (name, ty) => bail!("no CPU reference for approximate `{name}.{ty}`"),
    };
    // Zeros, infinities and NaN are exact; of these only the logarithm of one has a bound.
    let at_one = op.name == "lg2" && value == 0.0;
    if !at_one && (value == 0.0 || !value.is_finite()) {
        return Ok(exactly(ty, value));
    }
    Ok(near(op, ty, value, &bound))
}

/// One over the root; over a zero the infinity of its sign.
fn rsqrt(x: f64) -> f64 {
    if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }
}

/// The smallest normal value.
fn smallest(ty: &str) -> f64 {
    match ty {
        "f16" => 2.0_f64.powi(-14),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// A zero, an infinity or a NaN.
fn exactly(ty: &str, value: f64) -> Expected {
    fn bits<F: Float>(value: f64) -> Expected {
        if value.is_nan() {
            return canonical::<F>();
        }
        let zero = if value == 0.0 { F::ZERO } else { F::INFINITY };
        let zero = if value.is_sign_negative() {
            -zero
        } else {
            zero
        };
        Expected::Exact(zero.to_bits() as u64)
    }
    match ty {
        "f16" => bits::<Half>(value),
        "bf16" => bits::<BFloat>(value),
        _ => bits::<Single>(value),
    }
}

/// A result in the `ty` that may over- or underflow there.
fn near(op: &Opcode<'_>, ty: &str, value: f64, bound: &Bound) -> Expected {
    let (largest, precision) = match ty {
        "f16" => (65504.0, 11),
        "bf16" => (super::value(0x7f7f, "bf16"), 8),
        _ => (f64::from(f32::MAX), 24),
    };
    // Where the result is rounded to fewer bits than the bound tells, half a unit comes to it.
    let rounding = match ty {
        "f32" => 0.0,
        _ => 2.0_f64.powi(-precision),
    };
    let relative = bound.relative + rounding;
    let smallest = smallest(ty);
    if value.abs() > largest * (1.0 - relative) {
        // At the edge of the range either neighbour is right; beyond it only infinity.
        let beyond = value.abs() > largest * (1.0 + 2.0 * relative);
        return match beyond {
            true => exactly(ty, f64::INFINITY.copysign(value)),
            false => Expected::Open,
        };
    }
    let absolute = match value.abs() {
        x if op.has("ftz") && x < smallest * (1.0 - relative) => {
            return exactly(ty, 0.0_f64.copysign(value));
        }
        // At the edge the result may be flushed.
        x if op.has("ftz") && x < smallest * (1.0 + relative) => smallest,
        // Rounded to the subnormal grid.
        x if x < smallest => smallest * 2.0_f64.powi(1 - precision),
        _ => 0.0,
    };
    Expected::Near {
        value,
        relative,
        absolute: absolute + bound.absolute,
    }
}

/// Double precision. With `.ftz` only the upper half of operand and result counts, in a format of
/// its own with 20 bits of fraction; and its NaN is one.
fn double(op: &Opcode<'_>, inputs: &[u64]) -> Result<Expected> {
    let coarse = op.has("ftz");
    let bits = match coarse {
        true => inputs[0] & 0xffff_ffff_0000_0000,
        false => inputs[0],
    };
    let x = match f64::from_bits(bits) {
        x if coarse && x.is_subnormal() => 0.0_f64.copysign(x),
        x => x,
    };
    let value = match op.name {
        "rcp" => 1.0 / x,
        "rsqrt" => rsqrt(x),
        name => bail!("no CPU reference for approximate `{name}.f64`"),
    };
    Ok(match value {
        v if v.is_nan() && coarse => Expected::Exact(0x7fff_ffff_0000_0000),
        v if v.is_nan() && x.is_nan() => Expected::Quiet([bits; 3]),
        v if v.is_nan() => Expected::Nan,
        v if v == 0.0 || v.is_infinite() => Expected::Exact(v.to_bits()),
        v if v.is_subnormal() && coarse => Expected::Exact(0.0_f64.copysign(v).to_bits()),
        // The ISA states no bound for `rsqrt` without `.ftz`: that of CUDA's rsqrt().
        value => Expected::Near {
            value,
            relative: 2.0_f64.powi(if coarse { -20 } else { -51 }),
            absolute: 0.0,
        },
    })
}
