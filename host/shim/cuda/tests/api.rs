//! The entry points called from Rust: memory, copies, pools, attributes, images, bad arguments.
#![allow(non_snake_case, reason = "entry points keep their C names")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};

use crate::common::{alloc, cu, ok, read, start};
use cudarun_shim_cuda::exports::*;
use driver::sys::*;
use image::fatbin::MAGIC;

const PTX: &CStr = c".version 7.0\n.target sm_70\n.address_size 64\n\
    .visible .global .align 4 .u32 word = 77;\n\
    .visible .entry nothing(.param .u64 a, .param .u8 b, .param .u32 c) .maxntid 64\n{ ret; }\n";

#[test]
fn memory_is_zeroed_bounded_and_gone_when_freed() {
    let _turn = start();
    let a = alloc(1000);
    assert_eq!(a % 256, 0);
    assert_eq!(read(a, 1000), [0; 1000]);
    ok(cu!(cuMemsetD8_v2(a, 7, 1000)));
    ok(cu!(cuMemsetD16_v2(a + 2, 0x1234, 3)));
    assert_eq!(read(a, 9), [7, 7, 0x34, 0x12, 0x34, 0x12, 0x34, 0x12, 7]);
    assert_eq!(cu!(cuMemsetD16_v2(a + 1, 0, 3)), CUresult::INVALID_VALUE);
    assert_eq!(cu!(cuMemsetD32_v2(a, 0, 251)), CUresult::INVALID_VALUE);
    let (mut base, mut size) = (0, 0);
    ok(cu!(cuMemGetAddressRange_v2(&mut base, &mut size, a + 999)));
    assert_eq!((base, size), (a, 1000));
    assert_eq!(cu!(cuMemFree_v2(a + 4)), CUresult::INVALID_VALUE);
    ok(cu!(cuMemFree_v2(a)));
    assert_eq!(cu!(cuMemFree_v2(a)), CUresult::INVALID_VALUE);
    assert_eq!(cu!(cuMemsetD8_v2(a, 1, 1)), CUresult::INVALID_VALUE);
    let mut address = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&mut address, 0)), CUresult::INVALID_VALUE);
    assert_eq!(
        cu!(cuMemAlloc_v2(&mut address, usize::MAX)),
        CUresult::OUT_OF_MEMORY
    );
    assert_eq!(cu!(cuMemAlloc_v2(null_mut(), 4)), CUresult::INVALID_VALUE);
}

#[test]
fn boxes_are_copied_row_by_row() {
    let _turn = start();
    let (mut pitched, mut pitch) = (0, 0);
    ok(cu!(cuMemAllocPitch_v2(&mut pitched, &mut pitch, 10, 4, 4)));
    assert_eq!(pitch, 512);
    let host: Vec<u8> = (0..40).collect();
    let there = CUDA_MEMCPY2D {
        src_memory_type: memory_type::HOST,
        src_host: host.as_ptr().cast(),
        src_pitch: 10,
        dst_memory_type: memory_type::DEVICE,
        dst_device: pitched,
        dst_pitch: pitch,
        width_in_bytes: 10,
        height: 4,
        ..CUDA_MEMCPY2D::default()
    };
    ok(cu!(cuMemcpy2D_v2(&there)));
    let row = read(pitched + 2 * 512, 12);
    assert_eq!(row[..10], host[20..30]);
    assert_eq!(row[10..], [0, 0]);
    // A part of it back, by unified addresses, into the corner of a smaller box.
    let mut corner = [0u8; 12];
    let back = CUDA_MEMCPY3D {
        src_x_in_bytes: 3,
        src_y: 1,
        src_memory_type: memory_type::UNIFIED,
        src_device: pitched,
        src_pitch: pitch,
        src_height: 4,
        dst_x_in_bytes: 1,
        dst_memory_type: memory_type::UNIFIED,
        dst_device: corner.as_mut_ptr().expose_provenance() as u64,
        dst_pitch: 4,
        dst_height: 3,
        width_in_bytes: 2,
        height: 3,
        depth: 1,
        ..CUDA_MEMCPY3D::default()
    };
    ok(cu!(cuMemcpy3D_v2(&back)));
    assert_eq!(corner, [0, 13, 14, 0, 0, 23, 24, 0, 0, 33, 34, 0]);
    let array = CUDA_MEMCPY2D {
        src_memory_type: memory_type::ARRAY,
        ..there
    };
    assert_eq!(cu!(cuMemcpy2D_v2(&array)), CUresult::INVALID_HANDLE);
    let narrow = CUDA_MEMCPY2D {
        dst_pitch: 5,
        ..there
    };
    assert_eq!(cu!(cuMemcpy2D_v2(&narrow)), CUresult::INVALID_VALUE);
    ok(cu!(cuMemsetD2D8_v2(pitched, pitch, 9, 3, 4)));
    assert_eq!(read(pitched + 512, 4), [9, 9, 9, host[13]]);
    ok(cu!(cuMemFree_v2(pitched)));
}

#[test]
fn large_copies_go_in_pieces() {
    let _turn = start();
    let bytes = (5 << 20) + 3;
    let host: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
    let (a, b) = (alloc(bytes), alloc(bytes));
    ok(cu!(cuMemcpyHtoD_v2(a, host.as_ptr().cast(), bytes)));
    ok(cu!(cuMemcpyDtoD_v2(b, a, bytes)));
    assert!(read(b, bytes) == host);
    let mut back = vec![0u8; bytes];
    let target = back.as_mut_ptr().expose_provenance() as u64;
    ok(cu!(cuMemcpy(target, b, bytes)));
    assert!(back == host);
    ok(cu!(cuMemsetD32_v2(a + 4, 0x0102_0304, (4 << 20) / 4)));
    let filled = read(a, bytes);
    assert_eq!(filled[..4], host[..4]);
    assert!(
        filled[4..4 + (4 << 20)]
            .chunks(4)
            .all(|word| word == [4, 3, 2, 1])
    );
    assert_eq!(filled[4 + (4 << 20)..], host[4 + (4 << 20)..]);
    // A device address is no host memory, whatever a program says.
    let stray = std::ptr::with_exposed_provenance(a as usize);
    assert_eq!(cu!(cuMemcpyHtoD_v2(b, stray, 4)), CUresult::INVALID_VALUE);
    ok(cu!(cuMemFree_v2(a)));
    ok(cu!(cuMemFree_v2(b)));
}

#[test]
fn pointers_are_told_apart() {
    let _turn = start();
    let device = alloc(64);
    let mut managed = 0;
    let mut pinned = null_mut();
    let mut own = vec![0u8; 8192];
    ok(cu!(cuMemAllocManaged(&mut managed, 64, 1)));
    ok(cu!(cuMemAllocHost_v2(&mut pinned, 64)));
    ok(cu!(cuMemHostRegister_v2(own.as_mut_ptr().cast(), 8192, 0)));
    let twice = cu!(cuMemHostRegister_v2(
        own.as_mut_ptr().wrapping_add(4096).cast(),
        8,
        0
    ));
    assert_eq!(twice, CUresult::HOST_MEMORY_ALREADY_REGISTERED);
    let pinned_address = pinned.expose_provenance() as u64;
    let own_address = own.as_mut_ptr().expose_provenance() as u64;
    for (address, memory, is_managed) in [
        (device, memory_type::DEVICE, 0),
        (managed, memory_type::DEVICE, 1),
        (pinned_address, memory_type::HOST, 0),
        (own_address + 100, memory_type::HOST, 0),
    ] {
        let (mut kind, mut found): (c_int, c_int) = (0, -1);
        let attribute = pointer_attribute::MEMORY_TYPE;
        ok(cu!(cuPointerGetAttribute(
            (&raw mut kind).cast(),
            attribute,
            address
        )));
        let attribute = pointer_attribute::IS_MANAGED;
        ok(cu!(cuPointerGetAttribute(
            (&raw mut found).cast(),
            attribute,
            address
        )));
        assert_eq!((kind, found), (memory, is_managed), "{address:#x}");
    }
    let mut range = 0u64;
    let attribute = pointer_attribute::RANGE_SIZE;
    ok(cu!(cuPointerGetAttribute(
        (&raw mut range).cast(),
        attribute,
        own_address + 5
    )));
    assert_eq!(range, 8192);
    // One that nobody knows: an error alone, zeroes in company.
    let local = 0u32;
    let unknown = (&raw const local).expose_provenance() as u64;
    let mut kind: c_int = 5;
    let data = (&raw mut kind).cast::<c_void>();
    let alone = cu!(cuPointerGetAttribute(
        data,
        pointer_attribute::MEMORY_TYPE,
        unknown
    ));
    assert_eq!(alone, CUresult::INVALID_VALUE);
    let mut attributes = [pointer_attribute::MEMORY_TYPE];
    ok(cu!(cuPointerGetAttributes(
        1,
        attributes.as_mut_ptr(),
        [data].as_mut_ptr(),
        unknown
    )));
    assert_eq!(kind, 0);
    let mut address = 0;
    ok(cu!(cuMemHostGetDevicePointer_v2(&mut address, pinned, 0)));
    assert_eq!(address, pinned_address);
    assert_eq!(cu!(cuMemFree_v2(pinned_address)), CUresult::INVALID_VALUE);
    ok(cu!(cuMemFree_v2(device)));
    ok(cu!(cuMemFree_v2(managed)));
    ok(cu!(cuMemFreeHost(pinned)));
    ok(cu!(cuMemHostUnregister(own.as_mut_ptr().cast())));
    let again = cu!(cuMemHostUnregister(own.as_mut_ptr().cast()));
    assert_eq!(again, CUresult::HOST_MEMORY_NOT_REGISTERED);
}

#[test]
fn pools_count_what_they_hand_out() {
    let _turn = start();
    let mut pool = null_mut();
    let mut props = CUmemPoolProps::default();
    (props.alloc_type, props.location.kind) = (1, 1);
    ok(cu!(cuMemPoolCreate(&mut pool, &props)));
    // `CU_MEM_LOCATION_TYPE_HOST`
    let of_host = CUmemPoolProps {
        location: CUmemLocation {
            kind: 2,
            ..props.location
        },
        ..props
    };
    let mut none = null_mut();
    let refused = cu!(cuMemPoolCreate(&mut none, &of_host));
    assert_eq!(refused, CUresult::NOT_SUPPORTED);
    let mut address = 0;
    ok(cu!(cuMemAllocFromPoolAsync(
        &mut address,
        4096,
        pool,
        null_mut()
    )));
    let used = || {
        let mut used = 0u64;
        let attribute = mem_pool_attribute::USED_MEM_CURRENT;
        ok(cu!(cuMemPoolGetAttribute(
            pool,
            attribute,
            (&raw mut used).cast()
        )));
        used
    };
    assert_eq!(used(), 4096);
    ok(cu!(cuMemFreeAsync(address, null_mut())));
    assert_eq!(used(), 0);
    let mut threshold = u64::MAX;
    let attribute = mem_pool_attribute::RELEASE_THRESHOLD;
    ok(cu!(cuMemPoolSetAttribute(
        pool,
        attribute,
        (&raw mut threshold).cast()
    )));
    threshold = 0;
    ok(cu!(cuMemPoolGetAttribute(
        pool,
        attribute,
        (&raw mut threshold).cast()
    )));
    assert_eq!(threshold, u64::MAX);
    ok(cu!(cuMemPoolDestroy(pool)));
    assert_eq!(cu!(cuMemPoolTrimTo(pool, 0)), CUresult::INVALID_VALUE);
}

/// A fat binary with one plain entry.
fn fatbin(kind: u16, sm: u32, payload: &[u8]) -> Vec<u8> {
    let padded = payload.len().next_multiple_of(8);
    let mut bytes = Vec::new();
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend([1, 0, 16, 0]);
    bytes.extend((64 + padded as u64).to_le_bytes());
    let mut entry = [0u8; 64];
    entry[..2].copy_from_slice(&kind.to_le_bytes());
    entry[4] = 64;
    entry[8..16].copy_from_slice(&(padded as u64).to_le_bytes());
    entry[28..32].copy_from_slice(&sm.to_le_bytes());
    bytes.extend(entry);
    bytes.extend(payload);
    bytes.resize(16 + 64 + padded, 0);
    bytes
}

/// The start of an ELF file that is no cubin.
fn elf_header() -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(64, 0);
    header
}

#[test]
fn images_of_every_kind_are_loaded_or_refused() {
    let _turn = start();
    let load = |image: *const c_void| {
        let mut module = null_mut();
        (cu!(cuModuleLoadData(&mut module, image)), module)
    };
    let good = fatbin(1, 80, PTX.to_bytes_with_nul());
    let wrapper = [
        0x0000_0001_4662_43b1u64,
        good.as_ptr().expose_provenance() as u64,
        0,
    ];
    for image in [
        PTX.as_ptr().cast(),
        good.as_ptr().cast(),
        wrapper.as_ptr().cast::<c_void>(),
    ] {
        let (result, module) = load(image);
        ok(result);
        let (mut address, mut bytes) = (0, 0);
        ok(cu!(cuModuleGetGlobal_v2(
            &mut address,
            &mut bytes,
            module,
            c"word".as_ptr()
        )));
        assert_eq!(bytes, 4);
        assert_eq!(read(address, 4), 77u32.to_le_bytes());
        let missing = cu!(cuModuleGetGlobal_v2(
            &mut address,
            &mut bytes,
            module,
            c"x".as_ptr()
        ));
        assert_eq!(missing, CUresult::NOT_FOUND);
        ok(cu!(cuModuleUnload(module)));
        assert_eq!(cu!(cuModuleUnload(module)), CUresult::INVALID_HANDLE);
    }
    for (image, code) in [
        (
            fatbin(1, 100, PTX.to_bytes_with_nul()),
            CUresult::NO_BINARY_FOR_GPU,
        ),
        (fatbin(2, 90, b"\x7fELF"), CUresult::NO_BINARY_FOR_GPU),
        (
            b"\x7fELF\x02\x01\x01\0".to_vec(),
            CUresult::NO_BINARY_FOR_GPU,
        ),
        (b"no ptx\0".to_vec(), CUresult::INVALID_IMAGE),
        (b"\0".to_vec(), CUresult::INVALID_IMAGE),
    ] {
        assert_eq!(load(image.as_ptr().cast()).0, code);
    }
    assert_eq!(load(null()).0, CUresult::INVALID_VALUE);
    // Why, for a program that asks.
    let mut log = [0u8; 200];
    let mut options = [
        jit_option::ERROR_LOG_BUFFER,
        jit_option::ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [
        log.as_mut_ptr().cast::<c_void>(),
        std::ptr::without_provenance_mut(200),
    ];
    let cubin = elf_header();
    let mut module = null_mut();
    let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
    let image = cubin.as_ptr().cast();
    let result = cu!(cuModuleLoadDataEx(&mut module, image, 2, options, values));
    assert_eq!(result, CUresult::NO_BINARY_FOR_GPU);
    let text = CStr::from_bytes_until_nul(&log)
        .expect("a text")
        .to_string_lossy();
    assert!(text.contains("cubin"), "{text}");
}

#[test]
fn relocatable_code_is_linked_when_it_is_loaded() {
    let _turn = start();
    let head = ".version 7.0\n.target sm_70\n.address_size 64\n";
    let needy = format!("{head}.extern .func helper();\n.visible .entry k() {{ ret; }}\n\0");
    let plain = format!("{head}.visible .entry other() {{ ret; }}\n\0");
    let helper = format!("{head}.visible .func helper() {{ ret; }}\n\0");
    let units = [
        PTX.to_bytes_with_nul(),
        plain.as_bytes(),
        needy.as_bytes(),
        helper.as_bytes(),
    ];
    let units = units.map(|text| fatbin(1, 70, text));
    let address = |bytes: &[u8]| bytes.as_ptr().expose_provenance() as u64;
    let load = |units: &[Vec<u8>]| {
        let mut list: Vec<u64> = units.iter().map(|unit| address(unit)).collect();
        list.push(0);
        // The first address would be that of the linked cubin.
        let list = list.as_ptr().expose_provenance() as u64;
        let wrapper = [0x0000_0002_4662_43b1u64, 0, list];
        let mut module = null_mut();
        let result = cu!(cuModuleLoadData(&mut module, wrapper.as_ptr().cast()));
        (result, module)
    };
    let (result, module) = load(&units[..2]);
    ok(result);
    let mut function = null_mut();
    for name in [c"nothing", c"other"] {
        ok(cu!(cuModuleGetFunction(
            &mut function,
            module,
            name.as_ptr()
        )));
    }
    assert_eq!(load(&units[..3]).0, CUresult::INVALID_PTX);
    ok(load(&units).0);
    ok(load(&[]).0);
}

#[test]
fn libraries_give_kernels_that_functions_are_made_of() {
    let _turn = start();
    let mut library = null_mut();
    let code = PTX.as_ptr().cast();
    let (none, no_values) = (null_mut(), null_mut());
    ok(cu!(cuLibraryLoadData(
        &mut library,
        code,
        none,
        no_values,
        0,
        none,
        no_values,
        0
    )));
    let (mut kernel, mut again, mut function) = (null_mut(), null_mut(), null_mut());
    ok(cu!(cuLibraryGetKernel(
        &mut kernel,
        library,
        c"nothing".as_ptr()
    )));
    ok(cu!(cuLibraryGetKernel(
        &mut again,
        library,
        c"nothing".as_ptr()
    )));
    assert_eq!(kernel, again);
    ok(cu!(cuKernelGetFunction(&mut function, kernel)));
    let mut name = null();
    ok(cu!(cuFuncGetName(&mut name, function)));
    // SAFETY: the call gave us a string that lives as long as the library.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"nothing");
    let (mut offset, mut size, mut count) = (0, 0, 0);
    ok(cu!(cuKernelGetParamInfo(kernel, 2, &mut offset, &mut size)));
    assert_eq!((offset, size), (12, 4));
    ok(cu!(cuLibraryGetKernelCount(&mut count, library)));
    assert_eq!(count, 1);
    let mut value = 0;
    ok(cu!(cuKernelGetAttribute(
        &mut value,
        function_attribute::MAX_THREADS_PER_BLOCK,
        kernel,
        0
    )));
    assert_eq!(value, 64);
    let dynamic = function_attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES;
    ok(cu!(cuFuncSetAttribute(function, dynamic, 200_000)));
    ok(cu!(cuFuncGetAttribute(&mut value, dynamic, function)));
    assert_eq!(value, 200_000);
    assert_eq!(
        cu!(cuFuncSetAttribute(function, dynamic, 300_000)),
        CUresult::INVALID_VALUE
    );
    let (mut a, mut b, mut c) = (0u64, 0u8, 0u32);
    let mut params = [
        (&raw mut a).cast::<c_void>(),
        (&raw mut b).cast(),
        (&raw mut c).cast(),
    ];
    let (p, none) = (params.as_mut_ptr(), null_mut());
    let launch = |threads, cluster: [u32; 3]| {
        let [x, y, z] = cluster.map(u64::from);
        let mut attribute = CUlaunchAttribute {
            id: launch_attribute::CLUSTER_DIMENSION,
            value: [x | y << 32, z, 0, 0, 0, 0, 0, 0],
            ..CUlaunchAttribute::default()
        };
        let config = CUlaunchConfig {
            grid_dim_x: 6,
            grid_dim_y: 1,
            grid_dim_z: 1,
            block_dim_x: threads,
            block_dim_y: 1,
            block_dim_z: 1,
            attrs: &mut attribute,
            num_attrs: 1,
            ..CUlaunchConfig::default()
        };
        cu!(cuLaunchKernelEx(&config, kernel.cast(), p, none))
    };
    ok(launch(64, [2, 1, 1]));
    assert_eq!(launch(65, [2, 1, 1]), CUresult::INVALID_VALUE);
    assert_eq!(launch(64, [4, 1, 1]), CUresult::INVALID_CLUSTER_SIZE);
    assert_eq!(launch(64, [0, 1, 1]), CUresult::INVALID_CLUSTER_SIZE);
    ok(cu!(cuLibraryUnload(library)));
    assert_eq!(cu!(cuFuncLoad(function)), CUresult::INVALID_HANDLE);
    assert_eq!(cu!(cuLibraryUnload(library)), CUresult::INVALID_HANDLE);
}

#[test]
fn contexts_stack_per_thread() {
    let _turn = start();
    let (mut base, mut one, mut top, mut popped) = (null_mut(), null_mut(), null_mut(), null_mut());
    ok(cu!(cuCtxGetCurrent(&mut base)));
    ok(cu!(cuCtxCreate_v2(&mut one, 0, 0)));
    ok(cu!(cuCtxGetCurrent(&mut top)));
    assert_eq!(top, one);
    let there = std::thread::spawn(|| {
        let mut context = std::ptr::without_provenance_mut(1);
        ok(cu!(cuCtxGetCurrent(&mut context)));
        assert_eq!(cu!(cuCtxSynchronize()), CUresult::INVALID_CONTEXT);
        context.is_null()
    });
    assert!(there.join().expect("the thread ends"));
    let mut stream = null_mut();
    ok(cu!(cuStreamCreate(&mut stream, 0)));
    ok(cu!(cuCtxPopCurrent_v2(&mut popped)));
    assert_eq!(popped, one);
    ok(cu!(cuCtxGetCurrent(&mut top)));
    assert_eq!(top, base);
    ok(cu!(cuCtxDestroy_v2(one)));
    assert_eq!(cu!(cuCtxPushCurrent_v2(one)), CUresult::INVALID_CONTEXT);
    assert_eq!(cu!(cuStreamSynchronize(stream)), CUresult::INVALID_HANDLE);
    assert_eq!(cu!(cuCtxDestroy_v2(base)), CUresult::INVALID_CONTEXT);
}

#[test]
fn captures_join_and_must_end_where_they_began() {
    let _turn = start();
    let (mut one, mut two, mut event, mut graph) = (null_mut(), null_mut(), null_mut(), null_mut());
    ok(cu!(cuStreamCreate(&mut one, 1)));
    ok(cu!(cuStreamCreate(&mut two, 1)));
    ok(cu!(cuEventCreate(&mut event, 2)));
    let address = alloc(16);
    ok(cu!(cuStreamBeginCapture_v2(one, 2)));
    ok(cu!(cuMemsetD8Async(address, 1, 8, one)));
    ok(cu!(cuEventRecord(event, one)));
    assert_eq!(cu!(cuEventQuery(event)), CUresult::CAPTURED_EVENT);
    ok(cu!(cuStreamWaitEvent(two, event, 0)));
    ok(cu!(cuMemsetD8Async(address + 8, 2, 8, two)));
    assert_eq!(read(address, 16), [0; 16]);
    assert_eq!(
        cu!(cuStreamEndCapture(two, &mut graph)),
        CUresult::STREAM_CAPTURE_UNMATCHED
    );
    ok(cu!(cuEventRecord(event, two)));
    ok(cu!(cuStreamWaitEvent(one, event, 0)));
    ok(cu!(cuStreamEndCapture(one, &mut graph)));
    ok(cu!(cuStreamSynchronize(two)));
    let mut count = 0;
    ok(cu!(cuGraphGetNodes(graph, null_mut(), &mut count)));
    assert_eq!(count, 2);
    let mut exec = null_mut();
    ok(cu!(cuGraphInstantiateWithFlags(&mut exec, graph, 0)));
    ok(cu!(cuGraphDestroy(graph)));
    ok(cu!(cuGraphLaunch(exec, one)));
    assert_eq!(read(address, 16), [[1; 8], [2; 8]].concat());
    ok(cu!(cuGraphExecDestroy(exec)));
    ok(cu!(cuMemFree_v2(address)));
}

#[test]
fn null_results_and_bad_handles_are_errors() {
    let _turn = start();
    assert_eq!(cu!(cuInit(1)), CUresult::INVALID_VALUE);
    assert_eq!(cu!(cuDeviceGetCount(null_mut())), CUresult::INVALID_VALUE);
    assert_eq!(cu!(cuDeviceGet(null_mut(), 0)), CUresult::INVALID_VALUE);
    let mut device = 0;
    assert_eq!(cu!(cuDeviceGet(&mut device, 1)), CUresult::INVALID_DEVICE);
    assert_eq!(
        cu!(cuStreamQuery(std::ptr::without_provenance_mut(99))),
        CUresult::INVALID_HANDLE
    );
    assert_eq!(cu!(cuEventQuery(null_mut())), CUresult::INVALID_HANDLE);
    let mut table = null();
    let id = CUuuid::default();
    assert_eq!(cu!(cuGetExportTable(&mut table, &id)), CUresult::NOT_FOUND);
    let mut name = null();
    assert_eq!(
        cu!(cuGetErrorName(CUresult(12345), &mut name)),
        CUresult::INVALID_VALUE
    );
    ok(cu!(cuGetErrorString(CUresult::ILLEGAL_ADDRESS, &mut name)));
    // SAFETY: the call gave us a string of the library.
    let text = unsafe { CStr::from_ptr(name) };
    assert_eq!(text, c"an illegal memory access was encountered");
}
