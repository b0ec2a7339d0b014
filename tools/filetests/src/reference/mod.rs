//! What one scalar PTX instruction computes, on the CPU, from the PTX ISA's text.
//!
//! This is the simulated device's judge and shares no code with it: integers are computed in
//! 128 bits and cut, floating point with `rustc_apfloat` (LLVM's arbitrary precision floats) in every
//! rounding mode, `.approx` forms in double precision with the ISA's stated error bounds.

mod convert;
mod float;
mod integer;

use anyhow::{Result, bail};

use crate::header::bits;

/// What a result must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// Exactly these bits.
    Exact(u64),
    /// Any NaN.
    Nan,
    /// A floating-point value within `absolute + relative * |value|` of `value`.
    Near {
        /// The value computed in double precision.
        value: f64,
        /// Bound on the relative error.
        relative: f64,
        /// Bound on the absolute error.
        absolute: f64,
    },
    /// The ISA leaves the result open for these inputs.
    Open,
}

impl Expected {
    /// Whether `actual`, the bits of a `ty`, is what was expected.
    pub fn accepts(self, actual: u64, ty: &str) -> bool {
        match self {
            Expected::Exact(bits) => actual == bits,
            Expected::Nan if ty == "f16" => actual & 0x7fff > 0x7c00,
            Expected::Nan => value(actual, ty).is_nan(),
            Expected::Open => true,
            Expected::Near {
                value: v,
                relative,
                absolute,
            } => {
                let actual = value(actual, ty);
                (v.is_nan() && actual.is_nan())
                    || actual == v
                    || (actual - v).abs() <= absolute + relative * v.abs()
            }
        }
    }
}

/// The value of an `f32` or `f64` given by its bits.
fn value(bits: u64, ty: &str) -> f64 {
    match ty {
        "f32" => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// An opcode with its suffixes: `mul.hi.s32`.
struct Opcode<'a> {
    name: &'a str,
    suffixes: Vec<&'a str>,
}

impl<'a> Opcode<'a> {
    fn new(text: &'a str) -> Self {
        let mut parts = text.split('.');
        let name = parts.next().unwrap_or_default();
        let suffixes = parts.collect();
        Self { name, suffixes }
    }

    fn has(&self, suffix: &str) -> bool {
        self.suffixes.contains(&suffix)
    }

    fn types(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.suffixes.iter().copied().filter(|s| bits(s).is_some())
    }

    /// The type that decides how inputs are read: the last one.
    fn ty(&self) -> Result<&'a str> {
        match self.types().last() {
            Some(ty) => Ok(ty),
            None => bail!("`{}` has no type suffix", self.name),
        }
    }
}

/// The result of `opcode` on the bits of its source operands.
pub fn eval(opcode: &str, inputs: &[u64]) -> Result<Expected> {
    let op = Opcode::new(opcode);
    let ty = op.ty()?;
    if op.name == "cvt" {
        return convert::cvt(&op, inputs[0]);
    }
    if ty.starts_with('f') {
        float::eval(&op, ty, inputs)
    } else {
        integer::eval(&op, ty, inputs).map(Expected::Exact)
    }
}
