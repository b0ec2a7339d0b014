//! Texture and surface objects: what a program says about one, made into what the device reads.
//!
//! Source: `cuTexObjectCreate`, `cuSurfObjectCreate`. Mipmapped arrays, resource views and sRGB conversion are
//! `CUDA_ERROR_NOT_SUPPORTED`. Departure: the limits on anisotropy and on levels of detail are kept
//! and told, but with one level there is nothing for them to limit.

use driver::sys::device_attribute as a;
use driver::sys::{
    CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC, CUDA_TEXTURE_DESC, CUresult, CUsurfObject,
    CUtexObject, address_mode, array_flag, filter_mode, resource_type, texture_flag,
};
use simt::Texture;
use simt::texture::{AddressMode, Filter, Image, Sampler, Surface};

use crate::Answer;
use crate::array::Texel;
use crate::device::attribute;
use crate::missing::missing;
use crate::pointer::Ptr;
use crate::state::{State, with_context};

/// A texture object as the program described it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextureObject {
    context: u64,
    resource: CUDA_RESOURCE_DESC,
    texture: CUDA_TEXTURE_DESC,
}

/// A surface object as the program described it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SurfaceObject {
    context: u64,
    resource: CUDA_RESOURCE_DESC,
}

fn limit(id: i32) -> u64 {
    attribute(id) as u64
}

/// The texels of linear memory.
fn linear(state: &State, res: &[u64; 16]) -> Result<(Texel, Image), CUresult> {
    let [address, _, bytes, ..] = *res;
    let texel = texel(state, res)?;
    let texels = bytes / texel.bytes();
    if texels == 0 || texels > limit(a::MAXIMUM_TEXTURE1D_LINEAR_WIDTH) {
        return Err(CUresult::INVALID_VALUE);
    }
    let image = Image {
        address,
        extent: [texels as u32, 1, 1],
        pitch: bytes,
        slice: bytes,
    };
    Ok((texel, image))
}

/// The texels of pitched memory.
fn pitched(state: &State, res: &[u64; 16]) -> Result<(Texel, Image), CUresult> {
    let [address, _, width, height, pitch, ..] = *res;
    let texel = texel(state, res)?;
    let sizes = (1..=limit(a::MAXIMUM_TEXTURE2D_LINEAR_WIDTH)).contains(&width)
        && (1..=limit(a::MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)).contains(&height);
    let rows = pitch.is_multiple_of(limit(a::TEXTURE_PITCH_ALIGNMENT))
        && pitch <= limit(a::MAXIMUM_TEXTURE2D_LINEAR_PITCH);
    if !sizes || !rows || pitch < width * texel.bytes() {
        return Err(CUresult::INVALID_VALUE);
    }
    let image = Image {
        address,
        extent: [width as u32, height as u32, 1],
        pitch,
        slice: pitch * height,
    };
    Ok((texel, image))
}

/// The type of the texels of linear or pitched memory, whose address must be one of a texture's.
fn texel(state: &State, res: &[u64; 16]) -> Result<Texel, CUresult> {
    let [address, kind, ..] = *res;
    let known = state.engine.memory().containing(address).is_some();
    if !known || !address.is_multiple_of(limit(a::TEXTURE_ALIGNMENT)) {
        return Err(CUresult::INVALID_VALUE);
    }
    Texel::new(kind as u32 as i32, (kind >> 32) as u32)
}

fn sampler(of: &CUDA_TEXTURE_DESC) -> Result<Sampler, CUresult> {
    use texture_flag as f;
    let bad = CUresult::INVALID_VALUE;
    let known = f::READ_AS_INTEGER
        | f::NORMALIZED_COORDINATES
        | f::SRGB
        | f::DISABLE_TRILINEAR_OPTIMIZATION
        | f::SEAMLESS_CUBEMAP;
    if of.flags & !known != 0 {
        return Err(bad);
    }
    if of.flags & f::SRGB != 0 {
        return Err(missing("textures with sRGB conversion"));
    }
    let mut address = [AddressMode::Clamp; 3];
    for (mode, &given) in address.iter_mut().zip(&of.address_mode) {
        *mode = match given {
            address_mode::WRAP => AddressMode::Wrap,
            address_mode::CLAMP => AddressMode::Clamp,
            address_mode::MIRROR => AddressMode::Mirror,
            address_mode::BORDER => AddressMode::Border,
            _ => return Err(bad),
        };
    }
    Ok(Sampler {
        address,
        filter: match of.filter_mode {
            filter_mode::POINT => Filter::Point,
            filter_mode::LINEAR => Filter::Linear,
            _ => return Err(bad),
        },
        normalized: of.flags & f::NORMALIZED_COORDINATES != 0,
        normalized_float: of.flags & f::READ_AS_INTEGER == 0,
        border: of.border_color.map(f32::to_bits),
    })
}

/// What the device shall read for a program's description.
fn describe(
    state: &State,
    resource: &CUDA_RESOURCE_DESC,
    of: &CUDA_TEXTURE_DESC,
) -> Result<Texture, CUresult> {
    if resource.flags != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    let mut sampler = sampler(of)?;
    let (texel, image) = match resource.kind {
        resource_type::ARRAY => {
            let array = state.arrays.get(resource.res[0])?;
            let cube = array.descriptor.flags & array_flag::CUBEMAP != 0;
            let seamless = of.flags & texture_flag::SEAMLESS_CUBEMAP != 0;
            if cube && seamless && sampler.filter == Filter::Linear {
                return Err(missing("cubemaps that are filtered across their edges"));
            }
            (array.texel, array.image)
        }
        resource_type::MIPMAPPED_ARRAY => return Err(missing("mipmapped arrays")),
        resource_type::LINEAR => {
            // Modes and filters say nothing about linear memory, which reads 0 outside.
            sampler = Sampler {
                address: [AddressMode::Border; 3],
                normalized_float: sampler.normalized_float,
                ..Sampler::default()
            };
            linear(state, &resource.res)?
        }
        resource_type::PITCH2D => pitched(state, &resource.res)?,
        _ => return Err(CUresult::INVALID_VALUE),
    };
    let texture = Texture {
        image,
        format: texel.format,
        channels: texel.channels,
        sampler,
    };
    // Integers cannot be mixed.
    match sampler.filter == Filter::Linear && !texture.reads_floats() {
        true => Err(CUresult::INVALID_VALUE),
        false => Ok(texture),
    }
}

impl State {
    /// The texture object of a handle.
    fn texture(&self, handle: CUtexObject) -> Result<&TextureObject, CUresult> {
        self.textures.get(&handle).ok_or(CUresult::INVALID_VALUE)
    }

    /// Lets no kernel read or write through the texture and surface objects over an array, whose memory may become
    /// another one's. The program still has to destroy them.
    pub(crate) fn close_textures(&mut self, array: u64) {
        let over = |of: &CUDA_RESOURCE_DESC| of.kind == resource_type::ARRAY && of.res[0] == array;
        for (&handle, object) in &self.textures {
            if over(&object.resource) {
                self.engine.textures_mut().remove(handle);
            }
        }
        for (&handle, object) in &self.surfaces {
            if over(&object.resource) {
                self.engine.textures_mut().remove_surface(handle);
            }
        }
    }

    /// Destroys the texture and surface objects of a context.
    pub(crate) fn clear_textures(&mut self, context: u64) {
        let device = self.engine.textures_mut();
        self.textures.retain(|&handle, object| {
            let stays = object.context != context;
            if !stays {
                device.remove(handle);
            }
            stays
        });
        self.surfaces.retain(|&handle, object| {
            let stays = object.context != context;
            if !stays {
                device.remove_surface(handle);
            }
            stays
        });
    }
}

pub(crate) fn cuTexObjectCreate(
    out: Ptr<CUtexObject>,
    resource: Ptr<CUDA_RESOURCE_DESC>,
    texture: Ptr<CUDA_TEXTURE_DESC>,
    view: Ptr<CUDA_RESOURCE_VIEW_DESC>,
) -> Answer {
    let (resource, texture) = (resource.get()?, texture.get()?);
    if out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    if !view.is_null() {
        return Err(missing("textures with a resource view"));
    }
    out.set(with_context(|state, context| {
        let described = describe(state, &resource, &texture)?;
        let handle = state.engine.textures_mut().insert(described);
        let object = TextureObject {
            context,
            resource,
            texture,
        };
        state.textures.insert(handle, object);
        Ok(handle)
    })?)
}

pub(crate) fn cuTexObjectDestroy(texture: CUtexObject) -> Answer {
    with_context(|state, _| {
        state.texture(texture)?;
        state.textures.remove(&texture);
        state.engine.textures_mut().remove(texture);
        Ok(())
    })
}

pub(crate) fn cuTexObjectGetResourceDesc(
    out: Ptr<CUDA_RESOURCE_DESC>,
    texture: CUtexObject,
) -> Answer {
    out.set(with_context(|state, _| {
        Ok(state.texture(texture)?.resource)
    })?)
}

pub(crate) fn cuTexObjectGetTextureDesc(
    out: Ptr<CUDA_TEXTURE_DESC>,
    texture: CUtexObject,
) -> Answer {
    out.set(with_context(|state, _| {
        Ok(state.texture(texture)?.texture)
    })?)
}

/// Makes a surface object.
pub(crate) fn cuSurfObjectCreate(
    out: Ptr<CUsurfObject>,
    resource: Ptr<CUDA_RESOURCE_DESC>,
) -> Answer {
    let resource = resource.get()?;
    if out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    out.set(with_context(|state, context| {
        if resource.kind != resource_type::ARRAY || resource.flags != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let array = *state.arrays.get(resource.res[0])?;
        if array.descriptor.flags & array_flag::SURFACE_LDST == 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let handle = state.engine.textures_mut().insert_surface(Surface {
            image: array.image,
            texel_bytes: array.texel.bytes() as u32,
        });
        state
            .surfaces
            .insert(handle, SurfaceObject { context, resource });
        Ok(handle)
    })?)
}

pub(crate) fn cuSurfObjectDestroy(surface: CUsurfObject) -> Answer {
    with_context(|state, _| {
        let known = state.surfaces.remove(&surface);
        known.ok_or(CUresult::INVALID_VALUE)?;
        state.engine.textures_mut().remove_surface(surface);
        Ok(())
    })
}

pub(crate) fn cuSurfObjectGetResourceDesc(
    out: Ptr<CUDA_RESOURCE_DESC>,
    surface: CUsurfObject,
) -> Answer {
    out.set(with_context(|state, _| {
        let object = state.surfaces.get(&surface);
        Ok(object.ok_or(CUresult::INVALID_VALUE)?.resource)
    })?)
}
