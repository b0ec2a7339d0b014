//! CUDA arrays: channel descriptions, allocation, and copies with an array at an end.

use std::ffi::{c_int, c_uint, c_void};

use driver::sys::{
    Api, CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY2D, CUarray, CUarray_format, CUstream, array_flag,
    array_format, memory_type,
};

use crate::context::{context, driver};
use crate::entry::entry;
use crate::error::{Error, check, out};
use crate::memory::Xyz;
use crate::stubs::missing;

/// `cudaChannelFormatDesc`: bits per component, and what they mean.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelDesc {
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    format: c_int,
}

/// `cudaChannelFormatKind…`
const SIGNED: c_int = 0;
const UNSIGNED: c_int = 1;
const FLOAT: c_int = 2;
const NONE: c_int = 3;

/// `cudaCreateChannelDesc` of the CUDA runtime API, which returns no error but the description.
#[unsafe(no_mangle)]
pub extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    format: c_int,
) -> ChannelDesc {
    ChannelDesc { x, y, z, w, format }
}

/// Formats with their kind and bits.
const FORMATS: [(CUarray_format, c_int, c_int); 8] = [
    (array_format::UNSIGNED_INT8, UNSIGNED, 8),
    (array_format::UNSIGNED_INT16, UNSIGNED, 16),
    (array_format::UNSIGNED_INT32, UNSIGNED, 32),
    (array_format::SIGNED_INT8, SIGNED, 8),
    (array_format::SIGNED_INT16, SIGNED, 16),
    (array_format::SIGNED_INT32, SIGNED, 32),
    (array_format::HALF, FLOAT, 16),
    (array_format::FLOAT, FLOAT, 32),
];

impl ChannelDesc {
    /// The driver's format and number of channels.
    pub(crate) fn to_driver(self) -> Result<(CUarray_format, c_uint), Error> {
        // Kinds beyond "none" are normalised, planar and compressed formats.
        if self.format > NONE {
            return Err(missing(
                "a channel format of compressed, planar or packed texels",
            ));
        }
        let bits = [self.x, self.y, self.z, self.w];
        let channels = bits.iter().take_while(|&&bits| bits != 0).count();
        let equal = bits
            .iter()
            .enumerate()
            .all(|(index, &bits)| bits == if index < channels { self.x } else { 0 });
        let row = FORMATS
            .iter()
            .find(|row| (row.1, row.2) == (self.format, self.x));
        match (row, channels) {
            (Some(row), 1 | 2 | 4) if equal => Ok((row.0, channels as c_uint)),
            _ => Err(Error::INVALID_CHANNEL_DESCRIPTOR),
        }
    }

    /// What the driver's format and number of channels are called here.
    pub(crate) fn from_driver(format: CUarray_format, channels: c_uint) -> Result<Self, Error> {
        let row = FORMATS.iter().find(|row| row.0 == format);
        let &(_, format, bits) = row.ok_or(Error::UNKNOWN)?;
        let of = |index| if index < channels { bits } else { 0 };
        Ok(cudaCreateChannelDesc(of(0), of(1), of(2), of(3), format))
    }
}

/// What is known of an array, and the bytes of a texel.
pub(crate) fn describe(
    api: &Api,
    array: CUarray,
) -> Result<(CUDA_ARRAY3D_DESCRIPTOR, usize), Error> {
    let mut found = CUDA_ARRAY3D_DESCRIPTOR::default();
    // SAFETY: `found` outlives the call; the driver finds out what is no array.
    check(unsafe { api.cuArray3DGetDescriptor(&mut found, array) })?;
    let row = FORMATS.iter().find(|row| row.0 == found.format);
    let bits = row.ok_or(Error::UNKNOWN)?.2 as usize;
    Ok((found, bits / 8 * found.num_channels as usize))
}

unsafe fn make(
    array: *mut CUarray,
    desc: *const ChannelDesc,
    extent: Xyz,
    flags: c_uint,
) -> Result<(), Error> {
    // SAFETY: the caller's pointers are valid for one value each.
    let (array, desc) = unsafe { (out(array)?, desc.as_ref().ok_or(Error::INVALID_VALUE)?) };
    let (format, num_channels) = desc.to_driver()?;
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        width: extent.x,
        height: extent.y,
        depth: extent.z,
        format,
        num_channels,
        flags,
    };
    // SAFETY: both outlive the call.
    check(unsafe { context()?.cuArray3DCreate(array, &descriptor) })
}

entry! {
    fn cudaMallocArray(
        array: *mut CUarray, desc: *const ChannelDesc, width: usize, height: usize, flags: c_uint
    ) {
        if flags & (array_flag::LAYERED | array_flag::CUBEMAP) != 0 {
            return Err(Error::INVALID_VALUE);
        }
        make(array, desc, Xyz { x: width, y: height, z: 0 }, flags)
    }

    fn cudaMalloc3DArray(array: *mut CUarray, desc: *const ChannelDesc, extent: Xyz, flags: c_uint) {
        make(array, desc, extent, flags)
    }

    fn cudaFreeArray(array: CUarray) {
        let api = context()?;
        if array.is_null() { Ok(()) } else { check(api.cuArrayDestroy(array)) }
    }

    fn cudaArrayGetInfo(
        desc: *mut ChannelDesc, extent: *mut Xyz, flags: *mut c_uint, array: CUarray
    ) {
        let (found, _) = describe(context()?, array)?;
        if let Some(desc) = desc.as_mut() {
            *desc = ChannelDesc::from_driver(found.format, found.num_channels)?;
        }
        if let Some(extent) = extent.as_mut() {
            *extent = Xyz { x: found.width, y: found.height, z: found.depth };
        }
        if let Some(flags) = flags.as_mut() {
            *flags = found.flags;
        }
        Ok(())
    }

    fn cudaGetChannelDesc(desc: *mut ChannelDesc, array: CUarray) {
        let (found, _) = describe(context()?, array)?;
        *out(desc)? = ChannelDesc::from_driver(found.format, found.num_channels)?;
        Ok(())
    }

    fn cudaDeviceGetTexture1DLinearMaxWidth(
        width: *mut usize, desc: *const ChannelDesc, of: c_int
    ) {
        let (format, channels) = desc.as_ref().ok_or(Error::INVALID_VALUE)?.to_driver()?;
        check(driver()?.cuDeviceGetTexture1DLinearMaxWidth(width, format, channels, of))
    }

    fn cudaMemcpy2DToArray(
        to: CUarray, x: usize, y: usize, from: *const c_void, pitch: usize,
        width: usize, height: usize, kind: c_int
    ) as cudaMemcpy2DToArray_ptds {
        check_kind(kind, TO_ARRAY)?;
        let copy = copy(in_array(to, x, y), in_memory(from, pitch, width)?, width, height);
        check(context()?.cuMemcpy2DUnaligned(&copy))
    }

    fn cudaMemcpy2DToArrayAsync(
        to: CUarray, x: usize, y: usize, from: *const c_void, pitch: usize,
        width: usize, height: usize, kind: c_int, stream: CUstream
    ) as cudaMemcpy2DToArrayAsync_ptsz {
        check_kind(kind, TO_ARRAY)?;
        let copy = copy(in_array(to, x, y), in_memory(from, pitch, width)?, width, height);
        check(context()?.cuMemcpy2DAsync(&copy, stream))
    }

    fn cudaMemcpy2DFromArray(
        to: *mut c_void, pitch: usize, from: CUarray, x: usize, y: usize,
        width: usize, height: usize, kind: c_int
    ) as cudaMemcpy2DFromArray_ptds {
        check_kind(kind, FROM_ARRAY)?;
        let copy = copy(in_memory(to, pitch, width)?, in_array(from, x, y), width, height);
        check(context()?.cuMemcpy2DUnaligned(&copy))
    }

    fn cudaMemcpy2DFromArrayAsync(
        to: *mut c_void, pitch: usize, from: CUarray, x: usize, y: usize,
        width: usize, height: usize, kind: c_int, stream: CUstream
    ) as cudaMemcpy2DFromArrayAsync_ptsz {
        check_kind(kind, FROM_ARRAY)?;
        let copy = copy(in_memory(to, pitch, width)?, in_array(from, x, y), width, height);
        check(context()?.cuMemcpy2DAsync(&copy, stream))
    }

    fn cudaMemcpy2DArrayToArray(
        to: CUarray, to_x: usize, to_y: usize, from: CUarray, from_x: usize, from_y: usize,
        width: usize, height: usize, kind: c_int
    ) as cudaMemcpy2DArrayToArray_ptds {
        check_kind(kind, BETWEEN_ARRAYS)?;
        let copy = copy(in_array(to, to_x, to_y), in_array(from, from_x, from_y), width, height);
        check(context()?.cuMemcpy2DUnaligned(&copy))
    }

    fn cudaMemcpyToArray(
        to: CUarray, x: usize, y: usize, from: *const c_void, bytes: usize, kind: c_int
    ) as cudaMemcpyToArray_ptds {
        check_kind(kind, TO_ARRAY)?;
        let api = context()?;
        for (end, start, width, height) in rows(api, to, x, y, bytes)? {
            let memory = in_memory(from.wrapping_byte_add(start), width, width)?;
            check(api.cuMemcpy2DUnaligned(&copy(end, memory, width, height)))?;
        }
        Ok(())
    }

    fn cudaMemcpyToArrayAsync(
        to: CUarray, x: usize, y: usize, from: *const c_void, bytes: usize, kind: c_int,
        stream: CUstream
    ) as cudaMemcpyToArrayAsync_ptsz {
        check_kind(kind, TO_ARRAY)?;
        let api = context()?;
        for (end, start, width, height) in rows(api, to, x, y, bytes)? {
            let memory = in_memory(from.wrapping_byte_add(start), width, width)?;
            check(api.cuMemcpy2DAsync(&copy(end, memory, width, height), stream))?;
        }
        Ok(())
    }

    fn cudaMemcpyFromArray(
        to: *mut c_void, from: CUarray, x: usize, y: usize, bytes: usize, kind: c_int
    ) as cudaMemcpyFromArray_ptds {
        check_kind(kind, FROM_ARRAY)?;
        let api = context()?;
        for (end, start, width, height) in rows(api, from, x, y, bytes)? {
            let memory = in_memory(to.wrapping_byte_add(start), width, width)?;
            check(api.cuMemcpy2DUnaligned(&copy(memory, end, width, height)))?;
        }
        Ok(())
    }

    fn cudaMemcpyFromArrayAsync(
        to: *mut c_void, from: CUarray, x: usize, y: usize, bytes: usize, kind: c_int,
        stream: CUstream
    ) as cudaMemcpyFromArrayAsync_ptsz {
        check_kind(kind, FROM_ARRAY)?;
        let api = context()?;
        for (end, start, width, height) in rows(api, from, x, y, bytes)? {
            let memory = in_memory(to.wrapping_byte_add(start), width, width)?;
            check(api.cuMemcpy2DAsync(&copy(memory, end, width, height), stream))?;
        }
        Ok(())
    }

    fn cudaMemcpyArrayToArray(
        to: CUarray, to_x: usize, to_y: usize, from: CUarray, from_x: usize, from_y: usize,
        bytes: usize, kind: c_int
    ) as cudaMemcpyArrayToArray_ptds {
        check_kind(kind, BETWEEN_ARRAYS)?;
        let api = context()?;
        let (to_start, from_start) = (offset(api, to, to_x, to_y)?, offset(api, from, from_x, from_y)?);
        check(api.cuMemcpyAtoA(to, to_start, from, from_start, bytes))
    }
}

/// The directions that a copy may be said to have, "by the pointers" (4) among them.
const TO_ARRAY: [c_int; 3] = [1, 3, 4];
const FROM_ARRAY: [c_int; 3] = [2, 3, 4];
const BETWEEN_ARRAYS: [c_int; 3] = [3, 3, 4];

fn check_kind(kind: c_int, allowed: [c_int; 3]) -> Result<(), Error> {
    match allowed.contains(&kind) {
        true => Ok(()),
        false => Err(Error::INVALID_MEMCPY_DIRECTION),
    }
}

/// One end of a two-dimensional copy.
#[derive(Clone, Copy, Debug)]
struct End {
    kind: c_int,
    address: u64,
    pitch: usize,
    array: CUarray,
    /// Bytes and rows in front of it.
    at: [usize; 2],
}

fn in_array(array: CUarray, x: usize, y: usize) -> End {
    End {
        kind: memory_type::ARRAY,
        address: 0,
        pitch: 0,
        array,
        at: [x, y],
    }
}

fn in_memory(pointer: *const c_void, pitch: usize, width: usize) -> Result<End, Error> {
    if width > pitch {
        return Err(Error::INVALID_PITCH_VALUE);
    }
    Ok(End {
        kind: memory_type::UNIFIED,
        address: pointer as u64,
        pitch,
        array: std::ptr::null_mut(),
        at: [0; 2],
    })
}

fn copy(to: End, from: End, width: usize, height: usize) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        src_x_in_bytes: from.at[0],
        src_y: from.at[1],
        src_memory_type: from.kind,
        src_device: from.address,
        src_array: from.array,
        src_pitch: from.pitch,
        dst_x_in_bytes: to.at[0],
        dst_y: to.at[1],
        dst_memory_type: to.kind,
        dst_device: to.address,
        dst_array: to.array,
        dst_pitch: to.pitch,
        width_in_bytes: width,
        height,
        ..CUDA_MEMCPY2D::default()
    }
}

/// The bytes of an array in front of a place.
fn offset(api: &Api, array: CUarray, x: usize, y: usize) -> Result<usize, Error> {
    let (found, texel) = describe(api, array)?;
    let row = found.width * texel;
    let start = y.checked_mul(row).and_then(|start| start.checked_add(x));
    start.ok_or(Error::INVALID_VALUE)
}

/// A run of bytes of an array as boxes: the rest of its first row, whole rows, the start of its last
/// row. Each comes with the bytes of the run in front of it, its width and its height.
fn rows(
    api: &Api,
    array: CUarray,
    x: usize,
    y: usize,
    bytes: usize,
) -> Result<Vec<(End, usize, usize, usize)>, Error> {
    let (found, texel) = describe(api, array)?;
    let row = found.width * texel;
    let first = row.checked_sub(x).ok_or(Error::INVALID_VALUE)?;
    let first = match x {
        0 => 0,
        _ => first.min(bytes),
    };
    let (whole, last) = ((bytes - first) / row, (bytes - first) % row);
    let below = y.saturating_add(usize::from(x > 0));
    let boxes = [
        (in_array(array, x, y), 0, first, 1),
        (in_array(array, 0, below), first, row, whole),
        (
            in_array(array, 0, below.saturating_add(whole)),
            first + whole * row,
            last,
            1,
        ),
    ];
    let there = |&(_, _, width, height): &(End, usize, usize, usize)| width > 0 && height > 0;
    Ok(boxes.into_iter().filter(there).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_descriptions_and_formats_name_each_other() {
        assert_eq!(size_of::<ChannelDesc>(), 20);
        for (format, kind, bits) in FORMATS {
            for channels in [1, 2, 4] {
                let of = |index| if index < channels { bits } else { 0 };
                let desc = cudaCreateChannelDesc(of(0), of(1), of(2), of(3), kind);
                assert_eq!(desc.to_driver(), Ok((format, channels)));
                assert_eq!(ChannelDesc::from_driver(format, channels), Ok(desc));
            }
        }
        for (x, y, z, w, kind) in [
            (8, 8, 8, 0, UNSIGNED),
            (8, 0, 8, 0, UNSIGNED),
            (8, 16, 0, 0, SIGNED),
            (8, 0, 0, 0, FLOAT),
            (64, 0, 0, 0, SIGNED),
            (0, 0, 0, 0, UNSIGNED),
            (32, 0, 0, 0, NONE),
        ] {
            let desc = cudaCreateChannelDesc(x, y, z, w, kind);
            assert_eq!(desc.to_driver(), Err(Error::INVALID_CHANNEL_DESCRIPTOR));
        }
        let compressed = cudaCreateChannelDesc(8, 8, 8, 8, 17);
        assert_eq!(compressed.to_driver(), Err(Error::NOT_SUPPORTED));
    }
}
