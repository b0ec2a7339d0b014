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
    let value = flush(double(f, f64::from(flush(x))) as f32);
    if value.is_nan() { canonical() } else { value }
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
    fn zeros_and_subnormals() {
        assert_eq!(single(Function::Rsqrt, 0, -0.0), f32::NEG_INFINITY);
        let tiny = f32::from_bits(1);
        assert_eq!(single(Function::Rcp, FTZ, tiny), f32::INFINITY);
        assert_eq!(single(Function::Lg2, 0, tiny), -149.0);
        assert_eq!(single(Function::Sqrt, 0, -1.0).to_bits(), 0x7fff_ffff);
    }
}
