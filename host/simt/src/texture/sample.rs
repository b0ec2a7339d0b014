//! What a fetch returns: which texels, and how they are weighted.
//!
//! Source: CUDA C++ Programming Guide 13.0, "Texture Fetching". Nearest-point sampling reads texel
//! `floor(x)`. Linear filtering reads `(1 - a) T[i] + a T[i + 1]`, and likewise in y and z, where
//! `i = floor(x - 0.5)` and `a = frac(x - 0.5)` is a fixed-point number with 8 bits of fraction, in
//! which 1 is exact: it is rounded to the nearest.
//!
//! Departures:
//! 1. Coordinates and sums are exact up to the rounding of `a` and of the result, where hardware
//!    computes with fewer bits.
//! 2. Repeated images repeat texel by texel (as OpenGL and Vulkan define it). The guide reflects the
//!    coordinate, which names the other neighbour when a point lies exactly between two texels.
//! 3. A texel of weight 0 is not read.
//! 4. Integer coordinates read one texel, and 0 outside of the image in every address mode; the guide
//!    says so of linear memory, the only case that CUDA C++ can express.

use super::{AddressMode, ChannelFormat, Filter, Texture};
use crate::values::soft::{self, Round, convert};

/// Where a fetch reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fetch {
    /// In x, y and z.
    pub(crate) at: [Coordinate; 3],
    /// The layer, if the fetch is from a layered texture; z is then not used.
    pub(crate) layer: Option<u32>,
}

/// One coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Coordinate {
    /// Of a texel.
    Texel(i32),
    /// Of a point.
    Point(f32),
    /// The fetch has none in this dimension.
    Missing,
}

/// The fraction bits of a weight.
const FRACTION: u32 = 8;
const ONE: u32 = 1 << FRACTION;

/// The two texels along one axis that a fetch mixes, none for the border, with their weights in
/// units of 1 / 256.
type Taps = [(Option<u32>, u32); 2];

/// One texel with all its weight.
fn single(texel: Option<u32>) -> Taps {
    [(texel, ONE), (None, 0)]
}

/// What a fetch returns, channel by channel: bits of a float or of an integer.
///
/// `load` reads a texel at a device address.
pub(crate) fn sample<E>(
    texture: &Texture,
    fetch: &Fetch,
    mut load: impl FnMut(u64) -> Result<[u32; 4], E>,
) -> Result<[u32; 4], E> {
    let mut outside = false;
    let [x, y, z] = [0, 1, 2].map(|axis| {
        let extent = texture.image.extent[axis];
        match (axis, fetch.layer) {
            (2, Some(layer)) => single(Some(layer.min(extent.saturating_sub(1)))),
            _ => {
                let (taps, inside) = taps(texture, axis, extent, fetch.at[axis]);
                outside |= !inside;
                taps
            }
        }
    });
    if outside {
        return Ok([0; 4]);
    }
    let mut read = |at| texel(texture, at, &mut load);
    // One texel is returned as it is, whatever its bits mean.
    if [x, y, z].iter().all(|taps| taps[0].1 == ONE) {
        let mut bits = read([x[0].0, y[0].0, z[0].0])?;
        bits[usize::from(texture.channels.min(4))..].fill(0);
        return Ok(bits);
    }
    let mut sum = [0.0; 4];
    for (z, of_z) in z {
        for (y, of_y) in y {
            for (x, of_x) in x {
                let weight = f64::from(of_x) * f64::from(of_y) * f64::from(of_z);
                if weight == 0.0 {
                    continue;
                }
                let bits = read([x, y, z])?;
                for (sum, bits) in sum.iter_mut().zip(bits) {
                    *sum += weight * f64::from(f32::from_bits(bits));
                }
            }
        }
    }
    let scale = f64::from(ONE).powi(3);
    let mut bits = sum.map(|sum: f64| ((sum / scale) as f32).to_bits());
    bits[usize::from(texture.channels.min(4))..].fill(0);
    Ok(bits)
}

/// What a gather returns: one channel of the four texels around a point that linear filtering would mix, in the order
/// that the ISA gives them in.
pub(crate) fn gather<E>(
    texture: &Texture,
    fetch: &Fetch,
    channel: u8,
    mut load: impl FnMut(u64) -> Result<[u32; 4], E>,
) -> Result<[u32; 4], E> {
    let [width, height, depth] = texture.image.extent;
    let pair = |axis: usize, extent: u32| match fetch.at[axis] {
        Coordinate::Point(x) => {
            let (mode, x) = place(texture, axis, extent, x);
            let low = (x - 0.5).floor() as i64;
            [low, low + 1].map(|at| resolve(mode, at, extent))
        }
        _ => [Some(0); 2],
    };
    let (x, y) = (pair(0, width), pair(1, height));
    let layer = fetch.layer.unwrap_or(0).min(depth.saturating_sub(1));
    let mut result = [0; 4];
    if channel >= texture.channels {
        return Ok(result);
    }
    for (result, (right, down)) in result.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
        let bits = texel(texture, [x[right], y[down], Some(layer)], &mut load)?;
        *result = bits[usize::from(channel)];
    }
    Ok(result)
}

/// The channels of a texel, or of the border.
fn texel<E>(
    texture: &Texture,
    at: [Option<u32>; 3],
    load: &mut impl FnMut(u64) -> Result<[u32; 4], E>,
) -> Result<[u32; 4], E> {
    let image = &texture.image;
    let [Some(x), Some(y), Some(z)] = at else {
        return Ok(texture.sampler.border);
    };
    let row = u64::from(y).wrapping_mul(image.pitch);
    let slice = u64::from(z).wrapping_mul(image.slice);
    let offset = (u64::from(x) * u64::from(texture.texel_bytes())).wrapping_add(row);
    let address = image.address.wrapping_add(offset).wrapping_add(slice);
    Ok(load(address)?.map(|raw| value(texture, raw)))
}

/// A point along an axis in texels, and what it means outside.
fn place(texture: &Texture, axis: usize, extent: u32, x: f32) -> (AddressMode, f64) {
    let sampler = &texture.sampler;
    let mode = match sampler.address[axis] {
        AddressMode::Wrap | AddressMode::Mirror if !sampler.normalized => AddressMode::Clamp,
        mode => mode,
    };
    let scale = if sampler.normalized {
        f64::from(extent)
    } else {
        1.0
    };
    // Far outside is as good as infinitely far; what is no number becomes texel 0.
    let far = 2f64.powi(62);
    (mode, (f64::from(x) * scale).clamp(-far, far))
}

/// The texels along an axis, and false when an integer coordinate names none.
fn taps(texture: &Texture, axis: usize, extent: u32, at: Coordinate) -> (Taps, bool) {
    let (mode, x) = match at {
        Coordinate::Missing => return (single(Some(0)), true),
        Coordinate::Texel(at) => {
            let texel = u32::try_from(at).ok().filter(|&at| at < extent);
            return (single(texel), texel.is_some());
        }
        Coordinate::Point(x) => place(texture, axis, extent, x),
    };
    let mixes = texture.reads_floats();
    let taps = if texture.sampler.filter == Filter::Linear && mixes {
        let low = (x - 0.5).floor();
        let weight = ((x - 0.5 - low) * f64::from(ONE)).round() as u32;
        let first = resolve(mode, low as i64, extent);
        let second = resolve(mode, low as i64 + 1, extent);
        match weight {
            0 => single(first),
            ONE => single(second),
            weight => [(first, ONE - weight), (second, weight)],
        }
    } else {
        single(resolve(mode, x.floor() as i64, extent))
    };
    (taps, true)
}

/// The texel that stands at a place along an axis; none for the border.
fn resolve(mode: AddressMode, at: i64, extent: u32) -> Option<u32> {
    let n = i64::from(extent.max(1));
    let inside = match mode {
        AddressMode::Wrap => at.rem_euclid(n),
        AddressMode::Clamp => at.clamp(0, n - 1),
        AddressMode::Mirror => match at.rem_euclid(2 * n) {
            at if at < n => at,
            at => 2 * n - 1 - at,
        },
        AddressMode::Border => at,
    };
    u32::try_from(inside)
        .ok()
        .filter(|&inside| i64::from(inside) < n)
}

/// What a channel reads as, from its bits in memory.
pub(crate) fn value(texture: &Texture, raw: u32) -> u32 {
    use ChannelFormat::*;
    let float = |value: f64| (value as f32).to_bits();
    match (texture.format, texture.sampler.normalized_float) {
        (F32, _) => raw,
        (F16, _) => convert(u64::from(raw), soft::F16, soft::F32, Round::Nearest) as u32,
        (U8, true) => float(f64::from(raw as u8) / 255.0),
        (U16, true) => float(f64::from(raw as u16) / 65535.0),
        // The lowest value has no counterpart above 0 and reads as -1, too.
        (S8, true) => float((f64::from(raw as i8) / 127.0).max(-1.0)),
        (S16, true) => float((f64::from(raw as i16) / 32767.0).max(-1.0)),
        (S8, false) => i32::from(raw as i8) as u32,
        (S16, false) => i32::from(raw as i16) as u32,
        // 32-bit integers stay what they are in both modes.
        (U8 | U16 | U32 | S32, _) => raw,
    }
}
