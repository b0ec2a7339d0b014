//! Texture objects and surface objects.
//!
//! `cudaResourceDesc` grew in CUDA 13: its union got 128 bytes and flags behind it, where CUDA 12 has
//! a union of 56 bytes and nothing behind. What both have is read and written, and nothing else.

use std::ffi::{c_int, c_uint, c_void};

use driver::sys::{
    CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUsurfObject, CUtexObject,
    resource_type, texture_flag,
};

use crate::array::ChannelDesc;
use crate::context::context;
use crate::entry::entry;
use crate::error::{Error, check, out};

/// `cudaResourceDesc` as CUDA 12 knows it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ResourceDesc {
    kind: c_int,
    res: Resource,
}

/// The union in it; `kind` says which one it is. An array or mipmapped array is a handle.
#[repr(C)]
#[derive(Clone, Copy)]
union Resource {
    array: *mut c_void,
    linear: Linear,
    pitched: Pitched,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Linear {
    pointer: *mut c_void,
    desc: ChannelDesc,
    bytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Pitched {
    pointer: *mut c_void,
    desc: ChannelDesc,
    /// Texels.
    width: usize,
    height: usize,
    /// Bytes.
    pitch: usize,
}

/// `cudaTextureDesc`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TextureDesc {
    address_mode: [c_int; 3],
    filter_mode: c_int,
    read_mode: c_int,
    srgb: c_int,
    border_color: [f32; 4],
    normalized_coords: c_int,
    max_anisotropy: c_uint,
    mipmap_filter_mode: c_int,
    mipmap_level_bias: f32,
    min_mipmap_level_clamp: f32,
    max_mipmap_level_clamp: f32,
    disable_trilinear_optimization: c_int,
    seamless_cubemap: c_int,
}

/// `cudaReadModeElementType` and `cudaReadModeNormalizedFloat`
const ELEMENT_TYPE: c_int = 0;
const NORMALIZED_FLOAT: c_int = 1;

/// The driver's description of a resource.
///
/// # Safety
/// What `kind` says is there in `from`.
unsafe fn resource(from: &ResourceDesc) -> Result<CUDA_RESOURCE_DESC, Error> {
    let mut to = CUDA_RESOURCE_DESC {
        kind: from.kind,
        ..CUDA_RESOURCE_DESC::default()
    };
    let texels = |desc: ChannelDesc| {
        let (format, channels) = desc.to_driver()?;
        Ok(format as u64 | u64::from(channels) << 32)
    };
    // SAFETY: the caller's condition.
    unsafe {
        match from.kind {
            resource_type::ARRAY | resource_type::MIPMAPPED_ARRAY => {
                to.res[0] = from.res.array as u64;
            }
            resource_type::LINEAR => {
                let linear = from.res.linear;
                to.res[0] = linear.pointer as u64;
                to.res[1] = texels(linear.desc)?;
                to.res[2] = linear.bytes as u64;
            }
            resource_type::PITCH2D => {
                let pitched = from.res.pitched;
                to.res[0] = pitched.pointer as u64;
                to.res[1] = texels(pitched.desc)?;
                to.res[2] = pitched.width as u64;
                to.res[3] = pitched.height as u64;
                to.res[4] = pitched.pitch as u64;
            }
            _ => return Err(Error::INVALID_VALUE),
        }
    }
    Ok(to)
}

/// As [`resource`], back.
fn resource_back(from: &CUDA_RESOURCE_DESC) -> Result<ResourceDesc, Error> {
    let [start, texel, first, second, third, ..] = from.res;
    let pointer = start as *mut c_void;
    let desc = || ChannelDesc::from_driver(texel as u32 as c_int, (texel >> 32) as c_uint);
    let res = match from.kind {
        resource_type::LINEAR => Resource {
            linear: Linear {
                pointer,
                desc: desc()?,
                bytes: first as usize,
            },
        },
        resource_type::PITCH2D => Resource {
            pitched: Pitched {
                pointer,
                desc: desc()?,
                width: first as usize,
                height: second as usize,
                pitch: third as usize,
            },
        },
        _ => Resource { array: pointer },
    };
    Ok(ResourceDesc {
        kind: from.kind,
        res,
    })
}

/// The flags of a driver's description, and which of ours are not 0 for them.
fn flags(of: &TextureDesc) -> [(u32, bool); 5] {
    [
        (texture_flag::READ_AS_INTEGER, of.read_mode == ELEMENT_TYPE),
        (
            texture_flag::NORMALIZED_COORDINATES,
            of.normalized_coords != 0,
        ),
        (texture_flag::SRGB, of.srgb != 0),
        (
            texture_flag::DISABLE_TRILINEAR_OPTIMIZATION,
            of.disable_trilinear_optimization != 0,
        ),
        (texture_flag::SEAMLESS_CUBEMAP, of.seamless_cubemap != 0),
    ]
}

fn texture(from: &TextureDesc) -> Result<CUDA_TEXTURE_DESC, Error> {
    if !matches!(from.read_mode, ELEMENT_TYPE | NORMALIZED_FLOAT) {
        return Err(Error::INVALID_VALUE);
    }
    let set = flags(from).into_iter().filter(|&(_, set)| set);
    Ok(CUDA_TEXTURE_DESC {
        address_mode: from.address_mode,
        filter_mode: from.filter_mode,
        flags: set.fold(0, |flags, (flag, _)| flags | flag),
        max_anisotropy: from.max_anisotropy,
        mipmap_filter_mode: from.mipmap_filter_mode,
        mipmap_level_bias: from.mipmap_level_bias,
        min_mipmap_level_clamp: from.min_mipmap_level_clamp,
        max_mipmap_level_clamp: from.max_mipmap_level_clamp,
        border_color: from.border_color,
        ..CUDA_TEXTURE_DESC::default()
    })
}

/// As [`texture`], back.
fn texture_back(from: &CUDA_TEXTURE_DESC) -> TextureDesc {
    let has = |flag| c_int::from(from.flags & flag != 0);
    TextureDesc {
        address_mode: from.address_mode,
        filter_mode: from.filter_mode,
        read_mode: NORMALIZED_FLOAT - has(texture_flag::READ_AS_INTEGER),
        srgb: has(texture_flag::SRGB),
        border_color: from.border_color,
        normalized_coords: has(texture_flag::NORMALIZED_COORDINATES),
        max_anisotropy: from.max_anisotropy,
        mipmap_filter_mode: from.mipmap_filter_mode,
        mipmap_level_bias: from.mipmap_level_bias,
        min_mipmap_level_clamp: from.min_mipmap_level_clamp,
        max_mipmap_level_clamp: from.max_mipmap_level_clamp,
        disable_trilinear_optimization: has(texture_flag::DISABLE_TRILINEAR_OPTIMIZATION),
        seamless_cubemap: has(texture_flag::SEAMLESS_CUBEMAP),
    }
}

entry! {
    fn cudaCreateTextureObject(
        object: *mut CUtexObject, of: *const ResourceDesc, how: *const TextureDesc,
        view: *const CUDA_RESOURCE_VIEW_DESC
    ) {
        let object = out(object)?;
        let of = resource(of.as_ref().ok_or(Error::INVALID_VALUE)?)?;
        let how = texture(how.as_ref().ok_or(Error::INVALID_VALUE)?)?;
        // The driver does not look into a view; it is smaller in CUDA 12.
        check(context()?.cuTexObjectCreate(object, &of, &how, view))
    }

    fn cudaDestroyTextureObject(object: CUtexObject) {
        let api = context()?;
        if object == 0 { Ok(()) } else { check(api.cuTexObjectDestroy(object)) }
    }

    fn cudaCreateSurfaceObject(object: *mut CUsurfObject, of: *const ResourceDesc) {
        let of = resource(of.as_ref().ok_or(Error::INVALID_VALUE)?)?;
        check(context()?.cuSurfObjectCreate(object, &of))
    }

    fn cudaDestroySurfaceObject(object: CUsurfObject) {
        let api = context()?;
        if object == 0 { Ok(()) } else { check(api.cuSurfObjectDestroy(object)) }
    }

    fn cudaGetSurfaceObjectResourceDesc(of: *mut ResourceDesc, object: CUsurfObject) {
        let of = out(of)?;
        let mut found = CUDA_RESOURCE_DESC::default();
        check(context()?.cuSurfObjectGetResourceDesc(&mut found, object))?;
        *of = resource_back(&found)?;
        Ok(())
    }

    fn cudaGetTextureObjectResourceDesc(of: *mut ResourceDesc, object: CUtexObject) {
        let of = out(of)?;
        let mut found = CUDA_RESOURCE_DESC::default();
        check(context()?.cuTexObjectGetResourceDesc(&mut found, object))?;
        *of = resource_back(&found)?;
        Ok(())
    }

    fn cudaGetTextureObjectTextureDesc(how: *mut TextureDesc, object: CUtexObject) {
        let how = out(how)?;
        let mut found = CUDA_TEXTURE_DESC::default();
        check(context()?.cuTexObjectGetTextureDesc(&mut found, object))?;
        *how = texture_back(&found);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_cuda_12_which_are_the_start_of_cuda_13s() {
        assert_eq!(size_of::<ResourceDesc>(), 64);
        assert_eq!(std::mem::offset_of!(ResourceDesc, res), 8);
        assert_eq!(std::mem::offset_of!(Linear, bytes), 32);
        assert_eq!(std::mem::offset_of!(Pitched, width), 32);
        assert_eq!(size_of::<TextureDesc>(), 72);
    }

    #[test]
    fn descriptions_survive_the_way_through_the_driver() {
        let desc = ChannelDesc::from_driver(0x09, 2).unwrap();
        let pitched = Pitched {
            pointer: 0x1000 as *mut c_void,
            desc,
            width: 5,
            height: 6,
            pitch: 64,
        };
        let given = ResourceDesc {
            kind: resource_type::PITCH2D,
            res: Resource { pitched },
        };
        // SAFETY: it is pitched memory.
        let back = resource_back(&unsafe { resource(&given) }.unwrap()).unwrap();
        // SAFETY: as above.
        let got = unsafe { back.res.pitched };
        assert_eq!(back.kind, resource_type::PITCH2D);
        assert_eq!(format!("{got:?}"), format!("{pitched:?}"));
        for bits in 0..32 {
            let has = |bit: c_int| bits >> bit & 1;
            let given = TextureDesc {
                address_mode: [0, 1, 3],
                filter_mode: 1,
                read_mode: has(0),
                srgb: has(1),
                border_color: [0.5, 1.0, 2.0, 4.0],
                normalized_coords: has(2),
                max_anisotropy: 3,
                mipmap_filter_mode: 1,
                mipmap_level_bias: 0.25,
                min_mipmap_level_clamp: 1.0,
                max_mipmap_level_clamp: 2.0,
                disable_trilinear_optimization: has(3),
                seamless_cubemap: has(4),
            };
            let back = texture_back(&texture(&given).unwrap());
            assert_eq!(format!("{back:?}"), format!("{given:?}"));
        }
    }
}
