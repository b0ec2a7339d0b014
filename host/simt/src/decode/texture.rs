//! `tex` and `tld4` from texture objects.
//!
//! Mipmaps there are none, so that the level of detail and gradients, where they are given, say nothing.

use ptx::ast::{Instruction, Operand, Type};

use super::Result;
use super::context::{Decoder, Unsupported, operand};
use crate::code::{Kind, TexelAddress, Texture};

pub(super) fn decode(cx: &mut Decoder<'_, '_>, i: &Instruction) -> Result<()> {
    let gather = match i.opcode.as_str() {
        "tld4" => ["r", "g", "b", "a"].iter().position(|name| i.has(name)),
        _ => None,
    };
    let details = match () {
        () if i.has("level") => 1,
        () if i.has("grad") => 2,
        () => 0,
    };
    let shape: Vec<&str> = i
        .suffixes
        .iter()
        .map(|suffix| suffix.as_str())
        .filter(|&suffix| !matches!(suffix, "base" | "level" | "grad" | "r" | "g" | "b" | "a"))
        .collect();
    let cube = matches!(shape.first(), Some(&("cube" | "acube")));
    let (layered, dimensions) = match shape.first() {
        Some(&"cube") if gather.is_none() => (false, 3),
        Some(&"acube") if gather.is_none() => (true, 3),
        Some(&"1d") if gather.is_none() => (false, 1),
        Some(&"2d") => (false, 2),
        Some(&"3d") if gather.is_none() => (false, 3),
        Some(&"a1d") if gather.is_none() => (true, 1),
        Some(&"a2d") => (true, 2),
        _ => return Unsupported::because("this instruction"),
    };
    let coordinate = match (i.types().as_slice(), shape.len(), i.vector()) {
        (
            [
                Type::F32 | Type::S32 | Type::U32,
                ty @ (Type::F32 | Type::S32),
            ],
            4,
            4,
        ) if !cube || *ty == Type::F32 => *ty,
        _ => return Unsupported::because("this instruction"),
    };
    if i.operands.len() != 2 + details {
        return Unsupported::because("offsets or depth comparison");
    }
    let (to, resident) = match operand(i, 0)? {
        Operand::Pair(to, resident) => (&**to, Some(cx.dst_pred(resident)?)),
        to => (to, None),
    };
    let Operand::Vector(to) = to else {
        return Unsupported::because("a result of this form");
    };
    let mut rows = Vec::new();
    for to in to {
        rows.push(cx.dst(to)?);
    }
    let Ok(rows) = <[u32; 4]>::try_from(rows) else {
        return Unsupported::because("a result of this form");
    };
    let texel = texel(
        cx,
        operand(i, 1)?,
        "texture",
        layered,
        dimensions,
        coordinate,
    )?;
    cx.push(Kind::Texture(Box::new(Texture {
        texel,
        texels: coordinate == Type::S32,
        cube,
        gather: gather.map(|channel| channel as u8),
        rows,
        resident,
    })))
}

/// Where a `texture` or a `surface` is accessed, of a geometry that is layered or not, and has so many
/// coordinates of a type.
pub(super) fn texel(
    cx: &mut Decoder<'_, '_>,
    operand: &Operand,
    image: &str,
    layered: bool,
    dimensions: usize,
    coordinate: Type,
) -> Result<TexelAddress> {
    let (object, coordinates) = match operand {
        Operand::Bracket(parts) => match parts.as_slice() {
            [Operand::Name { name, .. }, _] if cx.register(name).is_none() => {
                return Unsupported::because(format!("the {image} reference {name}"));
            }
            [object, Operand::Vector(coordinates)] => (object, coordinates.as_slice()),
            [object, coordinate] => (object, std::slice::from_ref(coordinate)),
            _ => return Unsupported::because("a separate sampler"),
        },
        _ => return Unsupported::because("an operand of this form"),
    };
    let handle = cx.src(object, Type::B64)?;
    let (layer, coordinates) = match (layered, coordinates) {
        (true, [layer, rest @ ..]) => (Some(cx.src(layer, Type::U32)?), rest),
        (_, all) => (None, all),
    };
    // Three coordinates are written as four; the last one means nothing.
    if coordinates.len() < dimensions {
        return Unsupported::because("fewer coordinates than the geometry has");
    }
    let mut at = Vec::new();
    for value in &coordinates[..dimensions] {
        at.push(cx.src(value, coordinate)?);
    }
    Ok(TexelAddress { handle, at, layer })
}
