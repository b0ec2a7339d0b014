//! What a program asks about its kernels: it is told what holds for them without checks, so that it launches the same
//! shapes ([`crate::own`]).

use std::ffi::{c_int, c_uint};

use driver::sys::*;

use crate::own::{Handle, device};
use crate::state::with_started;

/// Attributes that checks change.
const CHANGED: [CUfunction_attribute; 8] = [
    function_attribute::MAX_THREADS_PER_BLOCK,
    function_attribute::SHARED_SIZE_BYTES,
    function_attribute::CONST_SIZE_BYTES,
    function_attribute::LOCAL_SIZE_BYTES,
    function_attribute::NUM_REGS,
    function_attribute::PTX_VERSION,
    function_attribute::BINARY_VERSION,
    function_attribute::CACHE_MODE_CA,
];

/// The kernel without checks of a function or kernel with them; none where the driver does not take it, and for a kernel
/// whose blocks wait for one another if that is not `allowed`.
fn own(real: &'static Api, handle: u64, allowed: bool) -> Option<CUkernel> {
    let found = with_started(|state| {
        let function = state.functions.get(&handle)?;
        let own = state.modules.get(&function.module)?.own.clone()?;
        Some((own, function.name.clone(), function.kernel))
    });
    let (own, name, kernel) = found.flatten()?;
    let checked = Handle {
        number: handle,
        kernel,
    };
    match allowed || !own.waits(&name) {
        true => own.kernel(real, &name, checked),
        false => None,
    }
}

/// Asks about occupancy: of the kernel without checks, and of the one with them if that has no answer.
fn ask(
    real: &'static Api,
    func: CUfunction,
    allowed: bool,
    ask: impl Fn(CUfunction) -> CUresult,
) -> CUresult {
    let own = own(real, func.expose_provenance() as u64, allowed);
    // Such calls take kernels of libraries too.
    match own.map(|own| ask(own.cast())) {
        Some(CUresult::SUCCESS) => CUresult::SUCCESS,
        _ => ask(func),
    }
}

/// Asks for an attribute of the kernel without checks, if it may differ; whether there is an answer.
///
/// # Safety
/// `value` takes the answer.
unsafe fn attribute(
    real: &'static Api,
    value: *mut c_int,
    id: CUfunction_attribute,
    handle: u64,
    of: Option<CUdevice>,
) -> bool {
    let kernel = match CHANGED.contains(&id) {
        true => own(real, handle, true),
        false => None,
    };
    let (Some(kernel), Some(device)) = (kernel, of.or_else(|| device(real))) else {
        return false;
    };
    // SAFETY: the kernel lives, and by the contract.
    let known = unsafe { real.cuKernelGetAttribute(value, id, kernel, device) };
    known == CUresult::SUCCESS
}

pub(crate) unsafe fn cuFuncGetAttribute(
    real: &'static Api,
    value: *mut c_int,
    attrib: CUfunction_attribute,
    func: CUfunction,
) -> CUresult {
    let handle = func.expose_provenance() as u64;
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        match attribute(real, value, attrib, handle, None) {
            true => CUresult::SUCCESS,
            false => real.cuFuncGetAttribute(value, attrib, func),
        }
    }
}

pub(crate) unsafe fn cuKernelGetAttribute(
    real: &'static Api,
    value: *mut c_int,
    attrib: CUfunction_attribute,
    kernel: CUkernel,
    dev: CUdevice,
) -> CUresult {
    let handle = kernel.expose_provenance() as u64;
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        match attribute(real, value, attrib, handle, Some(dev)) {
            true => CUresult::SUCCESS,
            false => real.cuKernelGetAttribute(value, attrib, kernel, dev),
        }
    }
}

pub(crate) unsafe fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    real: &'static Api,
    num_blocks: *mut c_int,
    func: CUfunction,
    block_size: c_int,
    dynamic_smem_size: usize,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask(real, func, false, |func| unsafe {
        real.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            num_blocks,
            func,
            block_size,
            dynamic_smem_size,
        )
    })
}

pub(crate) unsafe fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    real: &'static Api,
    num_blocks: *mut c_int,
    func: CUfunction,
    block_size: c_int,
    dynamic_smem_size: usize,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask(real, func, false, |func| unsafe {
        real.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            num_blocks,
            func,
            block_size,
            dynamic_smem_size,
            flags,
        )
    })
}

pub(crate) unsafe fn cuOccupancyMaxPotentialBlockSize(
    real: &'static Api,
    min_grid_size: *mut c_int,
    block_size: *mut c_int,
    func: CUfunction,
    block_size_to_dynamic_smem_size: CUoccupancyB2DSize,
    dynamic_smem_size: usize,
    block_size_limit: c_int,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask(real, func, false, |func| unsafe {
        real.cuOccupancyMaxPotentialBlockSize(
            min_grid_size,
            block_size,
            func,
            block_size_to_dynamic_smem_size,
            dynamic_smem_size,
            block_size_limit,
        )
    })
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) unsafe fn cuOccupancyMaxPotentialBlockSizeWithFlags(
    real: &'static Api,
    min_grid_size: *mut c_int,
    block_size: *mut c_int,
    func: CUfunction,
    block_size_to_dynamic_smem_size: CUoccupancyB2DSize,
    dynamic_smem_size: usize,
    block_size_limit: c_int,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask(real, func, false, |func| unsafe {
        real.cuOccupancyMaxPotentialBlockSizeWithFlags(
            min_grid_size,
            block_size,
            func,
            block_size_to_dynamic_smem_size,
            dynamic_smem_size,
            block_size_limit,
            flags,
        )
    })
}

pub(crate) unsafe fn cuOccupancyAvailableDynamicSMemPerBlock(
    real: &'static Api,
    dynamic_smem_size: *mut usize,
    func: CUfunction,
    num_blocks: c_int,
    block_size: c_int,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask(real, func, true, |func| unsafe {
        real.cuOccupancyAvailableDynamicSMemPerBlock(
            dynamic_smem_size,
            func,
            num_blocks,
            block_size,
        )
    })
}

pub(crate) unsafe fn cuOccupancyMaxPotentialClusterSize(
    real: &'static Api,
    cluster_size: *mut c_int,
    func: CUfunction,
    config: *const CUlaunchConfig,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask(real, func, true, |func| unsafe {
        real.cuOccupancyMaxPotentialClusterSize(cluster_size, func, config)
    })
}

pub(crate) unsafe fn cuOccupancyMaxActiveClusters(
    real: &'static Api,
    num_clusters: *mut c_int,
    func: CUfunction,
    config: *const CUlaunchConfig,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask(real, func, false, |func| unsafe {
        real.cuOccupancyMaxActiveClusters(num_clusters, func, config)
    })
}
