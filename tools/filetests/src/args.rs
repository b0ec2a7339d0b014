//! `arg` and `out` values: `u32[64] zero`, `u32[4] 1 2 0x3 4`, `u32[64] = i * 2`, `u32 5`, `f32 1.5`.

use anyhow::{Context, Result, bail};

use crate::expr;
use crate::header::bits;

/// A kernel argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// A scalar's bytes.
    Scalar(Vec<u8>),
    /// A buffer's bytes; the kernel gets its address.
    Buffer(Vec<u8>),
}

/// Reads one `arg` value.
pub fn parse(text: &str) -> Result<Arg> {
    let (ty, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match ty.strip_suffix(']').and_then(|t| t.split_once('[')) {
        Some((ty, count)) => {
            let count = count
                .parse()
                .with_context(|| format!("bad length in `{text}`"))?;
            Ok(Arg::Buffer(elements(ty, count, rest.trim())?))
        }
        None => Ok(Arg::Scalar(scalar(ty, rest.trim())?)),
    }
}

/// The bytes of `count` elements of type `ty`: `zero`, `= expression in i`, or a list.
fn elements(ty: &str, count: u64, values: &str) -> Result<Vec<u8>> {
    if let Some(expression) = values.strip_prefix('=') {
        let each = (0..count).map(|i| encode(ty, expr::eval(expression, i)?));
        return Ok(each.collect::<Result<Vec<_>>>()?.concat());
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

    #[test]
    fn the_forms_an_argument_can_have() {
        assert_eq!(
            parse("u16[3] = i * 2").unwrap(),
            Arg::Buffer(vec![0, 0, 2, 0, 4, 0])
        );
        assert_eq!(parse("u32 7").unwrap(), Arg::Scalar(vec![7, 0, 0, 0]));
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
        for text in ["u32[2] 1 2 3", "q32 1", "u32[x] zero", "u32 one", "u32 0xg"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
