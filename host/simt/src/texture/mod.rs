//! Texture and surface objects: what they describe, and the table of those a device has.
//!
//! A texture is a box of texels in device memory and a way to read it. One-dimensional textures are
//! boxes of height and depth 1; the layers of a layered texture are the slices of its box, and so are the faces of cubemaps. Buffers,
//! pitched memory and arrays differ in their pitches only.
//! Source: CUDA C++ Programming Guide 13.0, "Texture and Surface Memory" and "Texture Fetching"; PTX
//! ISA 9.0, `tex`. How a texel is found and filtered stands in `sample`.
//!
//! Departures: a fetch whose geometry is not the texture's reads the box all the same, with missing
//! coordinates 0; channels that the format does not have read 0.

mod cube;
mod sample;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use cube::unfold;
pub(crate) use sample::{Coordinate, Fetch, gather, sample, value};

/// A texture object: where its texels are and how they are read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Texture {
    /// Where the texels are.
    pub image: Image,
    /// What a channel of a texel is.
    pub format: ChannelFormat,
    /// Channels of a texel, 1 to 4; texels lie without gaps in their row.
    pub channels: u8,
    /// How they are read.
    pub sampler: Sampler,
}

impl Texture {
    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> u32 {
        self.format.bytes() * u32::from(self.channels)
    }

    /// True when a fetch returns floats; 32-bit integers always read as integers.
    pub fn reads_floats(&self) -> bool {
        let wide = self.format.bytes() == 4;
        self.format.is_float() || (self.sampler.normalized_float && !wide)
    }
}

/// A box of texels in device memory.
///
/// The address and both pitches are multiples of a channel's bytes. Fetches obey the bounds of device
/// memory, whatever is said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Device address of the first texel.
    pub address: u64,
    /// Texels in x, y and z; 1 for a dimension that is not there, and layers in z.
    pub extent: [u32; 3],
    /// Bytes from row to row.
    pub pitch: u64,
    /// Bytes from slice to slice.
    pub slice: u64,
}

/// The type of one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "kind and bits")]
pub enum ChannelFormat {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

impl ChannelFormat {
    /// Bytes of a channel: 1, 2 or 4.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 | Self::F16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
        }
    }

    /// True for the floating-point formats.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32)
    }
}

/// How a texture is read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    /// What coordinates outside of the image mean, in x, y and z; layers are always clamped.
    pub address: [AddressMode; 3],
    /// How texels become a value. Texels that are read as integers are never mixed.
    pub filter: Filter,
    /// True when float coordinates run from 0 to 1 over the image, and not over its texels.
    pub normalized: bool,
    /// True when 8- and 16-bit integers read as floats from 0 (unsigned) or -1 (signed) to 1.
    pub normalized_float: bool,
    /// What [`AddressMode::Border`] reads outside, per channel: the bits of what a fetch returns.
    pub border: [u32; 4],
}

impl Default for Sampler {
    /// Clamped, nearest texel, plain coordinates and values: an all-zero `cudaTextureDesc`, which
    /// asks for wrapping but has not got the normalised coordinates for it.
    fn default() -> Self {
        Self {
            address: [AddressMode::Clamp; 3],
            filter: Filter::Point,
            normalized: false,
            normalized_float: false,
            border: [0; 4],
        }
    }
}

/// What a coordinate outside of the image means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressMode {
    /// The image repeats; only with normalised coordinates, else [`AddressMode::Clamp`].
    Wrap,
    /// The nearest texel inside.
    Clamp,
    /// The image repeats, every other time reversed; only with normalised coordinates, else
    /// [`AddressMode::Clamp`].
    Mirror,
    /// The border colour.
    Border,
}

/// How texels become a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filter {
    /// The texel that contains the point.
    Point,
    /// The weighted mean of the two, four or eight texels around the point.
    Linear,
}

/// A surface object: a box of texels that kernels load from and store to by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surface {
    /// Where the texels are.
    pub image: Image,
    /// Bytes of a texel.
    pub texel_bytes: u32,
}

/// First handle that is given out: no address of a device, and nothing a program has by accident.
const FIRST: u64 = 0x7e78_0000_0000_0001;

/// The texture and surface objects of a device by their handles. A handle is never used twice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Textures {
    made: u64,
    items: BTreeMap<u64, Texture>,
    surfaces: BTreeMap<u64, Surface>,
}

impl Textures {
    /// Adds a texture object and returns its handle, which is never 0.
    pub fn insert(&mut self, texture: Texture) -> u64 {
        let handle = self.handle();
        self.items.insert(handle, texture);
        handle
    }

    /// Adds a surface object and returns its handle, which is never 0.
    pub fn insert_surface(&mut self, surface: Surface) -> u64 {
        let handle = self.handle();
        self.surfaces.insert(handle, surface);
        handle
    }

    fn handle(&mut self) -> u64 {
        self.made += 1;
        FIRST + self.made - 1
    }

    /// The surface object of a handle.
    pub fn surface(&self, handle: u64) -> Option<&Surface> {
        self.surfaces.get(&handle)
    }

    /// Removes a surface object; none when there was none. A later access through it is an error
    /// of the launch.
    pub fn remove_surface(&mut self, handle: u64) -> Option<Surface> {
        self.surfaces.remove(&handle)
    }

    /// The texture object of a handle.
    pub fn get(&self, handle: u64) -> Option<&Texture> {
        self.items.get(&handle)
    }

    /// Removes a texture object; none when there was none. A later fetch from it is an error of the
    /// launch.
    pub fn remove(&mut self, handle: u64) -> Option<Texture> {
        self.items.remove(&handle)
    }
}
