//! `suld.b` and `sust.b` through surface objects.

use ptx::ast::{Instruction, Operand, Type};

use super::context::{Decoder, Unsupported, operand};
use super::{Result, texture};
use crate::code::{Beyond, Kind, Surface};

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    if !i.has("b") {
        return Unsupported::because("a formatted surface access");
    }
    let geometry = |suffix: &str| match suffix {
        "1d" => Some((false, 1)),
        "2d" => Some((false, 2)),
        "3d" => Some((false, 3)),
        "a1d" => Some((true, 1)),
        "a2d" => Some((true, 2)),
        _ => None,
    };
    let Some((layered, dimensions)) = i.suffixes.iter().find_map(|name| geometry(name)) else {
        return Unsupported::because("this geometry");
    };
    let beyond = match i.suffixes.last().map(|suffix| suffix.as_str()) {
        Some("clamp") => Beyond::Clamp,
        Some("zero") => Beyond::Zero,
        // What is not said traps.
        _ => Beyond::Trap,
    };
    let bytes = match i.types().as_slice() {
        [Type::B8] => 1,
        [Type::B16] => 2,
        [Type::B32] => 4,
        [Type::B64] => 8,
        _ => return Unsupported::because("this type"),
    };
    let store = i.opcode == "sust";
    let (texel, value) = match store {
        true => (operand(i, 0)?, operand(i, 1)?),
        false => (operand(i, 1)?, operand(i, 0)?),
    };
    let values = match value {
        Operand::Vector(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    };
    let mut rows = Vec::new();
    for value in values {
        rows.push(match store {
            true => cx.src(value, i.types()[0])?,
            false => cx.dst(value)?,
        });
    }
    if rows.len() != usize::from(i.vector().max(1)) {
        return Unsupported::because("a value of this form");
    }
    let texel = texture::texel(cx, texel, "surface", layered, dimensions, Type::S32)?;
    cx.push(Kind::Surface(Box::new(Surface {
        texel,
        bytes,
        rows,
        store,
        beyond,
    })))
}
