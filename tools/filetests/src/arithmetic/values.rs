//! Operands: corners of the types, random bits, and such that results are near a corner.

use super::{Form, Source, keep};
use simt::Random;

use crate::inputs::corners;
use crate::reference::width;

/// The operands of a form.
pub(super) fn row(form: &Form, random: &mut Random) -> Vec<u64> {
    let mut row: Vec<u64> = Vec::new();
    for source in &form.sources {
        let value = match row.last() {
            // Near the operand before it, so that differences cancel and comparisons are close.
            Some(&last) if width(source.ty).is_some() && random.number().is_multiple_of(4) => {
                near(source, last, random)
            }
            _ => draw(source, random),
        };
        row.push(value);
    }
    if let [a, b, _] = row[..]
        && let Some(product) = product(form, a, b)
        && random.number().is_multiple_of(4)
    {
        row[2] = near(&form.sources[2], product, random);
    }
    row
}

/// The product that a fused multiply-add adds its third operand to, where the host can tell it.
fn product(form: &Form, a: u64, b: u64) -> Option<u64> {
    match form.sources[2].ty {
        "f32" => {
            let [a, b] = [a, b].map(|bits| f32::from_bits(bits as u32));
            Some((a * b).to_bits().into())
        }
        "f64" => Some((f64::from_bits(a) * f64::from_bits(b)).to_bits()),
        _ => None,
    }
}

/// The same bits, but for a few of the lowest and the highest one.
fn near(source: &Source, value: u64, random: &mut Random) -> u64 {
    let by = random.number();
    let top = 1 << (width(source.ty).unwrap_or(1) - 1);
    let value = match by >> 8 & 3 {
        0 => value,
        1 => value.wrapping_add(by & 3),
        2 => value.wrapping_sub(by & 3),
        _ => value ^ (by & 7),
    };
    let value = if by >> 16 & 1 == 1 {
        value ^ top
    } else {
        value
    };
    value & keep(source.register)
}

/// A value for a register, whose bits above the type are random.
fn draw(source: &Source, random: &mut Random) -> u64 {
    let ty = source.ty;
    let bits = width(ty).unwrap_or(1);
    let value = match ty {
        // Often near a width.
        "shift" if random.number().is_multiple_of(4) => return random.number() & keep(32),
        "shift" => return corner("shift", 0, random.number()),
        "pred" => return random.number() & 1,
        "lane" => return random.number() & 31,
        "offset" => return (random.number() % 73).wrapping_sub(36) & keep(32),
        "f16x2" | "bf16x2" | "u16x2" | "s16x2" | "e4m3x2" | "e5m2x2" => {
            let part = &ty[..ty.len() - 2];
            let half = bits / 2;
            scalar(part, random) | scalar(part, random) << half
        }
        ty => scalar(ty, random),
    };
    let above = random.number() & !keep(bits);
    (value | above) & keep(source.register)
}

/// Bits of exponent and fraction of a float.
fn layout(ty: &str) -> Option<(u32, u32)> {
    match ty {
        "f16" => Some((5, 10)),
        "bf16" => Some((8, 7)),
        "f32" => Some((8, 23)),
        "f64" => Some((11, 52)),
        _ => None,
    }
}

/// One of a type's corners; those that have none have so few values that any will do.
fn corner(ty: &str, other: u64, pick: u64) -> u64 {
    let column = corners(ty).unwrap_or_default();
    let at = (pick >> 32) as usize % column.len().max(1);
    column.get(at).copied().unwrap_or(other)
}

fn scalar(ty: &str, random: &mut Random) -> u64 {
    let bits = width(ty).unwrap_or(1);
    let raw = random.number() & keep(bits);
    let pick = random.number();
    let value = match (pick % 8, layout(ty)) {
        (0..=1, _) => corner(ty, raw, pick),
        (2, _) => raw,
        // A run of equal bits at the lower end, and one off: halfway between two results.
        (3, _) => {
            let low = keep(1 + (pick >> 8) as u32 % bits);
            let half = low / 2 + 1;
            (raw & !low | half)
                .wrapping_add(pick >> 16 & 3)
                .wrapping_sub(1)
        }
        (4 | 5, Some((exponent, fraction))) => {
            // Near one, where sums and products of values meet.
            let one = (1u64 << (exponent - 1)) - 1;
            let spread = (pick >> 8) % 33;
            let biased = (one + spread).saturating_sub(16).min(2 * one);
            raw & !(((1 << exponent) - 1) << fraction) | biased << fraction
        }
        // Near an integer, or halfway between two.
        (6, Some((exponent, fraction))) => {
            let one = (1u64 << (exponent - 1)) - 1;
            let at = (pick >> 8) % u64::from(fraction + 8).min(one);
            let below = u64::from(fraction).saturating_sub(at) as u32;
            let whole =
                raw & keep(fraction) & !keep(below.max(1)) | ((pick >> 40 & 1) << below >> 1);
            let value = raw & 1 << (bits - 1) | (one + at) << fraction | whole;
            value.wrapping_add(pick >> 48 & 3).wrapping_sub(1)
        }
        // Infinities, NaN and values next to the largest.
        (7, Some((exponent, fraction))) if pick >> 8 & 3 == 0 => {
            let infinity = ((1u64 << exponent) - 1) << fraction;
            raw & 1 << (bits - 1) | infinity.wrapping_add(raw & 3).wrapping_sub(1)
        }
        // Subnormals.
        (7, Some((_, fraction))) if pick >> 8 & 3 == 1 => raw & (1 << (bits - 1) | keep(fraction)),
        (_, Some(_)) => raw,
        // Small numbers, of both signs.
        (4, None) => raw >> ((pick >> 8) as u32 % bits),
        (5, None) => !(raw >> ((pick >> 8) as u32 % bits)),
        // Few bits.
        (_, None) => 1 << ((pick >> 8) as u32 % bits) | 1 << ((pick >> 16) as u32 % bits),
    };
    value & keep(bits)
}
