//! Programs that nvcc made, on the simulated device.
#![allow(non_snake_case, reason = "entry points keep their C names")]

use std::ffi::{CString, c_void};
use std::process::Command;
use std::ptr::null_mut;

use cudarun_shim_cuda::exports::*;

use crate::common::{ok, start};

const PROGRAM: &str = r#"
__managed__ int total;
__constant__ int factor = 3;
extern "C" __global__ void sum(const int* in, int n) {
    __shared__ int part[128];
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = at < n ? in[at] * factor : 0;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(&total, part[0]);
}
"#;

#[test]
fn a_fat_binary_of_nvcc_runs() {
    let nvcc = toolkit::require("nvcc").expect("nvcc");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("program.cu");
    std::fs::write(&source, PROGRAM).expect("a writable folder");
    let image = folder.path().join("program.fatbin");
    let built = Command::new(nvcc)
        .args([
            "-O2",
            "-lineinfo",
            "-gencode=arch=compute_90,code=[sm_90,compute_90]",
            "-fatbin",
        ])
        .arg("-o")
        .args([&image, &source])
        .output()
        .expect("nvcc runs");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let image = CString::new(image.to_string_lossy().as_bytes()).expect("a path");

    let (mut library, mut kernel) = (null_mut(), null_mut());
    let (mut input, mut total, mut bytes) = (0, 0, 0);
    let mut count = 1000i32;
    let host: Vec<i32> = (0..count).collect();
    let _turn = start();
    // SAFETY: the arguments are what the documentation of each call asks for.
    unsafe {
        let (none, values) = (null_mut(), null_mut());
        ok(cuLibraryLoadFromFile(
            &mut library,
            image.as_ptr(),
            none,
            values,
            0,
            none,
            values,
            0,
        ));
        ok(cuLibraryGetKernel(&mut kernel, library, c"sum".as_ptr()));
        ok(cuLibraryGetManaged(
            &mut total,
            &mut bytes,
            library,
            c"total".as_ptr(),
        ));
        ok(cuMemAlloc_v2(&mut input, 4000));
        ok(cuMemcpyHtoD_v2(input, host.as_ptr().cast(), 4000));
        let mut params = [(&raw mut input).cast::<c_void>(), (&raw mut count).cast()];
        let (params, extra) = (params.as_mut_ptr(), null_mut());
        let function = kernel.cast();
        ok(cuLaunchKernel(
            function,
            8,
            1,
            1,
            128,
            1,
            1,
            0,
            null_mut(),
            params,
            extra,
        ));
        ok(cuCtxSynchronize());
        // The host reads the managed variable where the device wrote it.
        let there = std::ptr::with_exposed_provenance::<i32>(total as usize);
        assert_eq!((bytes, *there), (4, 3 * 999 * 1000 / 2));
        ok(cuDevicePrimaryCtxReset_v2(0));
        // Variables of a library start over with the next context.
        ok(cuLibraryGetManaged(
            &mut total,
            &mut bytes,
            library,
            c"total".as_ptr(),
        ));
        assert_eq!(*std::ptr::with_exposed_provenance::<i32>(total as usize), 0);
        ok(cuLibraryUnload(library));
    }
}
