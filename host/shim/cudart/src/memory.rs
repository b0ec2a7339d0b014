//! Allocation, copies, fills, pointer attributes, symbols.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use driver::sys::{
    Api, CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUarray, CUdevice, CUdeviceptr, CUmemoryPool, CUstream,
    memory_type,
};

use crate::array;
use crate::context::{context, device, driver, is_cuda_12, primary};
use crate::entry::entry;
use crate::error::{Error, check, out};
use crate::registration::symbol;

/// `cudaPitchedPtr`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PitchedPtr {
    pub(crate) pointer: *mut c_void,
    pub(crate) pitch: usize,
    pub(crate) x_size: usize,
    pub(crate) y_size: usize,
}

/// `cudaPos` and `cudaExtent`: bytes or elements in x, rows in y, slices in z.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Xyz {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
}

/// `cudaMemcpy3DParms`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memcpy3D {
    pub(crate) from_array: CUarray,
    pub(crate) from_position: Xyz,
    pub(crate) from: PitchedPtr,
    pub(crate) to_array: CUarray,
    pub(crate) to_position: Xyz,
    pub(crate) to: PitchedPtr,
    pub(crate) extent: Xyz,
    pub(crate) kind: c_int,
}

/// `cudaPointerAttributes` as CUDA 12 knows it. CUDA 13 appended 64 reserved bytes, which are left
/// alone: a program built with CUDA 12 has other things there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: *mut c_void,
    host_pointer: *mut c_void,
}

pub(crate) fn at(pointer: *const c_void) -> CUdeviceptr {
    pointer as CUdeviceptr
}

entry! {
    fn cudaMalloc(pointer: *mut *mut c_void, bytes: usize) {
        let api = context()?;
        let pointer = out(pointer)?;
        let mut address = 0;
        if bytes > 0 {
            check(api.cuMemAlloc(&mut address, bytes))?;
        }
        *pointer = address as *mut c_void;
        Ok(())
    }

    fn cudaFree(pointer: *mut c_void) {
        let api = context()?;
        if pointer.is_null() { Ok(()) } else { check(api.cuMemFree(at(pointer))) }
    }

    fn cudaMallocAsync(pointer: *mut *mut c_void, bytes: usize, stream: CUstream) as cudaMallocAsync_ptsz {
        let pointer = out(pointer)?;
        let mut address = 0;
        check(context()?.cuMemAllocAsync(&mut address, bytes, stream))?;
        *pointer = address as *mut c_void;
        Ok(())
    }

    fn cudaMallocFromPoolAsync(
        pointer: *mut *mut c_void, bytes: usize, pool: CUmemoryPool, stream: CUstream
    ) as cudaMallocFromPoolAsync_ptsz {
        let pointer = out(pointer)?;
        let mut address = 0;
        check(context()?.cuMemAllocFromPoolAsync(&mut address, bytes, pool, stream))?;
        *pointer = address as *mut c_void;
        Ok(())
    }

    fn cudaFreeAsync(pointer: *mut c_void, stream: CUstream) as cudaFreeAsync_ptsz {
        check(context()?.cuMemFreeAsync(at(pointer), stream))
    }

    fn cudaMallocPitch(pointer: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) {
        let pointer = out(pointer)?;
        let api = context()?;
        let mut address = 0;
        check(api.cuMemAllocPitch(&mut address, pitch, width, height, 4))?;
        *pointer = address as *mut c_void;
        Ok(())
    }

    fn cudaMalloc3D(pointer: *mut PitchedPtr, extent: Xyz) {
        let pointer = out(pointer)?;
        let api = context()?;
        let (mut address, mut pitch) = (0, 0);
        check(api.cuMemAllocPitch(&mut address, &mut pitch, extent.x, extent.y * extent.z.max(1), 4))?;
        *pointer = PitchedPtr {
            pointer: address as *mut c_void,
            pitch,
            x_size: extent.x,
            y_size: extent.y,
        };
        Ok(())
    }

    fn cudaMallocManaged(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        let pointer = out(pointer)?;
        let api = context()?;
        let mut address = 0;
        check(api.cuMemAllocManaged(&mut address, bytes, flags))?;
        *pointer = address as *mut c_void;
        Ok(())
    }

    fn cudaMallocHost(pointer: *mut *mut c_void, bytes: usize) {
        check(context()?.cuMemAllocHost(pointer, bytes))
    }

    fn cudaHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) {
        check(context()?.cuMemHostAlloc(pointer, bytes, flags))
    }

    fn cudaFreeHost(pointer: *mut c_void) {
        let api = context()?;
        if pointer.is_null() { Ok(()) } else { check(api.cuMemFreeHost(pointer)) }
    }

    fn cudaHostRegister(pointer: *mut c_void, bytes: usize, flags: c_uint) {
        check(context()?.cuMemHostRegister(pointer, bytes, flags))
    }

    fn cudaHostUnregister(pointer: *mut c_void) {
        check(context()?.cuMemHostUnregister(pointer))
    }

    fn cudaHostGetDevicePointer(result: *mut *mut c_void, host: *mut c_void, flags: c_uint) {
        let result = out(result)?;
        let mut address = 0;
        check(context()?.cuMemHostGetDevicePointer(&mut address, host, flags))?;
        *result = address as *mut c_void;
        Ok(())
    }

    fn cudaHostGetFlags(flags: *mut c_uint, host: *mut c_void) {
        check(context()?.cuMemHostGetFlags(flags, host))
    }

    fn cudaMemGetInfo(free: *mut usize, total: *mut usize) {
        check(context()?.cuMemGetInfo(free, total))
    }

    fn cudaMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) as cudaMemcpy_ptds {
        copy(to, from, bytes, kind)
    }

    fn cudaMemcpyAsync(
        to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int, stream: CUstream
    ) as cudaMemcpyAsync_ptsz {
        copy_async(to, from, bytes, kind, stream)
    }

    fn cudaMemcpyPeer(
        to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize
    ) {
        let api = context()?;
        let [there, here] = [to_device, from_device].map(|of| primary(api, of));
        check(api.cuMemcpyPeer(to as u64, there?, from as u64, here?, bytes))
    }

    fn cudaMemcpyPeerAsync(
        to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize, stream: CUstream
    ) {
        let api = context()?;
        let [there, here] = [to_device, from_device].map(|of| primary(api, of));
        check(api.cuMemcpyPeerAsync(to as u64, there?, from as u64, here?, bytes, stream))
    }

    fn cudaMemcpy2D(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize,
        width: usize, height: usize, kind: c_int
    ) as cudaMemcpy2D_ptds {
        check(context()?.cuMemcpy2DUnaligned(&plane(to, to_pitch, from, from_pitch, width, height, kind)?))
    }

    fn cudaMemcpy2DAsync(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize,
        width: usize, height: usize, kind: c_int, stream: CUstream
    ) as cudaMemcpy2DAsync_ptsz {
        check(context()?.cuMemcpy2DAsync(&plane(to, to_pitch, from, from_pitch, width, height, kind)?, stream))
    }

    fn cudaMemcpy3D(parameters: *const Memcpy3D) as cudaMemcpy3D_ptds {
        let api = context()?;
        check(api.cuMemcpy3D(&volume(api, parameters.as_ref())?))
    }

    fn cudaMemcpy3DAsync(parameters: *const Memcpy3D, stream: CUstream) as cudaMemcpy3DAsync_ptsz {
        let api = context()?;
        check(api.cuMemcpy3DAsync(&volume(api, parameters.as_ref())?, stream))
    }

    fn cudaMemset(to: *mut c_void, value: c_int, bytes: usize) as cudaMemset_ptds {
        let api = context()?;
        if bytes == 0 { Ok(()) } else { check(api.cuMemsetD8(at(to), value as u8, bytes)) }
    }

    fn cudaMemsetAsync(to: *mut c_void, value: c_int, bytes: usize, stream: CUstream) as cudaMemsetAsync_ptsz {
        let api = context()?;
        if bytes == 0 { Ok(()) } else { check(api.cuMemsetD8Async(at(to), value as u8, bytes, stream)) }
    }

    fn cudaMemset2D(
        to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize
    ) as cudaMemset2D_ptds {
        check(context()?.cuMemsetD2D8(at(to), pitch, value as u8, width, height))
    }

    fn cudaMemset2DAsync(
        to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: CUstream
    ) as cudaMemset2DAsync_ptsz {
        check(context()?.cuMemsetD2D8Async(at(to), pitch, value as u8, width, height, stream))
    }

    fn cudaMemset3D(to: PitchedPtr, value: c_int, extent: Xyz) as cudaMemset3D_ptds {
        fill_volume(&to, value, extent, None)
    }

    fn cudaMemset3DAsync(
        to: PitchedPtr, value: c_int, extent: Xyz, stream: CUstream
    ) as cudaMemset3DAsync_ptsz {
        fill_volume(&to, value, extent, Some(stream))
    }

    fn cudaMemcpyToSymbol(
        to: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int
    ) as cudaMemcpyToSymbol_ptds {
        copy(within(to, offset, bytes)?, from, bytes, kind)
    }

    fn cudaMemcpyToSymbolAsync(
        to: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int, stream: CUstream
    ) as cudaMemcpyToSymbolAsync_ptsz {
        copy_async(within(to, offset, bytes)?, from, bytes, kind, stream)
    }

    fn cudaMemcpyFromSymbol(
        to: *mut c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int
    ) as cudaMemcpyFromSymbol_ptds {
        copy(to, within(from, offset, bytes)?, bytes, kind)
    }

    fn cudaMemcpyFromSymbolAsync(
        to: *mut c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int, stream: CUstream
    ) as cudaMemcpyFromSymbolAsync_ptsz {
        copy_async(to, within(from, offset, bytes)?, bytes, kind, stream)
    }

    fn cudaGetSymbolAddress(address: *mut *mut c_void, host: *const c_void) {
        *out(address)? = symbol(host)?.0 as *mut c_void;
        Ok(())
    }

    fn cudaGetSymbolSize(bytes: *mut usize, host: *const c_void) {
        *out(bytes)? = symbol(host)?.1;
        Ok(())
    }

    fn cudaPointerGetAttributes(attributes: *mut PointerAttributes, pointer: *const c_void) {
        let attributes = out(attributes)?;
        const MEMORY_TYPE: c_int = 2;
        const DEVICE_POINTER: c_int = 3;
        const HOST_POINTER: c_int = 4;
        const IS_MANAGED: c_int = 8;
        let api = context()?;
        let mut found = PointerAttributes {
            kind: 0,
            device: -2,
            device_pointer: null_mut(),
            host_pointer: pointer.cast_mut(),
        };
        let (mut kind, mut managed): (c_uint, c_uint) = (0, 0);
        if api.cuPointerGetAttribute((&raw mut kind).cast(), MEMORY_TYPE, at(pointer)).0 == 0 {
            let ask = |attribute, into: *mut c_void| {
                // A memory without a host or device side has none of the two pointers.
                api.cuPointerGetAttribute(into, attribute, at(pointer)).0 == 0
            };
            ask(IS_MANAGED, (&raw mut managed).cast());
            found.kind = if managed != 0 { 3 } else { kind as c_int };
            found.device = device();
            found.host_pointer = null_mut();
            ask(DEVICE_POINTER, (&raw mut found.device_pointer).cast());
            ask(HOST_POINTER, (&raw mut found.host_pointer).cast());
        }
        *attributes = found;
        Ok(())
    }

    fn cudaMemAdvise(pointer: *const c_void, bytes: usize, advice: c_int) {
        // The last argument, a device in CUDA 12 and a location in 13, is not read.
        check(context()?.cuMemAdvise_v1(at(pointer), bytes, advice, 0))
    }

    fn cudaMemAdvise_v2(pointer: *const c_void, bytes: usize, advice: c_int) {
        check(context()?.cuMemAdvise_v1(at(pointer), bytes, advice, 0))
    }

    fn cudaMemPrefetchAsync(
        pointer: *const c_void, bytes: usize, _place: u64, third: usize, fourth: CUstream
    ) as cudaMemPrefetchAsync_ptsz {
        // Flags stand in front of the stream since CUDA 13.
        let stream = if is_cuda_12() { third as CUstream } else { fourth };
        check(context()?.cuMemPrefetchAsync_v1(at(pointer), bytes, 0, stream))
    }

    fn cudaMemPrefetchAsync_v2(
        pointer: *const c_void, bytes: usize, _place: u64, _flags: c_uint, stream: CUstream
    ) as cudaMemPrefetchAsync_v2_ptsz {
        check(context()?.cuMemPrefetchAsync_v1(at(pointer), bytes, 0, stream))
    }

    fn cudaDeviceGetDefaultMemPool(pool: *mut CUmemoryPool, of: CUdevice) {
        check(driver()?.cuDeviceGetDefaultMemPool(pool, of))
    }

    fn cudaDeviceGetMemPool(pool: *mut CUmemoryPool, of: CUdevice) {
        check(driver()?.cuDeviceGetMemPool(pool, of))
    }

    fn cudaDeviceSetMemPool(of: CUdevice, pool: CUmemoryPool) {
        check(driver()?.cuDeviceSetMemPool(of, pool))
    }

    fn cudaMemPoolDestroy(pool: CUmemoryPool) {
        check(context()?.cuMemPoolDestroy(pool))
    }

    fn cudaMemPoolTrimTo(pool: CUmemoryPool, bytes: usize) {
        check(context()?.cuMemPoolTrimTo(pool, bytes))
    }

    fn cudaMemPoolSetAttribute(pool: CUmemoryPool, attribute: c_int, value: *mut c_void) {
        check(context()?.cuMemPoolSetAttribute(pool, attribute, value))
    }

    fn cudaMemPoolGetAttribute(pool: CUmemoryPool, attribute: c_int, value: *mut c_void) {
        check(context()?.cuMemPoolGetAttribute(pool, attribute, value))
    }
}

unsafe fn copy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
) -> Result<(), Error> {
    let api = context()?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's pointers are valid for so many bytes in that direction.
    check(unsafe {
        match kind {
            0 | 4 => api.cuMemcpy(at(to), at(from), bytes),
            1 => api.cuMemcpyHtoD(at(to), from, bytes),
            2 => api.cuMemcpyDtoH(to, at(from), bytes),
            3 => api.cuMemcpyDtoD(at(to), at(from), bytes),
            _ => return Err(Error::INVALID_MEMCPY_DIRECTION),
        }
    })
}

unsafe fn copy_async(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
    stream: CUstream,
) -> Result<(), Error> {
    let api = context()?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's pointers are valid for so many bytes until the stream is done.
    check(unsafe {
        match kind {
            0 | 4 => api.cuMemcpyAsync(at(to), at(from), bytes, stream),
            1 => api.cuMemcpyHtoDAsync(at(to), from, bytes, stream),
            2 => api.cuMemcpyDtoHAsync(to, at(from), bytes, stream),
            3 => api.cuMemcpyDtoDAsync(at(to), at(from), bytes, stream),
            _ => return Err(Error::INVALID_MEMCPY_DIRECTION),
        }
    })
}

/// The part of a variable that a copy touches.
pub(crate) fn within(
    host: *const c_void,
    offset: usize,
    bytes: usize,
) -> Result<*mut c_void, Error> {
    let (address, size) = symbol(host)?;
    let end = offset.checked_add(bytes).ok_or(Error::INVALID_VALUE)?;
    if end > size {
        return Err(Error::INVALID_VALUE);
    }
    Ok((address + offset as u64) as *mut c_void)
}

fn plane(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Result<CUDA_MEMCPY2D, Error> {
    if !(0..=4).contains(&kind) {
        return Err(Error::INVALID_MEMCPY_DIRECTION);
    }
    if width > to_pitch || width > from_pitch {
        return Err(Error::INVALID_PITCH_VALUE);
    }
    Ok(CUDA_MEMCPY2D {
        src_memory_type: memory_type::UNIFIED,
        src_device: at(from),
        src_pitch: from_pitch,
        dst_memory_type: memory_type::UNIFIED,
        dst_device: at(to),
        dst_pitch: to_pitch,
        width_in_bytes: width,
        height,
        ..CUDA_MEMCPY2D::default()
    })
}

/// Where a position counts texels, and with it the extent, there is an array at that end.
pub(crate) fn volume(api: &Api, parameters: Option<&Memcpy3D>) -> Result<CUDA_MEMCPY3D, Error> {
    let p = parameters.ok_or(Error::INVALID_VALUE)?;
    if !(0..=4).contains(&p.kind) {
        return Err(Error::INVALID_MEMCPY_DIRECTION);
    }
    let texel = |array: CUarray| match array.is_null() {
        true => Ok(None),
        false => array::describe(api, array).map(|(_, bytes)| Some(bytes)),
    };
    let (from_texel, to_texel) = (texel(p.from_array)?, texel(p.to_array)?);
    if from_texel.is_some_and(|from| to_texel.is_some_and(|to| from != to)) {
        return Err(Error::INVALID_VALUE);
    }
    let kind = |texel: Option<usize>| match texel {
        Some(_) => memory_type::ARRAY,
        None => memory_type::UNIFIED,
    };
    let bytes = |count: usize, texel: Option<usize>| {
        let bytes = count.checked_mul(texel.unwrap_or(1));
        bytes.ok_or(Error::INVALID_VALUE)
    };
    Ok(CUDA_MEMCPY3D {
        src_x_in_bytes: bytes(p.from_position.x, from_texel)?,
        src_y: p.from_position.y,
        src_z: p.from_position.z,
        src_memory_type: kind(from_texel),
        src_device: at(p.from.pointer),
        src_array: p.from_array,
        src_pitch: p.from.pitch,
        src_height: p.from.y_size,
        dst_x_in_bytes: bytes(p.to_position.x, to_texel)?,
        dst_y: p.to_position.y,
        dst_z: p.to_position.z,
        dst_memory_type: kind(to_texel),
        dst_device: at(p.to.pointer),
        dst_array: p.to_array,
        dst_pitch: p.to.pitch,
        dst_height: p.to.y_size,
        width_in_bytes: bytes(p.extent.x, from_texel.or(to_texel))?,
        height: p.extent.y,
        depth: p.extent.z,
        ..CUDA_MEMCPY3D::default()
    })
}

fn fill_volume(
    to: &PitchedPtr,
    value: c_int,
    extent: Xyz,
    stream: Option<CUstream>,
) -> Result<(), Error> {
    let api = context()?;
    for slice in 0..extent.z {
        let start = at(to.pointer) + (slice * to.pitch * to.y_size) as u64;
        // SAFETY: a device address, which the driver checks.
        check(unsafe {
            let (pitch, value) = (to.pitch, value as u8);
            match stream {
                Some(stream) => {
                    api.cuMemsetD2D8Async(start, pitch, value, extent.x, extent.y, stream)
                }
                None => api.cuMemsetD2D8(start, pitch, value, extent.x, extent.y),
            }
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program built with CUDA 12 gives room for 24 bytes.
    #[test]
    fn pointer_attributes_fit_both_versions() {
        assert_eq!(size_of::<PointerAttributes>(), 24);
    }
}
