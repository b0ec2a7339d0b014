//! Libraries and kernels that a program loads itself, and memory pools.

use std::ffi::{c_char, c_int, c_uint, c_void};

use driver::sys::{
    CUkernel, CUlaunchConfig, CUlibrary, CUmemAccessDesc, CUmemLocation, CUmemPoolProps,
    CUmemoryPool, CUstream, CUstreamAttrID, CUstreamAttrValue,
};

use crate::context::{context, driver};
use crate::entry::{entry, ignored};
use crate::error::{Error, check, out};
use crate::function::function;
use crate::launch::{LaunchConfig, of_config};

/// The device of a location; pools of host memory are not there.
fn device_of(location: Option<&CUmemLocation>) -> Result<c_int, Error> {
    match location {
        Some(location) if location.kind == 1 => Ok(location.id),
        Some(_) => Err(Error::NOT_SUPPORTED),
        None => Err(Error::INVALID_VALUE),
    }
}

/// What is filled in for a launch that is only asked about.
unsafe fn config(of: *const LaunchConfig) -> Result<CUlaunchConfig, Error> {
    // SAFETY: the caller's pointer is null or valid.
    of_config(unsafe { of.as_ref() }.ok_or(Error::INVALID_VALUE)?)
}

entry! {
    fn cudaLibraryLoadData(
        library: *mut CUlibrary, code: *const c_void, _jit: *mut c_int, _jit_values: *mut *mut c_void,
        _jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint
    ) {
        // The runtime numbers the compiler's options differently; they are about its messages and speed.
        check(context()?.cuLibraryLoadData(
            library, code, std::ptr::null_mut(), std::ptr::null_mut(), 0, options, values, count))
    }

    fn cudaLibraryLoadFromFile(
        library: *mut CUlibrary, path: *const c_char, _jit: *mut c_int, _jit_values: *mut *mut c_void,
        _jit_count: c_uint, options: *mut c_int, values: *mut *mut c_void, count: c_uint
    ) {
        check(context()?.cuLibraryLoadFromFile(
            library, path, std::ptr::null_mut(), std::ptr::null_mut(), 0, options, values, count))
    }

    fn cudaLibraryUnload(library: CUlibrary) {
        check(context()?.cuLibraryUnload(library))
    }

    fn cudaLibraryGetKernel(kernel: *mut CUkernel, library: CUlibrary, name: *const c_char) {
        check(context()?.cuLibraryGetKernel(kernel, library, name))
    }

    fn cudaLibraryGetKernelCount(count: *mut c_uint, library: CUlibrary) {
        check(context()?.cuLibraryGetKernelCount(count, library))
    }

    fn cudaLibraryEnumerateKernels(kernels: *mut CUkernel, room: c_uint, library: CUlibrary) {
        check(context()?.cuLibraryEnumerateKernels(kernels, room, library))
    }

    fn cudaLibraryGetGlobal(
        address: *mut u64, bytes: *mut usize, library: CUlibrary, name: *const c_char
    ) {
        check(context()?.cuLibraryGetGlobal(address, bytes, library, name))
    }

    fn cudaLibraryGetManaged(
        address: *mut u64, bytes: *mut usize, library: CUlibrary, name: *const c_char
    ) {
        check(context()?.cuLibraryGetManaged(address, bytes, library, name))
    }

    fn cudaLibraryGetUnifiedFunction(
        function: *mut *mut c_void, library: CUlibrary, name: *const c_char
    ) {
        check(context()?.cuLibraryGetUnifiedFunction(function, library, name))
    }

    fn cudaOccupancyMaxActiveClusters(
        clusters: *mut c_int, host: *const c_void, of: *const LaunchConfig
    ) {
        check(context()?.cuOccupancyMaxActiveClusters(clusters, function(host)?, &config(of)?))
    }

    fn cudaOccupancyMaxPotentialClusterSize(
        size: *mut c_int, host: *const c_void, of: *const LaunchConfig
    ) {
        check(context()?.cuOccupancyMaxPotentialClusterSize(size, function(host)?, &config(of)?))
    }

    fn cudaMemPoolCreate(pool: *mut CUmemoryPool, props: *const CUmemPoolProps) {
        check(context()?.cuMemPoolCreate(pool, props))
    }

    fn cudaMemPoolSetAccess(pool: CUmemoryPool, list: *const CUmemAccessDesc, count: usize) {
        check(context()?.cuMemPoolSetAccess(pool, list, count))
    }

    fn cudaMemPoolGetAccess(flags: *mut c_int, pool: CUmemoryPool, location: *mut CUmemLocation) {
        check(context()?.cuMemPoolGetAccess(flags, pool, location))
    }

    fn cudaMemGetDefaultMemPool(
        pool: *mut CUmemoryPool, location: *mut CUmemLocation, _kind: c_int
    ) {
        check(driver()?.cuDeviceGetDefaultMemPool(pool, device_of(location.as_ref())?))
    }

    fn cudaMemGetMemPool(pool: *mut CUmemoryPool, location: *mut CUmemLocation, _kind: c_int) {
        check(driver()?.cuDeviceGetMemPool(pool, device_of(location.as_ref())?))
    }

    fn cudaMemSetMemPool(location: *mut CUmemLocation, _kind: c_int, pool: CUmemoryPool) {
        check(driver()?.cuDeviceSetMemPool(device_of(location.as_ref())?, pool))
    }

    fn cudaMemRangeGetAttribute(
        data: *mut c_void, bytes: usize, attribute: c_int, pointer: *const c_void, count: usize
    ) {
        check(context()?.cuMemRangeGetAttribute(data, bytes, attribute, pointer as u64, count))
    }

    fn cudaMemRangeGetAttributes(
        data: *mut *mut c_void, bytes: *mut usize, attributes: *mut c_int, length: usize,
        pointer: *const c_void, count: usize
    ) {
        let api = context()?;
        if data.is_null() || bytes.is_null() || attributes.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        for index in 0..length {
            let (data, bytes) = (*data.add(index), *bytes.add(index));
            let attribute = *attributes.add(index);
            check(api.cuMemRangeGetAttribute(data, bytes, attribute, pointer as u64, count))?;
        }
        Ok(())
    }

    fn cudaStreamGetAttribute(
        stream: CUstream, attribute: CUstreamAttrID, value: *mut CUstreamAttrValue
    ) as cudaStreamGetAttribute_ptsz {
        check(context()?.cuStreamGetAttribute(stream, attribute, value))
    }

    fn cudaStreamSetAttribute(
        stream: CUstream, attribute: CUstreamAttrID, value: *const CUstreamAttrValue
    ) as cudaStreamSetAttribute_ptsz {
        check(context()?.cuStreamSetAttribute(stream, attribute, value))
    }

    fn cudaStreamCopyAttributes(to: CUstream, from: CUstream) as cudaStreamCopyAttributes_ptsz {
        check(context()?.cuStreamCopyAttributes(to, from))
    }

    fn cudaSetDoubleForDevice(value: *mut f64) {
        ignored("the device has doubles");
        out(value).map(drop)
    }

    fn cudaSetDoubleForHost(value: *mut f64) {
        ignored("the device has doubles");
        out(value).map(drop)
    }
}
