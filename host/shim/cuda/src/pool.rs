//! Memory pools. They keep nothing back: a pool is a name for ordinary device memory.

use std::ffi::{c_int, c_void};

use driver::sys::mem_pool_attribute as m;
use driver::sys::{
    CUdevice, CUdeviceptr, CUmemAccessDesc, CUmemLocation, CUmemPool_attribute, CUmemPoolHandle_st,
    CUmemPoolProps, CUmemoryPool, CUresult, CUstream_st,
};

use report::log::Call;

use crate::Answer;
use crate::device::check;
use crate::memory::MemoryKind;
use crate::missing::ignored;
use crate::pointer::Ptr;
use crate::state::{with, with_context};
use crate::table::set;
use crate::virtual_memory::DEVICE;
use crate::work::Work;

/// A pool.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Values of the attributes a program can set, 1 to 4.
    settings: [u64; 5],
    pub(crate) used: u64,
    high: u64,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool {
            settings: [0, 1, 1, 1, 0],
            used: 0,
            high: 0,
        }
    }
}

pub(crate) fn cuDeviceGetDefaultMemPool(out: Ptr<CUmemoryPool>, dev: CUdevice) -> Answer {
    check(dev)?;
    set(out, with(|state| Ok(state.default_pool))?)
}

pub(crate) fn cuDeviceGetMemPool(out: Ptr<CUmemoryPool>, dev: CUdevice) -> Answer {
    check(dev)?;
    set(out, with(|state| Ok(state.current_pool))?)
}

pub(crate) fn cuDeviceSetMemPool(dev: CUdevice, pool: Ptr<CUmemPoolHandle_st>) -> Answer {
    check(dev)?;
    with(|state| {
        state.pools.get(pool.address())?;
        state.current_pool = pool.address();
        Ok(())
    })
}

pub(crate) fn cuMemPoolCreate(out: Ptr<CUmemoryPool>, props: Ptr<CUmemPoolProps>) -> Answer {
    // Memory of other pools belongs to the host.
    if props.get()?.location.kind != DEVICE {
        return Err(CUresult::NOT_SUPPORTED);
    }
    set(out, with(|state| Ok(state.pools.insert(Pool::default())))?)
}

pub(crate) fn cuMemPoolDestroy(pool: Ptr<CUmemPoolHandle_st>) -> Answer {
    with(|state| {
        if pool.address() == state.default_pool {
            return Err(CUresult::INVALID_VALUE);
        }
        state.pools.remove(pool.address())?;
        if state.current_pool == pool.address() {
            state.current_pool = state.default_pool;
        }
        Ok(())
    })
}

pub(crate) fn cuMemPoolTrimTo(pool: Ptr<CUmemPoolHandle_st>, _keep: usize) -> Answer {
    ignored("pools keep nothing back");
    with(|state| state.pools.get(pool.address()).map(drop))
}

pub(crate) fn cuMemPoolSetAttribute(
    pool: Ptr<CUmemPoolHandle_st>,
    attribute: CUmemPool_attribute,
    value: Ptr<c_void>,
) -> Answer {
    with(|state| {
        let pool = state.pools.get_mut(pool.address())?;
        match attribute {
            m::RELEASE_THRESHOLD => pool.settings[4] = value.cast::<u64>().get()?,
            1..=3 => pool.settings[attribute as usize] = u64::from(value.cast::<u32>().get()?),
            // The marks can only be set back to what is in use.
            m::RESERVED_MEM_HIGH | m::USED_MEM_HIGH => pool.high = pool.used,
            _ => return Err(CUresult::INVALID_VALUE),
        }
        Ok(())
    })
}

pub(crate) fn cuMemPoolGetAttribute(
    pool: Ptr<CUmemPoolHandle_st>,
    attribute: CUmemPool_attribute,
    value: Ptr<c_void>,
) -> Answer {
    with(|state| {
        let pool = state.pools.get(pool.address())?;
        match attribute {
            m::RELEASE_THRESHOLD => value.cast::<u64>().set(pool.settings[4]),
            1..=3 => value
                .cast::<c_int>()
                .set(pool.settings[attribute as usize] as c_int),
            m::RESERVED_MEM_CURRENT | m::USED_MEM_CURRENT => value.cast::<u64>().set(pool.used),
            m::RESERVED_MEM_HIGH | m::USED_MEM_HIGH => value.cast::<u64>().set(pool.high),
            _ => Err(CUresult::INVALID_VALUE),
        }
    })
}

pub(crate) fn cuMemPoolSetAccess(
    pool: Ptr<CUmemPoolHandle_st>,
    _map: Ptr<CUmemAccessDesc>,
    _count: usize,
) -> Answer {
    ignored("there is one device");
    with(|state| state.pools.get(pool.address()).map(drop))
}

pub(crate) fn cuMemPoolGetAccess(
    flags: Ptr<c_int>,
    pool: Ptr<CUmemPoolHandle_st>,
    _location: Ptr<CUmemLocation>,
) -> Answer {
    with(|state| state.pools.get(pool.address()).map(drop))?;
    flags.set(3)
}

pub(crate) fn cuMemAllocAsync(
    dptr: Ptr<CUdeviceptr>,
    bytes: usize,
    stream: Ptr<CUstream_st>,
) -> Answer {
    let pool = with(|state| Ok(state.current_pool))?;
    alloc(dptr, bytes, pool, stream.address())
}

pub(crate) fn cuMemAllocFromPoolAsync(
    dptr: Ptr<CUdeviceptr>,
    bytes: usize,
    pool: Ptr<CUmemPoolHandle_st>,
    stream: Ptr<CUstream_st>,
) -> Answer {
    alloc(dptr, bytes, pool.address(), stream.address())
}

fn alloc(dptr: Ptr<CUdeviceptr>, bytes: usize, pool: u64, stream: u64) -> Answer {
    if dptr.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    let address = with_context(|state, context| {
        state.pools.get(pool)?;
        if let Some(capture) = state.capture_of(stream)? {
            let address = state.allocate_for_graph(context, bytes)?;
            state.captured(stream, capture, Work::Alloc(address))?;
            return Ok(address);
        }
        let at = state.position(context, stream, &Work::Empty)?;
        let address = state.allocate(context, MemoryKind::Device, bytes, 0)?;
        state.took(at, address, Call::Alloc);
        if let Some(allocation) = state.memory.get_mut(&address) {
            allocation.pool = Some(pool);
        }
        let pool = state.pools.get_mut(pool)?;
        pool.used += bytes as u64;
        pool.high = pool.high.max(pool.used);
        Ok(address)
    })?;
    dptr.set(address)
}

pub(crate) fn cuMemFreeAsync(dptr: CUdeviceptr, stream: Ptr<CUstream_st>) -> Answer {
    with_context(|state, context| {
        let allocation = state.memory.get(&dptr).ok_or(CUresult::INVALID_VALUE)?;
        let of_graph = allocation.graph.is_some();
        match state.capture_of(stream.address())? {
            Some(capture) if of_graph => {
                return state.captured(stream.address(), capture, Work::Free(dptr));
            }
            Some(_) => return Err(CUresult::STREAM_CAPTURE_UNSUPPORTED),
            None => {}
        }
        if allocation.kind != MemoryKind::Device {
            return Err(CUresult::INVALID_VALUE);
        }
        let at = state.position(context, stream.address(), &Work::Empty)?;
        state.took(at, dptr, Call::Free);
        if of_graph {
            state.drop_graph_memory(dptr)?;
            state.collect_graph_memory();
            return Ok(());
        }
        state.release(dptr)
    })
}
