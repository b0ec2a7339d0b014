//! Devices: which, how many, limits, versions.

use std::ffi::{c_char, c_int, c_uint, c_void};

use driver::sys::{CUdriverProcAddressQueryResult, CUresult};

use crate::context::{self, context, device, driver, is_cuda_12};
use crate::entry::{entry, ignored};
use crate::error::{Error, check, out};
use crate::registration;

/// The answer to a search for a function of the driver: whoever asks for the status reads there that there is
/// none, and gets a null pointer.
fn found(result: CUresult, status: *mut CUdriverProcAddressQueryResult) -> Result<(), Error> {
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
        found(driver()?.cuGetProcAddress(symbol, function, 12080, flags, status), status)
    }

    fn cudaGetDriverEntryPointByVersion(
        symbol: *const c_char, function: *mut *mut c_void, version: c_uint, flags: u64,
        status: *mut CUdriverProcAddressQueryResult
    ) as cudaGetDriverEntryPointByVersion_ptsz {
        let version = c_int::try_from(version).map_err(|_| Error::INVALID_VALUE)?;
        found(driver()?.cuGetProcAddress(symbol, function, version, flags, status), status)
    }
}
