//! Copies as a driver describes them: in one piece, between peers, and back from such a description.

use std::ffi::{c_int, c_void};

use driver::sys::{Api, CUDA_MEMCPY3D, CUarray, CUmemorytype, CUstream, memory_type};

use crate::array;
use crate::context::context;
use crate::entry::entry;
use crate::error::{Error, check};
use crate::memory::{Memcpy3D, PitchedPtr, Xyz, at, volume};

/// `cudaMemcpy3DPeerParms`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memcpy3DPeer {
    from_array: CUarray,
    from_position: Xyz,
    from: PitchedPtr,
    from_device: c_int,
    to_array: CUarray,
    to_position: Xyz,
    to: PitchedPtr,
    to_device: c_int,
    extent: Xyz,
}

/// There is one device, so a copy between peers is one on it.
fn between(api: &Api, given: Option<&Memcpy3DPeer>) -> Result<CUDA_MEMCPY3D, Error> {
    let p = given.ok_or(Error::INVALID_VALUE)?;
    if p.from_device != 0 || p.to_device != 0 {
        return Err(Error::INVALID_DEVICE);
    }
    let plain = Memcpy3D {
        from_array: p.from_array,
        from_position: p.from_position,
        from: p.from,
        to_array: p.to_array,
        to_position: p.to_position,
        to: p.to,
        extent: p.extent,
        kind: 4,
    };
    volume(api, Some(&plain))
}

entry! {
    fn cudaMemcpy3DPeer(parameters: *const Memcpy3DPeer) as cudaMemcpy3DPeer_ptds {
        let api = context()?;
        check(api.cuMemcpy3D(&between(api, parameters.as_ref())?))
    }

    fn cudaMemcpy3DPeerAsync(
        parameters: *const Memcpy3DPeer, stream: CUstream
    ) as cudaMemcpy3DPeerAsync_ptsz {
        let api = context()?;
        check(api.cuMemcpy3DAsync(&between(api, parameters.as_ref())?, stream))
    }
}

/// A copy in one piece.
pub(crate) fn line(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: c_int,
) -> Result<CUDA_MEMCPY3D, Error> {
    if !(0..=4).contains(&kind) {
        return Err(Error::INVALID_MEMCPY_DIRECTION);
    }
    Ok(CUDA_MEMCPY3D {
        src_memory_type: memory_type::UNIFIED,
        src_device: at(from),
        src_pitch: bytes,
        src_height: 1,
        dst_memory_type: memory_type::UNIFIED,
        dst_device: at(to),
        dst_pitch: bytes,
        dst_height: 1,
        width_in_bytes: bytes,
        height: 1,
        depth: 1,
        ..CUDA_MEMCPY3D::default()
    })
}

/// As [`volume`], back. The direction is what the driver knows of it, or "by the pointers".
pub(crate) fn volume_back(api: &Api, copy: &CUDA_MEMCPY3D) -> Result<Memcpy3D, Error> {
    let texel = |kind: CUmemorytype, array: CUarray| match kind {
        memory_type::ARRAY => array::describe(api, array).map(|(_, bytes)| Some(bytes.max(1))),
        _ => Ok(None),
    };
    let from = texel(copy.src_memory_type, copy.src_array)?;
    let to = texel(copy.dst_memory_type, copy.dst_array)?;
    let pointer = |kind, host: *const c_void, device: u64| match kind {
        memory_type::HOST => host.cast_mut(),
        memory_type::ARRAY => std::ptr::null_mut(),
        _ => device as *mut c_void,
    };
    let pitched = |pointer: *mut c_void, pitch, rows| PitchedPtr {
        pointer,
        pitch,
        x_size: copy.width_in_bytes,
        y_size: rows,
    };
    let on_host = |kind| match kind {
        memory_type::HOST => Some(true),
        memory_type::DEVICE | memory_type::ARRAY => Some(false),
        _ => None,
    };
    Ok(Memcpy3D {
        from_array: copy.src_array,
        from_position: Xyz {
            x: copy.src_x_in_bytes / from.unwrap_or(1),
            y: copy.src_y,
            z: copy.src_z,
        },
        from: pitched(
            pointer(copy.src_memory_type, copy.src_host, copy.src_device),
            copy.src_pitch,
            copy.src_height,
        ),
        to_array: copy.dst_array,
        to_position: Xyz {
            x: copy.dst_x_in_bytes / to.unwrap_or(1),
            y: copy.dst_y,
            z: copy.dst_z,
        },
        to: pitched(
            pointer(copy.dst_memory_type, copy.dst_host, copy.dst_device),
            copy.dst_pitch,
            copy.dst_height,
        ),
        extent: Xyz {
            x: copy.width_in_bytes / from.or(to).unwrap_or(1),
            y: copy.height,
            z: copy.depth,
        },
        kind: match (on_host(copy.src_memory_type), on_host(copy.dst_memory_type)) {
            (Some(true), Some(true)) => 0,
            (Some(true), Some(false)) => 1,
            (Some(false), Some(true)) => 2,
            (Some(false), Some(false)) => 3,
            _ => 4,
        },
    })
}
