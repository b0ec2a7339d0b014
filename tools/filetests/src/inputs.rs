//! Operand values for scalar instruction tests: corners of each type crossed with each other, then
//! pseudo-random ones. The sequence is fixed, so a failure repeats.

use anyhow::{Result, bail};
use simt::Random;

use crate::header::bits;

/// How many pseudo-random combinations follow the corners.
const RANDOM: usize = 256;
/// Corner combinations are thinned to at most about this many.
const CORNERS: usize = 1024;

/// Rows of operand bits for the `operands` of a header: type names, `T!0` for a non-zero value,
/// `shift` for a shift amount, `bit` for 0 or 1.
pub fn rows(operands: &str) -> Result<Vec<Vec<u64>>> {
    let columns: Vec<Vec<u64>> = operands
        .split_whitespace()
        .map(corners)
        .collect::<Result<_>>()?;
    let total: usize = columns.iter().map(Vec::len).product();
    let step = total.div_ceil(CORNERS).max(1);
    // A step that shares no factor with the column lengths visits all values of every column.
    let step = (step..).find(|s| columns.iter().all(|c| gcd(*s, c.len()) == 1));
    let mut rows: Vec<Vec<u64>> = (0..total)
        .step_by(step.unwrap_or(1))
        .map(|mut n| {
            let pick = |column: &Vec<u64>| {
                let value = column[n % column.len()];
                n /= column.len();
                value
            };
            columns.iter().map(pick).collect()
        })
        .collect();
    let mut random = Random::new(operands.len() as u64);
    for _ in 0..RANDOM {
        let row = operands
            .split_whitespace()
            .zip(&columns)
            .map(|(operand, column)| draw(operand, column, &mut random));
        rows.push(row.collect());
    }
    Ok(rows)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A random value of the operand's width, or now and then a corner.
fn draw(operand: &str, column: &[u64], random: &mut Random) -> u64 {
    let value = random.number();
    let corner = column[(value >> 32) as usize % column.len()];
    match bits(operand.trim_end_matches("!0")) {
        Some(width) if value & 7 != 0 => {
            let value = random.number() & mask(width);
            if value == 0 { corner } else { value }
        }
        _ => corner,
    }
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// The corners of an operand's type.
pub(crate) fn corners(operand: &str) -> Result<Vec<u64>> {
    let ty = operand.trim_end_matches("!0");
    let mut values = match ty {
        "bit" => vec![0, 1],
        "shift" => vec![0, 1, 5, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 200, 255],
        "f16" => vec![
            0, 0x8000, 1, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x0400, 0x3801,
        ],
        "bf16" => vec![
            0, 0x8000, 1, 0x807f, 0x3f80, 0xbf80, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x0080, 0x3f01,
        ],
        "f32" => floats32(),
        "f64" => floats64(),
        _ => match bits(ty) {
            Some(width) => integers(width),
            None => bail!("unknown operand type `{operand}`"),
        },
    };
    if operand.ends_with("!0") {
        values.retain(|&v| v != 0);
    }
    Ok(values)
}

fn integers(width: u32) -> Vec<u64> {
    let top = 1 << (width - 1);
    let wide = [0x1234_5678_9abc_def0, 0xdead_beef_0bad_f00d].map(|v: u64| v & mask(width));
    let mut values = vec![
        0,
        1,
        2,
        3,
        7,
        100,
        top - 1,
        top,
        top + 1,
        mask(width) - 1,
        mask(width),
    ];
    values.extend(wide);
    values
}

fn floats32() -> Vec<u64> {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        3.0,
        0.1,
        -0.7,
        1.0e10,
        -1.0e-10,
        2.0e9,
        -3.0e9,
        1.9e19,
        65504.0,
        255.5,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        8_388_609.0,
        1.0 + f32::EPSILON,
        1.0 - f32::EPSILON,
        123.456,
        -87.0,
    ];
    let tiny = [1u32, 0x8000_0001, 0x007f_ffff, 0x0040_0000];
    let values = values.iter().map(|v: &f32| v.to_bits()).chain(tiny);
    values.map(u64::from).collect()
}

fn floats64() -> Vec<u64> {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        3.0,
        0.1,
        -0.7,
        1.0e10,
        -1.0e-10,
        2.0e9,
        -3.0e9,
        1.9e19,
        65504.0,
        255.5,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        -f64::MIN_POSITIVE,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        9_007_199_254_740_993.0,
        1.0 + f64::EPSILON,
        3.0e-39,
        1.0e39,
        16_777_217.0,
        2_147_483_647.5,
        -2_147_483_648.5,
    ];
    let tiny = [1u64, 0x8000_0000_0000_0001, 0x000f_ffff_ffff_ffff];
    values
        .iter()
        .map(|v: &f64| v.to_bits())
        .chain(tiny)
        .collect()
}
