//! How many CTAs of a kernel fit on a multiprocessor.
//!
//! Source: the limits of an sm_90 as in `device`. Registers are those of the PTX, which the
//! assembler would have lowered, so the answers are on the low side.

use std::ffi::{c_int, c_uint};

use driver::sys::device_attribute as d;
use driver::sys::{CUfunc_st, CUlaunchConfig, CUoccupancyB2DSize, CUresult};
use simt::KernelInfo;

use crate::Answer;
use crate::device::attribute;
use crate::launch::shape;
use crate::pointer::Ptr;
use crate::state::with_context;

/// Registers are handed out to warps in pieces of this many.
const REGISTER_UNIT: u32 = 256;

/// CTAs of `threads` threads and `dynamic` bytes that a multiprocessor holds at once.
fn blocks(info: &KernelInfo, threads: u32, dynamic: usize) -> u32 {
    if threads == 0 || threads > info.max_threads {
        return 0;
    }
    let all = |id| attribute(id) as u32;
    let warps = threads.div_ceil(32);
    let by_threads = all(d::MAX_THREADS_PER_MULTIPROCESSOR) / (warps * 32);
    // Not capped at what a thread can have: the device decides about cooperative launches by the
    // same number, and must not allow less than is told here.
    let registers = info.registers.max(16);
    let of_warp = registers
        .saturating_mul(32)
        .min(1 << 20)
        .next_multiple_of(REGISTER_UNIT);
    // The assembler spills rather than make a kernel that can never run.
    let by_registers = (all(d::MAX_REGISTERS_PER_MULTIPROCESSOR) / (of_warp * warps)).max(1);
    let shared = info.static_shared as usize + dynamic;
    if shared > all(d::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) as usize {
        return 0;
    }
    let shared = shared as u32 + all(d::RESERVED_SHARED_MEMORY_PER_BLOCK);
    let by_shared = all(d::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / shared;
    by_threads
        .min(by_registers)
        .min(by_shared)
        .min(all(d::MAX_BLOCKS_PER_MULTIPROCESSOR))
}

fn info(func: Ptr<CUfunc_st>) -> Result<KernelInfo, CUresult> {
    with_context(|state, _| Ok(state.functions.get(func.address())?.info.clone()))
}

pub(crate) fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    count: Ptr<c_int>,
    func: Ptr<CUfunc_st>,
    threads: c_int,
    dynamic: usize,
) -> Answer {
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, func, threads, dynamic, 0)
}

pub(crate) fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    count: Ptr<c_int>,
    func: Ptr<CUfunc_st>,
    threads: c_int,
    dynamic: usize,
    _flags: c_uint,
) -> Answer {
    let info = info(func)?;
    let threads = u32::try_from(threads).ok().filter(|&threads| threads > 0);
    count.set(blocks(&info, threads.ok_or(CUresult::INVALID_VALUE)?, dynamic) as c_int)
}

pub(crate) fn cuOccupancyMaxPotentialBlockSize(
    grid: Ptr<c_int>,
    block: Ptr<c_int>,
    func: Ptr<CUfunc_st>,
    dynamic_of: CUoccupancyB2DSize,
    dynamic: usize,
    limit: c_int,
) -> Answer {
    cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, func, dynamic_of, dynamic, limit, 0)
}

pub(crate) fn cuOccupancyMaxPotentialBlockSizeWithFlags(
    grid: Ptr<c_int>,
    block: Ptr<c_int>,
    func: Ptr<CUfunc_st>,
    dynamic_of: CUoccupancyB2DSize,
    dynamic: usize,
    limit: c_int,
    _flags: c_uint,
) -> Answer {
    let info = info(func)?;
    let most = match u32::try_from(limit) {
        Ok(limit) if limit > 0 => limit.min(info.max_threads),
        Ok(_) => info.max_threads,
        Err(_) => return Err(CUresult::INVALID_VALUE),
    };
    let shared = |threads: u32| match dynamic_of {
        // SAFETY: the program gave us the function to be called with block sizes.
        Some(function) => unsafe { function(threads as c_int) },
        None => dynamic,
    };
    // The largest size wins among those that keep most threads resident.
    let sizes = (1..=most.div_ceil(32)).map(|warps| (warps * 32).min(most));
    let best = sizes
        .map(|threads| (blocks(&info, threads, shared(threads)), threads))
        .max_by_key(|&(blocks, threads)| (blocks * threads, threads));
    let (resident, threads) = best.unwrap_or((0, 0));
    let grid_size = resident as c_int * attribute(d::MULTIPROCESSOR_COUNT);
    grid.set(grid_size)?;
    block.set(threads as c_int)
}

pub(crate) fn cuOccupancyAvailableDynamicSMemPerBlock(
    bytes: Ptr<usize>,
    func: Ptr<CUfunc_st>,
    count: c_int,
    threads: c_int,
) -> Answer {
    let info = info(func)?;
    if count <= 0 || threads <= 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    let each = attribute(d::MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / count
        - attribute(d::RESERVED_SHARED_MEMORY_PER_BLOCK);
    let most = each.clamp(0, attribute(d::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)) as u32;
    bytes.set(most.saturating_sub(info.static_shared) as usize)
}

pub(crate) fn cuOccupancyMaxPotentialClusterSize(
    size: Ptr<c_int>,
    func: Ptr<CUfunc_st>,
    config: Ptr<CUlaunchConfig>,
) -> Answer {
    config.get()?;
    let large = with_context(|state, _| Ok(state.functions.get(func.address())?.large_clusters()))?;
    size.set(if large { 16 } else { 8 })
}

pub(crate) fn cuOccupancyMaxActiveClusters(
    count: Ptr<c_int>,
    func: Ptr<CUfunc_st>,
    config: Ptr<CUlaunchConfig>,
) -> Answer {
    let info = info(func)?;
    let shape = shape(&config.get()?)?;
    let ctas: u32 = shape.cluster.iter().product::<u32>().max(1);
    let threads = shape.block.iter().product();
    let resident = blocks(&info, threads, shape.shared as usize);
    count.set((resident * attribute(d::MULTIPROCESSOR_COUNT) as u32 / ctas) as c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_binds_somewhere() {
        let kernel = |registers, static_shared| KernelInfo {
            registers,
            static_shared,
            max_threads: 1024,
            ..KernelInfo::default()
        };
        assert_eq!(blocks(&kernel(16, 0), 32, 0), 32);
        assert_eq!(blocks(&kernel(16, 0), 256, 0), 8);
        assert_eq!(blocks(&kernel(128, 0), 256, 0), 2);
        assert_eq!(blocks(&kernel(32, 48 << 10), 128, 0), 4);
        assert_eq!(blocks(&kernel(32, 0), 128, 227 << 10), 1);
        assert_eq!(blocks(&kernel(32, 0), 128, 228 << 10), 0);
        assert_eq!(blocks(&kernel(255, 0), 1024, 0), 1);
        assert_eq!(blocks(&kernel(32, 0), 2048, 0), 0);
    }
}
