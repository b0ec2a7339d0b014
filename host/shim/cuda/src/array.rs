//! CUDA arrays: boxes of texels that a program reaches by copies and textures only.
//!
//! Source: `cuArray3DCreate` and the table of texture limits in the CUDA C++ Programming Guide.
//! Departure: rows lie without gaps, so that a run of bytes may go over the end of a row.

use std::ffi::c_uint;

use driver::sys::device_attribute as a;
use driver::sys::{
    CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR, CUarray, CUarray_format, CUarray_st, CUdevice,
    CUmipmappedArray, CUmipmappedArray_st, CUresult, array_flag, array_format,
};
use simt::texture::{ChannelFormat, Image};

use crate::Answer;
use crate::device::{attribute, check};
use crate::missing::missing;
use crate::pointer::Ptr;
use crate::state::{State, with_context};
use crate::table::set;

/// An array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    pub(crate) context: u64,
    pub(crate) descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    pub(crate) texel: Texel,
    pub(crate) image: Image,
}

/// The type of a texel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texel {
    pub(crate) format: ChannelFormat,
    pub(crate) channels: u8,
}

impl Texel {
    /// A texel as C describes it.
    pub(crate) fn new(format: CUarray_format, channels: c_uint) -> Result<Texel, CUresult> {
        let format = match format {
            array_format::UNSIGNED_INT8 => ChannelFormat::U8,
            array_format::UNSIGNED_INT16 => ChannelFormat::U16,
            array_format::UNSIGNED_INT32 => ChannelFormat::U32,
            array_format::SIGNED_INT8 => ChannelFormat::S8,
            array_format::SIGNED_INT16 => ChannelFormat::S16,
            array_format::SIGNED_INT32 => ChannelFormat::S32,
            array_format::HALF => ChannelFormat::F16,
            array_format::FLOAT => ChannelFormat::F32,
            // From 0x50 on: planes, fixed normalised formats, block compression.
            0x50..=0xff => return Err(missing("arrays of compressed, planar or packed formats")),
            _ => return Err(CUresult::INVALID_VALUE),
        };
        match channels {
            1 | 2 | 4 => Ok(Texel {
                format,
                channels: channels as u8,
            }),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.format.bytes()) * u64::from(self.channels)
    }
}

/// The largest extents of an array, 0 where a dimension must not be there.
fn limits(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> [usize; 3] {
    let layered = descriptor.flags & array_flag::LAYERED != 0;
    if descriptor.flags & array_flag::CUBEMAP != 0 {
        let (width, faces) = match layered {
            false => (a::MAXIMUM_TEXTURECUBEMAP_WIDTH, 6),
            true => (
                a::MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
                attribute(a::MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS) as usize,
            ),
        };
        let width = attribute(width) as usize;
        return [width, width, faces];
    }
    let limits = match (descriptor.height, descriptor.depth, layered) {
        (0, 0, false) => [a::MAXIMUM_TEXTURE1D_WIDTH, 0, 0],
        (_, 0, false) => [a::MAXIMUM_TEXTURE2D_WIDTH, a::MAXIMUM_TEXTURE2D_HEIGHT, 0],
        (_, _, false) => [
            a::MAXIMUM_TEXTURE3D_WIDTH,
            a::MAXIMUM_TEXTURE3D_HEIGHT,
            a::MAXIMUM_TEXTURE3D_DEPTH,
        ],
        (0, _, true) => [
            a::MAXIMUM_TEXTURE1D_LAYERED_WIDTH,
            0,
            a::MAXIMUM_TEXTURE1D_LAYERED_LAYERS,
        ],
        (_, _, true) => [
            a::MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
            a::MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
            a::MAXIMUM_TEXTURE2D_LAYERED_LAYERS,
        ],
    };
    limits.map(|id| attribute(id) as usize)
}

impl State {
    fn make_array(
        &mut self,
        context: u64,
        descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    ) -> Result<u64, CUresult> {
        let bad = CUresult::INVALID_VALUE;
        let known = array_flag::LAYERED
            | array_flag::CUBEMAP
            | array_flag::SURFACE_LDST
            | array_flag::TEXTURE_GATHER;
        if descriptor.flags & !known != 0 {
            return Err(missing("arrays with these flags"));
        }
        let texel = Texel::new(descriptor.format, descriptor.num_channels)?;
        let sizes = [descriptor.width, descriptor.height, descriptor.depth];
        let fits = sizes
            .iter()
            .zip(limits(&descriptor))
            .all(|(&size, limit)| size <= limit);
        let layered = descriptor.flags & array_flag::LAYERED != 0;
        // Three dimensions are all there or the last ones are not; layers must be.
        let gap = descriptor.height == 0 && descriptor.depth != 0 && !layered;
        // Six faces each, and all of one size.
        let cube = descriptor.flags & array_flag::CUBEMAP != 0;
        let whole = sizes[0] == sizes[1] && sizes[2] != 0 && sizes[2].is_multiple_of(6);
        if !fits || sizes[0] == 0 || gap || (layered && sizes[2] == 0) || (cube && !whole) {
            return Err(bad);
        }
        // The limits are well below 2^32, and so are the sizes.
        let extent = sizes.map(|size| size.max(1) as u32);
        let pitch = u64::from(extent[0]) * texel.bytes();
        let slice = pitch * u64::from(extent[1]);
        let bytes = slice.checked_mul(extent[2].into()).ok_or(bad)?;
        let made = self.engine.memory_mut().alloc(bytes);
        let address = made.map_err(|_| CUresult::OUT_OF_MEMORY)?;
        self.engine.allocated(address, bytes, "cuArrayCreate");
        let image = Image {
            address,
            extent,
            pitch,
            slice,
        };
        Ok(self.arrays.insert(Array {
            context,
            descriptor,
            texel,
            image,
        }))
    }

    /// Takes the memory of an array back that is in no table any more.
    pub(crate) fn release_array(&mut self, array: &Array) -> Answer {
        let address = array.image.address;
        self.engine.freed(address);
        let freed = self.engine.memory_mut().free(address);
        freed.map_err(|_| CUresult::INVALID_VALUE)
    }
}

impl Array {
    /// Device address of a box of an array: `at` and `size` are bytes in x, rows and slices.
    pub(crate) fn address_of(&self, at: [u64; 3], size: [u64; 3]) -> Result<u64, CUresult> {
        let [_, height, depth] = self.image.extent.map(u64::from);
        let room = [self.image.pitch, height, depth];
        let inside = |axis: usize| {
            let end = at[axis].checked_add(size[axis]);
            end.is_some_and(|end| end <= room[axis])
        };
        match (0..3).all(inside) {
            true => Ok(self.image.address
                + at[0]
                + at[1] * self.image.pitch
                + at[2] * self.image.slice),
            false => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Device address of a run of bytes that starts so many bytes behind the first texel.
    pub(crate) fn run(&self, offset: u64, bytes: u64) -> Result<u64, CUresult> {
        let all = self.image.slice * u64::from(self.image.extent[2]);
        match offset.checked_add(bytes) {
            Some(end) if end <= all => Ok(self.image.address + offset),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }
}

fn create(out: Ptr<CUarray>, descriptor: CUDA_ARRAY3D_DESCRIPTOR) -> Answer {
    if out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    let made = with_context(|state, context| state.make_array(context, descriptor))?;
    set(out, made)
}

pub(crate) fn cuArray3DCreate(
    out: Ptr<CUarray>,
    descriptor: Ptr<CUDA_ARRAY3D_DESCRIPTOR>,
) -> Answer {
    create(out, descriptor.get()?)
}

pub(crate) fn cuArrayCreate(out: Ptr<CUarray>, descriptor: Ptr<CUDA_ARRAY_DESCRIPTOR>) -> Answer {
    let plain = descriptor.get()?;
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        width: plain.width,
        height: plain.height,
        format: plain.format,
        num_channels: plain.num_channels,
        ..CUDA_ARRAY3D_DESCRIPTOR::default()
    };
    create(out, descriptor)
}

fn descriptor(array: Ptr<CUarray_st>) -> Result<CUDA_ARRAY3D_DESCRIPTOR, CUresult> {
    with_context(|state, _| Ok(state.arrays.get(array.address())?.descriptor))
}

pub(crate) fn cuArray3DGetDescriptor(
    out: Ptr<CUDA_ARRAY3D_DESCRIPTOR>,
    array: Ptr<CUarray_st>,
) -> Answer {
    out.set(descriptor(array)?)
}

pub(crate) fn cuArrayGetDescriptor(
    out: Ptr<CUDA_ARRAY_DESCRIPTOR>,
    array: Ptr<CUarray_st>,
) -> Answer {
    let found = descriptor(array)?;
    out.set(CUDA_ARRAY_DESCRIPTOR {
        width: found.width,
        height: found.height,
        format: found.format,
        num_channels: found.num_channels,
    })
}

pub(crate) fn cuArrayDestroy(array: Ptr<CUarray_st>) -> Answer {
    with_context(|state, _| {
        let gone = state.arrays.remove(array.address())?;
        state.close_textures(array.address());
        state.release_array(&gone)
    })
}

pub(crate) fn cuMipmappedArrayCreate(
    _out: Ptr<CUmipmappedArray>,
    _descriptor: Ptr<CUDA_ARRAY3D_DESCRIPTOR>,
    _levels: c_uint,
) -> Answer {
    Err(missing("mipmapped arrays"))
}

pub(crate) fn cuMipmappedArrayGetLevel(
    _out: Ptr<CUarray>,
    _array: Ptr<CUmipmappedArray_st>,
    _level: c_uint,
) -> Answer {
    Err(missing("mipmapped arrays"))
}

pub(crate) fn cuMipmappedArrayDestroy(_array: Ptr<CUmipmappedArray_st>) -> Answer {
    Err(missing("mipmapped arrays"))
}

pub(crate) fn cuDeviceGetTexture1DLinearMaxWidth(
    width: Ptr<usize>,
    format: CUarray_format,
    channels: c_uint,
    dev: CUdevice,
) -> Answer {
    check(dev)?;
    Texel::new(format, channels)?;
    width.set(attribute(a::MAXIMUM_TEXTURE1D_LINEAR_WIDTH) as usize)
}
