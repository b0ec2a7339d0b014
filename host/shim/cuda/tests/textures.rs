//! Arrays and texture objects, by the entry points that a program calls.
#![allow(non_snake_case, reason = "entry points keep their C names")]

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use crate::common::{alloc, cu, ok, read, start};
use cudarun_shim_cuda::exports::*;
use driver::sys::*;

/// Thread i writes the texel at (i + 0.5, 0.5) as bits.
const PTX: &CStr = c".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry fetch(.param .u64 out, .param .u64 texture)\n{\n\
    .reg .b64 %out, %t; .reg .b32 %i, %c<4>; .reg .f32 %x;\n\
    ld.param.u64 %out, [out]; ld.param.u64 %t, [texture];\n\
    mov.u32 %i, %tid.x; mad.wide.u32 %out, %i, 4, %out;\n\
    cvt.rn.f32.u32 %x, %i; add.f32 %x, %x, 0f3F000000;\n\
    tex.2d.v4.u32.f32 {%c0, %c1, %c2, %c3}, [%t, {%x, 0f3F000000}];\n\
    st.global.u32 [%out], %c0; ret;\n}\n";

/// Runs the kernel with eight threads.
fn fetch(texture: CUtexObject) -> Result<Vec<u32>, CUresult> {
    let (mut module, mut function) = (null_mut(), null_mut());
    ok(cu!(cuModuleLoadData(&mut module, PTX.as_ptr().cast())));
    ok(cu!(cuModuleGetFunction(
        &mut function,
        module,
        c"fetch".as_ptr()
    )));
    let mut out = alloc(32);
    let mut texture = texture;
    let mut params: [*mut c_void; 2] = [(&raw mut out).cast(), (&raw mut texture).cast()];
    let params = params.as_mut_ptr();
    ok(cu!(cuLaunchKernel(
        function,
        1,
        1,
        1,
        8,
        1,
        1,
        0,
        null_mut(),
        params,
        null_mut()
    )));
    cu!(cuCtxSynchronize()).result()?;
    let words = read(out, 32);
    let words = words
        .chunks(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    Ok(words.collect())
}

fn array(width: usize, height: usize, depth: usize, flags: u32) -> Result<CUarray, CUresult> {
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        width,
        height,
        depth,
        format: array_format::UNSIGNED_INT16,
        num_channels: 2,
        flags,
    };
    let mut made = null_mut();
    cu!(cuArray3DCreate_v2(&mut made, &descriptor)).result()?;
    Ok(made)
}

fn resource(kind: i32, res: &[u64]) -> CUDA_RESOURCE_DESC {
    let mut resource = CUDA_RESOURCE_DESC {
        kind,
        ..CUDA_RESOURCE_DESC::default()
    };
    resource.res[..res.len()].copy_from_slice(res);
    resource
}

/// A texture that reads elements as they are, clamped.
fn plain() -> CUDA_TEXTURE_DESC {
    CUDA_TEXTURE_DESC {
        address_mode: [address_mode::CLAMP; 3],
        flags: texture_flag::READ_AS_INTEGER,
        ..CUDA_TEXTURE_DESC::default()
    }
}

fn texture(of: &CUDA_RESOURCE_DESC, how: &CUDA_TEXTURE_DESC) -> Result<CUtexObject, CUresult> {
    let mut made = 0;
    cu!(cuTexObjectCreate(&mut made, of, how, null())).result()?;
    Ok(made)
}

/// Format and channels as `res` of a resource has them.
fn texel(format: CUarray_format, channels: u64) -> u64 {
    format as u64 | channels << 32
}

#[test]
fn arrays_are_filled_and_read_by_boxes_and_runs_within_their_bounds() {
    let _turn = start();
    let made = array(5, 4, 3, 0).expect("an array");
    let host: Vec<u8> = (0..240).map(|byte| byte as u8).collect();
    ok(cu!(cuMemcpyHtoA_v2(made, 0, host.as_ptr().cast(), 240)));
    // Two texels of two rows of two slices, from (1, 2, 1) on.
    let mut corner = [0u8; 32];
    let out = CUDA_MEMCPY3D {
        src_x_in_bytes: 4,
        src_y: 2,
        src_z: 1,
        src_memory_type: memory_type::ARRAY,
        src_array: made,
        dst_memory_type: memory_type::HOST,
        dst_host: corner.as_mut_ptr().cast(),
        width_in_bytes: 8,
        height: 2,
        depth: 2,
        ..CUDA_MEMCPY3D::default()
    };
    ok(cu!(cuMemcpy3D_v2(&out)));
    let at = |y: usize, z: usize| &host[z * 80 + y * 20 + 4..][..8];
    assert_eq!(corner, *[at(2, 1), at(3, 1), at(2, 2), at(3, 2)].concat());
    for (x, y, z) in [(16, 0, 0), (4, 3, 0), (4, 2, 2), (usize::MAX, 0, 0)] {
        let outside = CUDA_MEMCPY3D {
            src_x_in_bytes: x,
            src_y: y,
            src_z: z,
            ..out
        };
        assert_eq!(cu!(cuMemcpy3D_v2(&outside)), CUresult::INVALID_VALUE);
    }
    // A run of bytes by way of the device, and back.
    let device = alloc(16);
    ok(cu!(cuMemcpyAtoD_v2(device, made, 100, 16)));
    assert_eq!(read(device, 16), host[100..116]);
    ok(cu!(cuMemcpyDtoA_v2(made, 224, device, 16)));
    ok(cu!(cuMemcpyAtoA_v2(made, 0, made, 224, 16)));
    let mut start = [0u8; 18];
    ok(cu!(cuMemcpyAtoH_v2(start.as_mut_ptr().cast(), made, 0, 18)));
    assert_eq!(start[..], [&host[100..116], &host[16..18]].concat());
    assert_eq!(
        cu!(cuMemcpyDtoA_v2(made, 225, device, 16)),
        CUresult::INVALID_VALUE
    );
    let mut described = CUDA_ARRAY3D_DESCRIPTOR::default();
    ok(cu!(cuArray3DGetDescriptor_v2(&mut described, made)));
    let sizes = (described.width, described.height, described.depth);
    assert_eq!((sizes, described.num_channels), ((5, 4, 3), 2));
    ok(cu!(cuArrayDestroy(made)));
    assert_eq!(cu!(cuArrayDestroy(made)), CUresult::INVALID_HANDLE);
    assert_eq!(cu!(cuMemcpy3D_v2(&out)), CUresult::INVALID_HANDLE);
    ok(cu!(cuMemFree_v2(device)));
}

#[test]
fn array_sizes_obey_the_limits_and_unknown_formats_are_refused() {
    let _turn = start();
    let layered = array_flag::LAYERED;
    let cube = array_flag::CUBEMAP;
    for (width, height, depth, flags) in [
        (131_072, 0, 0, 0),
        (3, 7, 0, 0),
        (3, 0, 2048, layered),
        (4, 4, 6, cube),
        (4, 4, 12, cube | layered),
    ] {
        ok(cu!(cuArrayDestroy(
            array(width, height, depth, flags).expect("an array")
        )));
    }
    for (width, height, depth, flags, why) in [
        (0, 0, 0, 0, CUresult::INVALID_VALUE),
        (131_073, 0, 0, 0, CUresult::INVALID_VALUE),
        (4, 0, 4, 0, CUresult::INVALID_VALUE),
        (4, 4, 0, layered, CUresult::INVALID_VALUE),
        (4, 0, 2049, layered, CUresult::INVALID_VALUE),
        (
            usize::MAX,
            usize::MAX,
            usize::MAX,
            0,
            CUresult::INVALID_VALUE,
        ),
        (16384, 16384, 16384, 0, CUresult::OUT_OF_MEMORY),
        (4, 4, 5, cube, CUresult::INVALID_VALUE),
        (4, 3, 6, cube, CUresult::INVALID_VALUE),
    ] {
        assert_eq!(
            array(width, height, depth, flags),
            Err(why),
            "{width} {height} {depth}"
        );
    }
    let mut descriptor = CUDA_ARRAY_DESCRIPTOR {
        width: 4,
        height: 4,
        format: 0x91,
        num_channels: 4,
    };
    let mut made = null_mut();
    let create = |made: &mut CUarray, of: &CUDA_ARRAY_DESCRIPTOR| cu!(cuArrayCreate_v2(made, of));
    assert_eq!(create(&mut made, &descriptor), CUresult::NOT_SUPPORTED);
    descriptor.format = 7;
    assert_eq!(create(&mut made, &descriptor), CUresult::INVALID_VALUE);
    (descriptor.format, descriptor.num_channels) = (array_format::FLOAT, 3);
    assert_eq!(create(&mut made, &descriptor), CUresult::INVALID_VALUE);
    descriptor.num_channels = 4;
    ok(create(&mut made, &descriptor));
    ok(cu!(cuArrayDestroy(made)));
    let mut mipmapped = null_mut();
    let of = CUDA_ARRAY3D_DESCRIPTOR::default();
    let answer = cu!(cuMipmappedArrayCreate(&mut mipmapped, &of, 3));
    assert_eq!(answer, CUresult::NOT_SUPPORTED);
}

#[test]
fn kernels_read_all_three_resources() {
    let _turn = start();
    let texels: Vec<u16> = (0..16).map(|texel| 1000 * texel).collect();
    let (made, memory) = (array(8, 1, 0, 0).expect("an array"), alloc(32));
    ok(cu!(cuMemcpyHtoA_v2(made, 0, texels.as_ptr().cast(), 32)));
    ok(cu!(cuMemcpyHtoD_v2(memory, texels.as_ptr().cast(), 32)));
    let kind = texel(array_format::UNSIGNED_INT16, 2);
    let pairs: Vec<u32> = (0..8).map(|texel| 2000 * texel).collect();
    for (of, expected) in [
        (
            resource(resource_type::ARRAY, &[made.addr() as u64]),
            pairs.clone(),
        ),
        // Five texels and two bytes that make none.
        (
            resource(resource_type::LINEAR, &[memory, kind, 22]),
            [&pairs[..5], &[0, 0, 0]].concat(),
        ),
        (
            resource(resource_type::PITCH2D, &[memory, kind, 3, 1, 32]),
            [&pairs[..3], &[pairs[2]; 5]].concat(),
        ),
    ] {
        let object = texture(&of, &plain()).expect("a texture");
        assert_eq!(fetch(object), Ok(expected));
        let mut returned = CUDA_RESOURCE_DESC::default();
        ok(cu!(cuTexObjectGetResourceDesc(&mut returned, object)));
        assert_eq!((returned.kind, returned.res), (of.kind, of.res));
        let mut how = CUDA_TEXTURE_DESC::default();
        ok(cu!(cuTexObjectGetTextureDesc(&mut how, object)));
        assert_eq!(how.address_mode, [address_mode::CLAMP; 3]);
        ok(cu!(cuTexObjectDestroy(object)));
        assert_eq!(cu!(cuTexObjectDestroy(object)), CUresult::INVALID_VALUE);
    }
    ok(cu!(cuMemFree_v2(memory)));
    ok(cu!(cuArrayDestroy(made)));
}

#[test]
fn descriptions_that_make_no_texture_are_refused() {
    let _turn = start();
    let memory = alloc(1 << 12);
    let kind = texel(array_format::FLOAT, 1);
    let linear = |res: &[u64]| resource(resource_type::LINEAR, res);
    let pitched = |res: &[u64]| resource(resource_type::PITCH2D, res);
    let bad = [
        linear(&[memory + 4, kind, 64]),
        linear(&[0, kind, 64]),
        linear(&[memory, kind, 3]),
        linear(&[memory, texel(0x20, 3), 64]),
        pitched(&[memory, kind, 8, 8, 48]),
        pitched(&[memory, kind, 17, 8, 64]),
        pitched(&[memory, kind, 8, 0, 64]),
        pitched(&[memory, kind, 8, u64::MAX, 64]),
        resource(4, &[memory]),
        CUDA_RESOURCE_DESC {
            flags: 1,
            ..linear(&[memory, kind, 64])
        },
    ];
    for of in &bad {
        assert_eq!(
            texture(of, &plain()),
            Err(CUresult::INVALID_VALUE),
            "{of:?}"
        );
    }
    let none = resource(resource_type::ARRAY, &[memory]);
    assert_eq!(texture(&none, &plain()), Err(CUresult::INVALID_HANDLE));
    let levels = resource(resource_type::MIPMAPPED_ARRAY, &[memory]);
    assert_eq!(texture(&levels, &plain()), Err(CUresult::NOT_SUPPORTED));
    let good = pitched(&[memory, texel(array_format::SIGNED_INT16, 1), 8, 8, 64]);
    let linear_filter = CUDA_TEXTURE_DESC {
        filter_mode: filter_mode::LINEAR,
        ..plain()
    };
    // Integers cannot be mixed, but what is read as a float can.
    assert_eq!(texture(&good, &linear_filter), Err(CUresult::INVALID_VALUE));
    let floats = CUDA_TEXTURE_DESC {
        flags: 0,
        ..linear_filter
    };
    ok(cu!(cuTexObjectDestroy(
        texture(&good, &floats).expect("a texture")
    )));
    for (how, why) in [
        (
            CUDA_TEXTURE_DESC {
                address_mode: [0, 4, 0],
                ..plain()
            },
            CUresult::INVALID_VALUE,
        ),
        (
            CUDA_TEXTURE_DESC {
                filter_mode: 2,
                ..plain()
            },
            CUresult::INVALID_VALUE,
        ),
        (
            CUDA_TEXTURE_DESC {
                flags: 0x80,
                ..plain()
            },
            CUresult::INVALID_VALUE,
        ),
        (
            CUDA_TEXTURE_DESC {
                flags: texture_flag::SRGB,
                ..plain()
            },
            CUresult::NOT_SUPPORTED,
        ),
    ] {
        assert_eq!(texture(&good, &how), Err(why));
    }
    let view = CUDA_RESOURCE_VIEW_DESC::default();
    let mut object = 0;
    let answer = cu!(cuTexObjectCreate(&mut object, &good, &plain(), &view));
    assert_eq!(answer, CUresult::NOT_SUPPORTED);
    let mut surface = 0;
    assert_eq!(
        cu!(cuSurfObjectCreate(&mut surface, &none)),
        CUresult::INVALID_HANDLE
    );
    ok(cu!(cuMemFree_v2(memory)));
}

#[test]
fn a_texture_without_its_array_ends_the_context_and_a_reset_frees_arrays_and_textures() {
    let _turn = start();
    let free = || {
        let (mut free, mut total) = (0, 0);
        ok(cu!(cuMemGetInfo_v2(&mut free, &mut total)));
        free
    };
    ok(cu!(cuDevicePrimaryCtxReset_v2(0)));
    let before = free();
    let made = array(1000, 1000, 0, 0).expect("an array");
    assert!(before - free() >= 4_000_000);
    let of = resource(resource_type::ARRAY, &[made.addr() as u64]);
    let left = texture(&of, &plain()).expect("a texture");
    // Another array takes the place of the one that goes.
    let goes = array(1000, 1000, 0, 0).expect("an array");
    let over = resource(resource_type::ARRAY, &[goes.addr() as u64]);
    let gone = texture(&over, &plain()).expect("a texture");
    let other = texture(&over, &plain()).expect("a texture");
    ok(cu!(cuArrayDestroy(goes)));
    array(1000, 1000, 0, 0).expect("an array");
    ok(cu!(cuTexObjectDestroy(other)));
    assert!(fetch(left).is_ok());
    assert_eq!(fetch(gone), Err(CUresult::ILLEGAL_ADDRESS));
    assert_eq!(cu!(cuArrayDestroy(made)), CUresult::ILLEGAL_ADDRESS);
    ok(cu!(cuDevicePrimaryCtxReset_v2(0)));
    assert_eq!(free(), before);
    assert_eq!(cu!(cuArrayDestroy(made)), CUresult::INVALID_HANDLE);
    assert_eq!(cu!(cuTexObjectDestroy(left)), CUresult::INVALID_VALUE);
}
