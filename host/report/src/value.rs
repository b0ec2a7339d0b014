//! Values as people read them.

use crate::log;
use crate::model::Value;

/// Values below this are not taken for addresses.
const ADDRESSES: u64 = 1 << 40;

/// A value, if anything is known of it.
pub(crate) fn known(site: &log::Site, log::Value { old, new }: log::Value) -> Option<Value> {
    let ty = site.ty.clone();
    (old.is_some() || new.is_some()).then_some(Value { ty, old, new })
}

/// What an access has read, or written, or both: `42`, or `41 -> 42`. Empty when not known.
pub(crate) fn shown(value: &Value) -> String {
    let of = |bits| number(&value.ty, bits);
    match (value.old, value.new) {
        (Some(old), Some(new)) => format!("{} -> {}", of(old), of(new)),
        (Some(one), None) | (None, Some(one)) => of(one),
        (None, None) => String::new(),
    }
}

/// A value of a PTX type. Compilers store signed numbers by unsigned and untyped instructions, so
/// that small negative ones are shown too.
fn number(ty: &str, bits: u64) -> String {
    match ty {
        "s8" => return (bits as i8).to_string(),
        "s16" => return (bits as i16).to_string(),
        "s32" => return (bits as i32).to_string(),
        "s64" => return (bits as i64).to_string(),
        "f16" => return format!("{:?}", half(bits as u16)),
        "bf16" => return format!("{:?}", f32::from_bits((bits as u32) << 16)),
        "f32" => return format!("{:?}", f32::from_bits(bits as u32)),
        "f64" => return format!("{:?}", f64::from_bits(bits)),
        _ => {}
    }
    let signed = match ty {
        "u8" | "b8" | "u16" | "b16" => bits as i64,
        "u32" | "b32" => i64::from(bits as i32),
        "u64" | "b64" => bits as i64,
        _ => return format!("{bits:#x}"),
    };
    match signed {
        -4096..0 => format!("{bits} ({signed} as signed)"),
        _ if bits >= ADDRESSES => format!("{bits:#x}"),
        _ => bits.to_string(),
    }
}

/// IEEE 754 binary16.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (bits >> 10 & 31, f32::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * f32::powi(2.0, -24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * f32::powi(2.0, i32::from(exponent) - 25),
    };
    match bits >> 15 {
        0 => size,
        _ => -size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_their_type_says() {
        let expected = [
            ("u32", 42, "42"),
            ("s32", 0xffff_fffe, "-2"),
            ("u32", 0xffff_ffff, "4294967295 (-1 as signed)"),
            ("b32", 0xdead_beef, "3735928559"),
            ("b8", 200, "200"),
            ("u64", 0x2000_0000_0100, "0x200000000100"),
            ("f32", 0x8000_0000, "-0.0"),
            ("f32", 0x3fc0_0000, "1.5"),
            ("f64", 0x7ff0_0000_0000_0000, "inf"),
            ("bf16", 0x4049, "3.140625"),
            ("f16", 0x3c00, "1.0"),
            ("f16", 0xc200, "-3.0"),
            ("f16", 1, "5.9604645e-8"),
            ("f16", 0x7c00, "inf"),
            ("f16x2", 0x3c00_3c00, "0x3c003c00"),
        ];
        for (ty, bits, text) in expected {
            assert_eq!(number(ty, bits), text, "{ty} {bits:#x}");
        }
    }

    #[test]
    fn an_update_shows_both_ends() {
        let mut value = Value {
            ty: "u32".into(),
            old: Some(41),
            new: Some(42),
        };
        assert_eq!(shown(&value), "41 -> 42");
        value.old = None;
        assert_eq!(shown(&value), "42");
        value.new = None;
        assert_eq!(shown(&value), "");
    }
}
