//! The approximate functions of the special function unit.
//!
//! Computed in double precision and rounded to single, which is within the ISA's error bounds.
//! Departure: a GPU gives slightly different bits.

use super::mods::FTZ;

/// A single-precision function computed in double precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Rcp,
    Rsqrt,
    Sqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
}

/// The value of `f` in double precision.
pub(crate) fn double(f: Function, x: f64) -> f64 {
    match f {
        Function::Rcp => 1.0 / x,
        // The sign of a zero carries over to the infinity.
        Function::Rsqrt if x == 0.0 => 1.0 / x,
        Function::Rsqrt => 1.0 / x.sqrt(),
        Function::Sqrt => x.sqrt(),
        Function::Sin => x.sin(),
        Function::Cos => x.cos(),
        Function::Lg2 => x.log2(),
        Function::Ex2 => x.exp2(),
        Function::Tanh => x.tanh(),
    }
}

/// The value of `f` for a single, with the modifiers of the instruction.
pub(crate) fn single(f: Function, mods: u32, x: f32) -> f32 {
    let flush = |x: f32| if mods & FTZ != 0 { flush(x) } else { x };
    one_nan(flush(double(f, f64::from(flush(x))) as f32))
}

/// Single precision has one NaN.
///
/// By the bits, since of a root LLVM 21 knows when it is NaN, and then takes any NaN for the same.
#[inline(always)]
pub(crate) fn one_nan(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 {
        0x7fff_ffff
    } else {
        bits
    })
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: operand and result are the upper halves of doubles,
/// subnormal ones zero, and there is one NaN.
pub(crate) fn coarse(f: Function, x: f64) -> u64 {
    const UPPER: u64 = 0xffff_ffff_0000_0000;
    let flush = |x: f64| {
        if x.is_subnormal() {
            0.0_f64.copysign(x)
        } else {
            x
        }
    };
    let value = flush(double(f, flush(f64::from_bits(x.to_bits() & UPPER))));
    if value.is_nan() {
        return 0x7fff_ffff_0000_0000;
    }
    if value.is_infinite() {
        return value.to_bits();
    }
    // To nearest. The operand's own error is of the same size.
    (value.to_bits() + (1 << 31)) & UPPER
}

/// `rsqrt.approx.f64`, which CUDA's `rsqrt()` is and which may be one unit of the last place off.
pub(crate) fn fine_rsqrt(x: f64) -> f64 {
    let guess = double(Function::Rsqrt, x);
    if !guess.is_finite() || guess == 0.0 {
        return guess;
    }
    // One step of Newton's method; `1 - x * guess^2` keeps all its digits.
    let product = x * guess;
    let rest = x.mul_add(guess, -product);
    let error = (-product).mul_add(guess, 1.0) - rest * guess;
    guess + 0.5 * guess * error
}

/// The NaN that single-precision operations produce.
pub(crate) fn canonical() -> f32 {
    f32::from_bits(0x7fff_ffff)
}

/// A subnormal becomes a zero of its sign.
#[inline(always)]
pub(crate) fn flush(x: f32) -> f32 {
    if x.is_subnormal() {
        f32::from_bits(x.to_bits() & 0x8000_0000)
    } else {
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reciprocal_roots_are_right_to_the_last_place() {
        for n in 1..10_000u32 {
            let x = f64::from(n) * 0.37;
            let y = fine_rsqrt(x);
            // 1 / y^2 moves by twice what y does.
            let error = (x * y).mul_add(y, -1.0) / 2.0 + x.mul_add(y, -(x * y)) * y / 2.0;
            assert!(
                error.abs() < 1.2 * f64::EPSILON / 2.0,
                "rsqrt({x}) = {y}: {error:e}"
            );
        }
        assert_eq!(fine_rsqrt(-0.0), f64::NEG_INFINITY);
        assert_eq!(fine_rsqrt(f64::INFINITY), 0.0);
        assert!(fine_rsqrt(-1.0).is_nan());
    }

    #[test]
    fn zeros_and_subnormals() {
        assert_eq!(single(Function::Rsqrt, 0, -0.0), f32::NEG_INFINITY);
        let tiny = f32::from_bits(1);
        assert_eq!(single(Function::Rcp, FTZ, tiny), f32::INFINITY);
        assert_eq!(single(Function::Lg2, 0, tiny), -149.0);
        assert_eq!(single(Function::Sqrt, 0, -1.0).to_bits(), 0x7fff_ffff);
    }
}
