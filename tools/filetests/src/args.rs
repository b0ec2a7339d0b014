//! `arg` and `out` values: `u32[64] zero`, `u32[4] 1 2 0x3 4`, `u32[64] = i * 2`, `u32 5`, `f32 1.5`.
//!
//! Elements of matrices have types of their own, and expressions give their values, not their bits:
//! `f16[64] = i - 5`, `s4[256] = i % 16 - 8` (two to a byte, the first in the lower bits).

use anyhow::{Context, Result, bail, ensure};
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, Status};

use crate::expr::Functions;
use crate::header::bits;

/// A kernel argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// A scalar's bytes.
    Scalar(Vec<u8>),
    /// A buffer's bytes; the kernel gets its address.
    Buffer(Vec<u8>),
    /// An image; the kernel gets a texture or surface object that reads it.
    Image(Image),
}

/// Texels of one channel without gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// A surface object and no texture object.
    pub surface: bool,
    /// Texels in x, y and z.
    pub extent: [u32; 3],
    /// The type of a texel: `f32`, `u32`, `s32`, `u16` or `u8`.
    pub ty: String,
    /// Where they are.
    pub texels: Texels,
}

/// The memory of an image.
#[derive(Clone, Debug, PartialEq)]
pub enum Texels {
    /// Its own, with these bytes at first.
    Own(Vec<u8>),
    /// That of an earlier argument, by its number from 0: a buffer or another image.
    Of(usize),
}

impl Image {
    /// Bytes of its texels.
    pub fn size(&self) -> Result<usize> {
        let [x, y, z] = self.extent.map(|texels| texels as usize);
        Ok(x * y * z * width(&self.ty)? as usize / 8)
    }
}

impl Arg {
    /// Bytes of its memory; none for scalars.
    ///
    /// # Errors
    /// When the texels of an image have no size.
    pub fn bytes(&self) -> Result<u64> {
        Ok(match self {
            Self::Scalar(_) => 0,
            Self::Buffer(bytes) => bytes.len() as u64,
            Self::Image(image) => image.size()? as u64,
        })
    }
}

/// Reads one `arg` value, in whose expressions `functions` may be called.
pub fn parse(text: &str, functions: &Functions) -> Result<Arg> {
    let (ty, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if matches!(ty, "texture" | "surface") {
        return image(ty == "surface", rest.trim(), functions);
    }
    match ty.strip_suffix(']').and_then(|t| t.split_once('[')) {
        Some((ty, count)) => {
            let count = count
                .parse()
                .with_context(|| format!("bad length in `{text}`"))?;
            Ok(Arg::Buffer(elements(ty, count, rest.trim(), functions)?))
        }
        None => Ok(Arg::Scalar(match rest.trim().strip_prefix('=') {
            Some(expression) => calculated(ty, &functions.each(expression, 1)?)?,
            None => scalar(ty, rest.trim())?,
        })),
    }
}

/// `8x4 f32 = i`: texels, row by row; `8x4x6` has six slices; `8x4 f32 of 0`: the memory of the first argument.
fn image(surface: bool, text: &str, functions: &Functions) -> Result<Arg> {
    let bad = || {
        format!(
            "expected `WIDTHxHEIGHT TYPE VALUES` or `WIDTHxHEIGHTxDEPTH TYPE VALUES` in `{text}`"
        )
    };
    let (extent, rest) = text.split_once(' ').with_context(bad)?;
    let sizes: Result<Vec<u32>, _> = extent.split('x').map(str::parse).collect();
    let extent = match sizes.with_context(bad)?[..] {
        [width, height] => [width, height, 1],
        [width, height, depth] => [width, height, depth],
        _ => bail!(bad()),
    };
    let (ty, values) = rest.trim().split_once(' ').with_context(bad)?;
    ensure!(
        matches!(ty, "f32" | "u32" | "s32" | "u16" | "u8"),
        "no image has texels of {ty}"
    );
    let count = extent.into_iter().map(u64::from).product();
    let values = values.trim();
    let texels = match values.strip_prefix("of ") {
        Some(other) => Texels::Of(other.trim().parse().with_context(bad)?),
        None => Texels::Own(elements(ty, count, values, functions)?),
    };
    Ok(Arg::Image(Image {
        surface,
        extent,
        ty: ty.to_owned(),
        texels,
    }))
}

/// The bytes of `count` elements of type `ty`: `zero`, `= expression in i`, or a list.
fn elements(ty: &str, count: u64, values: &str, functions: &Functions) -> Result<Vec<u8>> {
    if let Some(expression) = values.strip_prefix('=') {
        return calculated(ty, &functions.each(expression, count)?);
    }
    if values == "zero" {
        return Ok(vec![0; (width(ty)? / 8) as usize * count as usize]);
    }
    let list: Vec<_> = values.split_whitespace().collect();
    let list = match list[..] {
        [one] => vec![one; count as usize],
        _ => list,
    };
    if list.len() as u64 != count {
        bail!("{} values for {count} elements in `{values}`", list.len());
    }
    let each = list.iter().map(|value| scalar(ty, value));
    Ok(each.collect::<Result<Vec<_>>>()?.concat())
}

/// The bytes of elements with these values.
fn calculated(ty: &str, values: &[u64]) -> Result<Vec<u8>> {
    let packed = match ty {
        "s4" | "u4" => Some(4),
        "b1" => Some(1),
        _ => None,
    };
    if let Some(bits) = packed {
        let per_byte = 8 / bits;
        ensure!(
            values.len().is_multiple_of(per_byte),
            "{} elements of {ty} fill no bytes",
            values.len()
        );
        let byte = |chunk: &[u64]| {
            let element = |(n, value): (usize, &u64)| (value & ((1 << bits) - 1)) << (bits * n);
            chunk.iter().enumerate().map(element).sum::<u64>() as u8
        };
        return Ok(values.chunks(per_byte).map(byte).collect());
    }
    let each = values.iter().map(|&value| match ty {
        "f16" => float::<Half>(value),
        "bf16" => float::<BFloat>(value),
        "e4m3" => float::<Float8E4M3FN>(value),
        "e5m2" => float::<Float8E5M2>(value),
        "f32" | "tf32" => float::<Single>(value),
        "f64" => float::<Double>(value),
        _ => encode(ty, value),
    });
    Ok(each.collect::<Result<Vec<_>>>()?.concat())
}

/// A whole number as a float.
fn float<F: Float>(value: u64) -> Result<Vec<u8>> {
    let value = i128::from(value.cast_signed());
    let float = F::from_i128(value);
    ensure!(
        float.status == Status::OK,
        "{value} has no exact representation"
    );
    Ok(float.value.to_bits().to_le_bytes()[..F::BITS / 8].to_vec())
}

fn scalar(ty: &str, value: &str) -> Result<Vec<u8>> {
    let bad = || format!("`{value}` is not a {ty}");
    match ty {
        "f32" => Ok(value
            .parse::<f32>()
            .with_context(bad)?
            .to_le_bytes()
            .to_vec()),
        "f64" => Ok(value
            .parse::<f64>()
            .with_context(bad)?
            .to_le_bytes()
            .to_vec()),
        _ => {
            let parsed = match value.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16),
                None => value.parse(),
            };
            encode(ty, parsed.with_context(bad)? as u64)
        }
    }
}

fn encode(ty: &str, value: u64) -> Result<Vec<u8>> {
    Ok(value.to_le_bytes()[..(width(ty)? / 8) as usize].to_vec())
}

fn width(ty: &str) -> Result<u32> {
    bits(ty).with_context(|| format!("unknown type `{ty}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arg> {
        super::parse(text, &Functions::new(["low = 2"])?)
    }

    #[test]
    fn the_forms_an_argument_can_have() {
        assert_eq!(
            parse("u16[3] = i * 2").unwrap(),
            Arg::Buffer(vec![0, 0, 2, 0, 4, 0])
        );
        assert_eq!(parse("u32 7").unwrap(), Arg::Scalar(vec![7, 0, 0, 0]));
        assert_eq!(parse("u8 = low + i").unwrap(), Arg::Scalar(vec![2]));
        assert_eq!(
            parse("s16[2] -1 0").unwrap(),
            Arg::Buffer(vec![255, 255, 0, 0])
        );
        assert_eq!(
            parse("u16[2] 0xff01 2").unwrap(),
            Arg::Buffer(vec![1, 255, 2, 0])
        );
        assert_eq!(parse("u8[3] 9").unwrap(), Arg::Buffer(vec![9, 9, 9]));
        assert_eq!(
            parse("f32 1.5").unwrap(),
            Arg::Scalar(1.5f32.to_le_bytes().to_vec())
        );
        assert_eq!(
            parse("bf16[2] = i - low").unwrap(),
            Arg::Buffer(vec![0, 0xc0, 0x80, 0xbf])
        );
        assert_eq!(
            parse("s4[4] = i - low").unwrap(),
            Arg::Buffer(vec![0xfe, 0x10])
        );
        assert_eq!(parse("b1[8] = i < 3").unwrap(), Arg::Buffer(vec![7]));
        assert_eq!(parse("e5m2[1] = 3").unwrap(), Arg::Buffer(vec![0x42]));
        let Arg::Image(image) = parse("surface 2x3 u16 = i").unwrap() else {
            panic!("no image");
        };
        assert_eq!((image.extent, image.size().unwrap()), ([2, 3, 1], 12));
        assert!(matches!(image.texels, Texels::Own(bytes) if bytes.len() == 12));
        let Arg::Image(image) = parse("texture 4x2 f32 of 1").unwrap() else {
            panic!("no image");
        };
        assert_eq!((image.texels, image.surface), (Texels::Of(1), false));
        for text in [
            "texture 2 u8 zero",
            "texture 2x2 f16 zero",
            "texture 2x2 u8 1 2",
            "texture 2x2 u8 of it",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["e5m2[1] = 9", "s4[3] = i", "b1[4] = 1", "f16[1] = 4097"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["u32[2] 1 2 3", "q32 1", "u32[x] zero", "u32 one", "u32 0xg"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
