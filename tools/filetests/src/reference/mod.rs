//! What one scalar PTX instruction computes, on the CPU, from the PTX ISA's text.
//!
//! This is the simulated device's judge and shares no code with it: integers are computed in
//! 128 bits and cut, floating point with `rustc_apfloat` (LLVM's arbitrary precision floats) in every
//! rounding mode, `.approx` forms in double precision with the ISA's stated error bounds.
//! Packed values are their parts, one by one ([`parts`]).
//!
//! Where the ISA leaves a NaN open, a result in 32 bits or fewer is the canonical NaN, all ones but
//! for the sign, as on GPUs; results in double precision keep an operand's payload, as the ISA says.

mod approx;
mod atomic;
pub mod carry;
mod compare;
mod convert;
mod float;
mod integer;
mod packed;
mod video;

use anyhow::{Result, bail};
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

use crate::header;

pub use compare::second;
pub use packed::{Part, parts};
pub use video::video;

/// What a result must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// Exactly these bits.
    Exact(u64),
    /// Any NaN.
    Nan,
    /// One of these `f64`, which are NaN, made quiet.
    Quiet([u64; 3]),
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
            Expected::Nan => value(actual, ty).is_nan(),
            Expected::Quiet(given) => given.map(|bits| bits | 1 << 51).contains(&actual),
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

/// The value of a float given by its bits; `tf32` lies in the upper bits of an `f32`.
fn value(bits: u64, ty: &str) -> f64 {
    fn wide<F: Float + FloatConvert<Double>>(bits: u64) -> f64 {
        let exact: Double = F::from_bits(u128::from(bits)).convert(&mut false).value;
        f64::from_bits(exact.to_bits() as u64)
    }
    match ty {
        "f16" => wide::<Half>(bits),
        "bf16" => wide::<BFloat>(bits),
        "f32" | "tf32" => wide::<Single>(bits),
        _ => f64::from_bits(bits),
    }
}

/// Width in bits of a scalar or packed type name.
pub fn width(ty: &str) -> Option<u32> {
    match ty {
        "e4m3" | "e5m2" => Some(8),
        "bf16" | "e4m3x2" | "e5m2x2" => Some(16),
        "tf32" | "f16x2" | "bf16x2" | "u16x2" | "s16x2" => Some(32),
        _ => header::bits(ty),
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
        self.suffixes.iter().copied().filter(|s| width(s).is_some())
    }

    /// The type that decides how inputs are read: the last one.
    fn ty(&self) -> Result<&'a str> {
        match self.types().last() {
            Some(ty) => Ok(ty),
            None => bail!("`{}` has no type suffix", self.name),
        }
    }
}

/// The result of `opcode` on the bits of its source operands; of `setp` the first predicate.
///
/// # Errors
/// When it is not an instruction that is known here.
pub fn eval(opcode: &str, inputs: &[u64]) -> Result<Expected> {
    let op = Opcode::new(opcode);
    let types: Vec<_> = op.types().collect();
    let known = matches!(op.name, "cvt" | "set" | "setp" | "selp" | "slct" | "testp");
    if types.is_empty() && !(known || op.has("pred")) {
        bail!("`{opcode}` has no type suffix");
    }
    match op.name {
        "cvt" if op.has("pack") => return Ok(Expected::Exact(integer::pack(&op, inputs)?)),
        "cvt" => return convert::cvt(&op, inputs[0]),
        "atom" | "red" => return atomic::update(&op, inputs),
        "set" => return Ok(Expected::Exact(compare::set(&op, inputs)?)),
        "setp" => return Ok(Expected::Exact(compare::first(&op, inputs)?.into())),
        "selp" | "slct" => return Ok(Expected::Exact(compare::select(&op, inputs)?)),
        _ => {}
    }
    if op.has("pred") {
        return Ok(Expected::Exact(integer::predicate(&op, inputs)?));
    }
    let ty = op.ty()?;
    if ty.starts_with('f') || ty == "bf16" {
        float::eval(&op, ty, inputs)
    } else {
        integer::eval(&op, ty, inputs).map(Expected::Exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the ISA's tables and examples.
    #[test]
    fn known_results() {
        let known: [(&str, &[u64], u64); 24] = [
            ("bmsk.wrap.b32", &[1, 2], 6),
            ("bmsk.clamp.b32", &[32, 5], 0),
            ("szext.clamp.s32", &[0x0000_0f80, 8], 0xffff_ff80),
            ("fns.b32", &[0b1011_0010, 1, 3], 5),
            (
                "fns.b32",
                &[0b1011_0010, 5, (-2_i64) as u64 & 0xffff_ffff],
                4,
            ),
            ("lop3.b32", &[0xf0f0, 0xcccc, 0xaaaa, 0x80], 0x8080),
            ("prmt.b32.b4e", &[0x3322_1100, 0x7766_5544, 0], 0x5566_7700),
            ("dp2a.hi.s32.u32", &[0x0002_ffff, 0x0403_0000, 10], 15),
            (
                "mad24.hi.sat.s32",
                &[0x7f_ffff, 0x7f_ffff, 0x7fff_ffff],
                0x7fff_ffff,
            ),
            (
                "cvt.pack.sat.u8.s32.b32",
                &[300, 0xffff_ffff, 0x1234],
                0x1234_ff00,
            ),
            // 1 + 2^-11 lies halfway between two halves.
            ("cvt.rn.f16.f32", &[0x3f80_1000], 0x3c00),
            ("cvt.rp.f16.f32", &[0x3f80_1000], 0x3c01),
            ("cvt.rn.satfinite.f16.f32", &[0xc7c3_5000], 0xfbff),
            ("cvt.sat.f32.f32", &[0x7fc0_0000], 0),
            ("cvt.rna.tf32.f32", &[0x3f80_1000], 0x3f80_2000),
            ("cvt.rni.s32.f32", &[0x4020_0000], 2),
            ("cvt.rzi.u64.f32", &[0xffc0_0000], 1 << 63),
            ("cvt.rzi.u32.f64", &[0xbff0_0000_0000_0000], 0),
            (
                "min.xorsign.abs.f32",
                &[0xc000_0000, 0x3f80_0000],
                0xbf80_0000,
            ),
            ("max.f32", &[0x8000_0000, 0], 0),
            ("testp.normal.f32", &[0x8000_0000], 1),
            ("testp.subnormal.f64", &[1], 1),
            ("sqrt.rn.f32", &[0x4000_0000], 0x3fb5_04f3),
            ("set.lt.bf16.f16", &[0x3c00, 0x4000], 0x3f80),
        ];
        for (opcode, inputs, want) in known {
            let have = eval(opcode, inputs).unwrap();
            assert_eq!(have, Expected::Exact(want), "{opcode} of {inputs:x?}");
        }
    }

    #[test]
    fn known_parts() {
        let known: [(&str, &[u64], [u64; 2]); 4] = [
            (
                "cvt.rn.satfinite.e4m3x2.f32",
                &[0x447a_0000, 0x3f80_0000],
                [0x38, 0x7e],
            ),
            ("cvt.rn.f16x2.e5m2x2", &[0x7c3c], [0x3c00, 0x7c00]),
            ("add.sat.f16x2", &[0x3c00_bc00, 0x3c00_3800], [0, 0x3c00]),
            (
                "set.gt.u32.bf16x2",
                &[0x4000_3f80, 0x3f80_3f80],
                [0, 0xffff],
            ),
        ];
        for (opcode, inputs, want) in known {
            let have = parts(opcode, inputs).unwrap();
            let have: Vec<_> = have.iter().map(|part| part.expected).collect();
            assert_eq!(have, want.map(Expected::Exact), "{opcode} of {inputs:x?}");
        }
    }

    #[test]
    fn carries_go_on() {
        let add = ["add.cc.u32", "addc.cc.u32", "addc.u32"].map(str::to_owned);
        let ones = u64::from(u32::MAX);
        let sum = carry::chain(&add, &[vec![ones, 1], vec![ones, 0], vec![5, 0]]).unwrap();
        assert_eq!(sum, [0, 0, 6]);
        let sub = ["sub.cc.u64", "subc.u64"].map(str::to_owned);
        let difference = carry::chain(&sub, &[vec![0, 1], vec![7, 2]]).unwrap();
        assert_eq!(difference, [u64::MAX, 4]);
    }
}
