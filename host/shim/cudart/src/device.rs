//! Devices: which, how many, limits, versions.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use driver::sys::{
    CUdriverProcAddressQueryResult, CUresult, FUNCTION_NAMES, find_symbol, proc_address,
};

use crate::context::{self, context, device, driver, is_cuda_12};
use crate::entry::{entry, ignored};
use crate::error::{Error, check, out};
use crate::registration;
use crate::stubs::missing;

/// The arguments of `cudaGetDriverEntryPoint`.
#[derive(Clone, Copy)]
struct Search {
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut CUdriverProcAddressQueryResult,
}

/// Whether the headers of CUDA know a function of the driver, in a version as old as the program asks for.
fn has(name: &str, version: c_int, flags: u64) -> bool {
    let too_old = Err(proc_address::VERSION_NOT_SUFFICIENT);
    let named = |known: &&str| {
        let rest = known.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("_v"))
    };
    FUNCTION_NAMES.iter().any(named) && find_symbol(name, version, flags) != too_old
}

/// Finds a function of the driver. If a GPU's driver has it and this one does not, the run is incomplete: the program may
/// now launch another kernel than on a GPU. Calls of `cuGetProcAddress` do not count, because libraries look up functions
/// by it that they never call.
///
/// # Safety
/// As `cudaGetDriverEntryPoint`.
unsafe fn look_up(search: Search) -> Result<(), Error> {
    let Search {
        symbol,
        function,
        version,
        flags,
        status,
    } = search;
    // SAFETY: by the contract.
    let result = unsafe { driver()?.cuGetProcAddress(symbol, function, version, flags, status) };
    if result == CUresult::NOT_FOUND {
        // SAFETY: the driver has read the name.
        let name = unsafe { CStr::from_ptr(symbol) }.to_string_lossy();
        if has(&name, version, flags) {
            missing(&name);
        }
    }
    // With a status, a missing function is no error: the program gets a null pointer and the status.
    match result {
        CUresult::NOT_FOUND if !status.is_null() => Ok(()),
        result => check(result),
    }
}

entry! {
    fn cudaGetDeviceCount(count: *mut c_int) {
        check(driver()?.cuDeviceGetCount(count))?;
        // No device is an error here, unlike in the driver API.
        if *count == 0 { Err(Error(100)) } else { Ok(()) }
    }

    fn cudaSetDevice(to: c_int) {
        context::set_device(to)
    }

    fn cudaInitDevice(to: c_int, _device_flags: c_uint, _flags: c_uint) {
        context::set_device(to)
    }

    fn cudaGetDevice(current: *mut c_int) {
        driver()?;
        *out(current)? = device();
        Ok(())
    }

    fn cudaSetValidDevices(_devices: *mut c_int, _count: c_int) {
        ignored("there is one device");
        driver().map(drop)
    }

    fn cudaDeviceReset() {
        registration::forget_loaded();
        context::reset()
    }

    fn cudaThreadExit() {
        registration::forget_loaded();
        context::reset()
    }

    fn cudaDeviceGetAttribute(value: *mut c_int, attribute: c_int, of: c_int) {
        // The runtime API numbers attributes as the driver API does.
        check(driver()?.cuDeviceGetAttribute(value, attribute, of))
    }

    fn cudaDeviceGetP2PAttribute(value: *mut c_int, attribute: c_int, from: c_int, to: c_int) {
        check(driver()?.cuDeviceGetP2PAttribute(value, attribute, from, to))
    }

    fn cudaDeviceGetPCIBusId(text: *mut c_char, length: c_int, of: c_int) {
        check(driver()?.cuDeviceGetPCIBusId(text, length, of))
    }

    fn cudaDeviceGetByPCIBusId(found: *mut c_int, text: *const c_char) {
        check(driver()?.cuDeviceGetByPCIBusId(found, text))
    }

    fn cudaDeviceCanAccessPeer(can: *mut c_int, of: c_int, peer: c_int) {
        check(driver()?.cuDeviceCanAccessPeer(can, of, peer))
    }

    fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) {
        let api = context()?;
        check(api.cuCtxEnablePeerAccess(context::peer(api, peer)?, flags))
    }

    fn cudaDeviceDisablePeerAccess(peer: c_int) {
        let api = context()?;
        check(api.cuCtxDisablePeerAccess(context::peer(api, peer)?))
    }

    fn cudaDeviceGetLimit(value: *mut usize, limit: c_int) {
        check(context()?.cuCtxGetLimit(value, limit))
    }

    fn cudaThreadGetLimit(value: *mut usize, limit: c_int) {
        check(context()?.cuCtxGetLimit(value, limit))
    }

    fn cudaDeviceSetLimit(limit: c_int, value: usize) {
        check(context()?.cuCtxSetLimit(limit, value))
    }

    fn cudaThreadSetLimit(limit: c_int, value: usize) {
        check(context()?.cuCtxSetLimit(limit, value))
    }

    fn cudaDeviceGetCacheConfig(config: *mut c_int) {
        check(context()?.cuCtxGetCacheConfig(config))
    }

    fn cudaThreadGetCacheConfig(config: *mut c_int) {
        check(context()?.cuCtxGetCacheConfig(config))
    }

    fn cudaDeviceSetCacheConfig(config: c_int) {
        check(context()?.cuCtxSetCacheConfig(config))
    }

    fn cudaThreadSetCacheConfig(config: c_int) {
        check(context()?.cuCtxSetCacheConfig(config))
    }

    fn cudaDeviceGetSharedMemConfig(config: *mut c_int) {
        check(context()?.cuCtxGetSharedMemConfig(config))
    }

    fn cudaDeviceSetSharedMemConfig(config: c_int) {
        check(context()?.cuCtxSetSharedMemConfig(config))
    }

    fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        check(context()?.cuCtxGetStreamPriorityRange(least, greatest))
    }

    fn cudaGetDeviceFlags(flags: *mut c_uint) {
        check(context()?.cuCtxGetFlags(flags))
    }

    fn cudaSetDeviceFlags(flags: c_uint) {
        check(driver()?.cuDevicePrimaryCtxSetFlags(device(), flags))
    }

    fn cudaDriverGetVersion(version: *mut c_int) {
        // Works, and says 0, also where no driver can be loaded.
        let version = out(version)?;
        *version = 0;
        driver().map_or(Ok(()), |api| check(api.cuDriverGetVersion(version)))
    }

    fn cudaRuntimeGetVersion(version: *mut c_int) {
        *out(version)? = if is_cuda_12() { 12080 } else { 13000 };
        Ok(())
    }

    fn cudaGetDriverEntryPoint(
        symbol: *const c_char, function: *mut *mut c_void, flags: u64, status: *mut CUdriverProcAddressQueryResult
    ) as cudaGetDriverEntryPoint_ptsz {
        look_up(Search { symbol, function, version: 12080, flags, status })
    }

    fn cudaGetDriverEntryPointByVersion(
        symbol: *const c_char, function: *mut *mut c_void, version: c_uint, flags: u64,
        status: *mut CUdriverProcAddressQueryResult
    ) as cudaGetDriverEntryPointByVersion_ptsz {
        let version = c_int::try_from(version).map_err(|_| Error::INVALID_VALUE)?;
        look_up(Search { symbol, function, version, flags, status })
    }
}

#[cfg(test)]
mod tests {
    use super::has;

    #[test]
    fn a_gpus_driver_has_what_its_headers_know() {
        for (name, version, has_it) in [
            ("cuTensorMapEncodeTiled", 12000, true),
            ("cuMemAlloc", 12000, true),
            ("cuMemAlloc", 2000, false),
            ("cuNoSuchFunction", 12000, false),
            ("cuMem", 12000, false),
            ("", 12000, false),
        ] {
            assert_eq!(has(name, version, 0), has_it, "{name} {version}");
        }
    }
}
