//! Cubemaps: which face a direction meets, and where.
//!
//! Source: CUDA C++ Programming Guide 13.0, "Cubemap Textures". The faces are the slices of the texture's box, six for
//! each cubemap of a layered one. A direction along which two coordinates are equally large meets the face of x before
//! that of y, and that before z's; the guide does not say. Departure: filtering stays within a face.

use super::{AddressMode, Coordinate, Fetch, Sampler, Texture};

/// Faces of a cube.
pub(crate) const FACES: u32 = 6;

/// The face that a direction meets, and the place there, from 0 to 1.
fn face([x, y, z]: [f32; 3]) -> (u32, [f32; 2]) {
    let [of_x, of_y, of_z] = [x, y, z].map(f32::abs);
    // Largest coordinate, and the two others as the face sees them.
    let (face, m, s, t) = match () {
        () if of_x >= of_y && of_x >= of_z && x >= 0.0 => (0, x, -z, -y),
        () if of_x >= of_y && of_x >= of_z => (1, -x, z, -y),
        () if of_y >= of_z && y >= 0.0 => (2, y, x, z),
        () if of_y >= of_z => (3, -y, x, -z),
        () if z >= 0.0 => (4, z, x, -y),
        () => (5, -z, -x, -y),
    };
    (face, [s, t].map(|of| (of / m + 1.0) / 2.0))
}

/// A fetch along a direction from one of the cubemaps of a texture, as a fetch from a layered texture.
pub(crate) fn unfold(
    texture: &Texture,
    direction: [f32; 3],
    cubemap: Option<u32>,
) -> (Texture, Fetch) {
    let cubemaps = (texture.image.extent[2] / FACES).max(1);
    let first = FACES * cubemap.unwrap_or(0).min(cubemaps - 1);
    let (face, [s, t]) = face(direction);
    let flat = Texture {
        sampler: Sampler {
            normalized: true,
            address: [AddressMode::Clamp; 3],
            ..texture.sampler
        },
        ..*texture
    };
    let fetch = Fetch {
        at: [
            Coordinate::Point(s),
            Coordinate::Point(t),
            Coordinate::Missing,
        ],
        layer: Some(first + face),
    };
    (flat, fetch)
}
