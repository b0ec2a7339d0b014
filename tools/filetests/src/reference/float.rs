//! Floating-point instructions (PTX ISA 9.0, chapters 9.7.3 to 9.7.5) in every rounding mode.

use anyhow::{Result, bail};
use rustc_apfloat::ieee::{BFloat, Double, Half, IeeeFloat, Quad, Semantics, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::approx::approximate;
use super::{Expected, Opcode};

pub(super) fn eval(op: &Opcode<'_>, ty: &str, inputs: &[u64]) -> Result<Expected> {
    if op.has("approx") || op.has("full") {
        return approximate(op, ty, inputs);
    }
    match ty {
        "f16" => exact::<Half>(op, inputs, 16),
        "bf16" => exact::<BFloat>(op, inputs, 16),
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

/// A format, with a wider one of the same precision and an exponent of eleven bits.
trait Format: Float + FloatConvert<Quad> + FloatConvert<Self::Wide> {
    type Wide: Float;
}

/// A format of `BITS` bits with an exponent of eleven bits.
struct Wide<const BITS: usize>;

impl<const BITS: usize> Semantics for Wide<BITS> {
    const BITS: usize = BITS;
    const EXP_BITS: usize = 11;
}

impl Format for Half {
    type Wide = IeeeFloat<Wide<22>>;
}

impl Format for BFloat {
    type Wide = IeeeFloat<Wide<19>>;
}

impl Format for Single {
    type Wide = IeeeFloat<Wide<35>>;
}

impl Format for Double {
    type Wide = IeeeFloat<Wide<64>>;
}

/// Whether `.ftz` flushes a result. It does if the result, rounded to the precision of the format without a limit of the
/// exponent, is below the normal numbers. An H100 does so for `mul` and `div`.
fn is_flushed<F: Format>(op: &Opcode<'_>, arg: impl Fn(usize) -> F) -> bool {
    let wide = |value: F| -> F::Wide { value.convert(&mut false).value };
    let Some(result) = arithmetic(op, |n| wide(arg(n))) else {
        return false;
    };
    op.has("ftz") && result.abs() < wide(F::smallest_normalized())
}

/// What the basic operations give.
fn arithmetic<F: Float>(op: &Opcode<'_>, arg: impl Fn(usize) -> F) -> Option<F> {
    let round = rounding(op);
    let result = match op.name {
        "add" => arg(0).add_r(arg(1), round),
        "sub" => arg(0).sub_r(arg(1), round),
        "mul" => arg(0).mul_r(arg(1), round),
        "fma" | "mad" => arg(0).mul_add_r(arg(1), arg(2), round),
        "div" => arg(0).div_r(arg(1), round),
        "rcp" => F::from_u128(1).value.div_r(arg(0), round),
        _ => return None,
    };
    Some(result.value)
}

fn exact<F: Format>(op: &Opcode<'_>, inputs: &[u64], width: u32) -> Result<Expected> {
    let arg = |n: usize| flush(op, F::from_bits(u128::from(inputs[n])));
    let result = match op.name {
        "add" | "sub" | "mul" | "fma" | "mad" | "div" | "rcp" => {
            let result = arithmetic(op, arg).unwrap_or(F::NAN);
            match is_flushed(op, arg) {
                true => F::ZERO.copy_sign(result),
                false => result,
            }
        }
        "sqrt" => sqrt(arg(0), rounding(op)),
        "abs" => arg(0).abs(),
        "neg" => -arg(0),
        "copysign" => return Ok(Expected::Exact(copysign(inputs, width))),
        "min" | "max" => minmax(op, arg(0), arg(1)),
        "testp" => return Ok(Expected::Exact(u64::from(testp(op, arg(0))?))),
        name => bail!("no CPU reference for floating-point `{name}`"),
    };
    if result.is_nan() && !op.has("sat") {
        return Ok(nan::<F>(op, inputs));
    }
    Ok(finish(op, result))
}

/// The NaN of an operation on these operands.
fn nan<F: Float>(op: &Opcode<'_>, inputs: &[u64]) -> Expected {
    // The ISA leaves these open in single and half precision; in double they move an operand.
    let open = match op.name {
        "abs" | "neg" => true,
        "min" | "max" => F::BITS == 64,
        _ => false,
    };
    let given = |bits: &&u64| F::from_bits(u128::from(**bits)).is_nan();
    match inputs.iter().find(given) {
        _ if F::BITS < 64 && !open => canonical::<F>(),
        Some(&first) if !open => {
            let quiet = |n: usize| inputs.get(n).filter(given).copied().unwrap_or(first);
            Expected::Quiet([quiet(0), quiet(1), quiet(2)])
        }
        _ => Expected::Nan,
    }
}

/// The NaN that operations produce: all ones but for the sign.
pub(super) fn canonical<F: Float>() -> Expected {
    match F::BITS {
        64 => Expected::Nan,
        bits => Expected::Exact((1 << (bits - 1)) - 1),
    }
}

/// Applies `.ftz`, `.sat` and `.relu` to a result. A NaN is the canonical one, and saturated +0.
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
        return canonical::<F>();
    }
    if op.has("relu") && result.is_negative() {
        return Expected::Exact(0);
    }
    Expected::Exact(result.to_bits() as u64)
}

/// `copysign d, a, b`: the magnitude of `b` with the sign of `a`.
fn copysign(inputs: &[u64], width: u32) -> u64 {
    let sign = 1 << (width - 1);
    inputs[0] & sign | inputs[1] & (sign - 1)
}

/// The other operand wins over a NaN unless `.NaN`; -0 is below +0. `.xorsign.abs` compares
/// magnitudes and gives the result the product's sign.
fn minmax<F: Float>(op: &Opcode<'_>, a: F, b: F) -> F {
    let negative = a.is_negative() != b.is_negative();
    let (a, b) = match op.has("abs") {
        true => (a.abs(), b.abs()),
        false => (a, b),
    };
    let chosen = match (a.is_nan(), b.is_nan()) {
        (true, true) => F::NAN,
        (true, _) | (_, true) if op.has("NaN") => F::NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            let a_first = a < b || (a == b && a.is_negative());
            if a_first == (op.name == "min") { a } else { b }
        }
    };
    match op.has("xorsign") && !chosen.is_nan() {
        true if negative => -chosen.abs(),
        true => chosen.abs(),
        false => chosen,
    }
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

fn testp<F: Float>(op: &Opcode<'_>, a: F) -> Result<bool> {
    Ok(match op.suffixes[0] {
        "finite" => a.is_finite(),
        "infinite" => a.is_infinite(),
        "number" => !a.is_nan(),
        "notanumber" => a.is_nan(),
        // Zeros count as normal.
        "normal" => a.is_finite() && !a.is_denormal(),
        "subnormal" => a.is_denormal(),
        other => bail!("unknown property `.{other}`"),
    })
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
