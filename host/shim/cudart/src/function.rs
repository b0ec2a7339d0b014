//! Attributes of kernels, and occupancy.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use driver::sys::{CUfunction, CUkernel};

use crate::context::context;
use crate::entry::entry;
use crate::error::{Error, check, out};
use crate::registration::kernel;

/// `cudaFuncAttributes`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FuncAttributes {
    shared_bytes: usize,
    const_bytes: usize,
    local_bytes: usize,
    max_threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode_ca: c_int,
    max_dynamic_shared: c_int,
    preferred_carveout: c_int,
    cluster_must_be_set: c_int,
    required_cluster: [c_int; 3],
    cluster_policy: c_int,
    non_portable_cluster: c_int,
    reserved: [c_int; 16],
}

entry! {
    fn cudaFuncGetAttributes(attributes: *mut FuncAttributes, host: *const c_void) {
        let function = function(host)?;
        let ask = |id| attribute(function, id);
        *out(attributes)? = FuncAttributes {
            shared_bytes: ask(1)? as usize,
            const_bytes: ask(2)? as usize,
            local_bytes: ask(3)? as usize,
            max_threads: ask(0)?,
            registers: ask(4)?,
            ptx_version: ask(5)?,
            binary_version: ask(6)?,
            cache_mode_ca: ask(7)?,
            max_dynamic_shared: ask(8)?,
            preferred_carveout: ask(9)?,
            cluster_must_be_set: ask(10)?,
            required_cluster: [ask(11)?, ask(12)?, ask(13)?],
            cluster_policy: ask(15)?,
            non_portable_cluster: ask(14)?,
            reserved: [0; 16],
        };
        Ok(())
    }

    fn cudaFuncSetAttribute(host: *const c_void, attribute: c_int, value: c_int) {
        // The runtime API numbers them as the driver API does.
        check(context()?.cuFuncSetAttribute(function(host)?, attribute, value))
    }

    fn cudaFuncSetCacheConfig(host: *const c_void, config: c_int) {
        check(context()?.cuFuncSetCacheConfig(function(host)?, config))
    }

    fn cudaFuncSetSharedMemConfig(host: *const c_void, config: c_int) {
        check(context()?.cuFuncSetSharedMemConfig(function(host)?, config))
    }

    fn cudaFuncGetName(name: *mut *const c_char, host: *const c_void) {
        check(context()?.cuKernelGetName(name, kernel(host)?))
    }

    fn cudaFuncGetParamInfo(host: *const c_void, index: usize, offset: *mut usize, bytes: *mut usize) {
        check(context()?.cuKernelGetParamInfo(kernel(host)?, index, offset, bytes))
    }

    fn cudaKernelSetAttributeForDevice(kernel: CUkernel, attribute: c_int, value: c_int, of: c_int) {
        check(context()?.cuKernelSetAttribute(attribute, value, kernel, of))
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int, host: *const c_void, block_size: c_int, dynamic_shared: usize
    ) {
        check(context()?.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            blocks, function(host)?, block_size, dynamic_shared))
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut c_int, host: *const c_void, block_size: c_int, dynamic_shared: usize, flags: c_uint
    ) {
        check(context()?.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            blocks, function(host)?, block_size, dynamic_shared, flags))
    }

    fn cudaOccupancyAvailableDynamicSMemPerBlock(
        bytes: *mut usize, host: *const c_void, blocks: c_int, block_size: c_int
    ) {
        check(context()?.cuOccupancyAvailableDynamicSMemPerBlock(
            bytes, function(host)?, blocks, block_size))
    }
}

/// The kernel of a host stub, as attributes and occupancy are asked of it.
pub(crate) fn function(host: *const c_void) -> Result<CUfunction, Error> {
    let mut function: CUfunction = null_mut();
    // SAFETY: the kernel is loaded, the out parameter outlives the call.
    check(unsafe { context()?.cuKernelGetFunction(&mut function, kernel(host)?) })?;
    Ok(function)
}

fn attribute(function: CUfunction, id: c_int) -> Result<c_int, Error> {
    let mut value = 0;
    // SAFETY: as above.
    check(unsafe { context()?.cuFuncGetAttribute(&mut value, id, function) })?;
    Ok(value)
}
