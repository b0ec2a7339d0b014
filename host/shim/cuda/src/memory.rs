//! Allocations: device, managed and host memory, and host memory that a program registers.
//!
//! Managed and host memory keep one address on both sides. Everything starts out zeroed, which a
//! program must not rely on but which makes runs repeatable.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use driver::sys::memory_flag as flag;
use driver::sys::{CUdevice, CUdeviceptr, CUmem_advise, CUmemLocation, CUresult, CUstream_st};
use os::mem::Mapping;

use crate::Answer;
use crate::missing::ignored;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::pointer;

/// A range of memory that the program got from us or registered with us.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) bytes: u64,
    pub(crate) kind: MemoryKind,
    pub(crate) flags: u32,
    /// Different for every allocation of the process.
    pub(crate) identity: u64,
    pub(crate) context: u64,
    pub(crate) pool: Option<u64>,
    /// Memory of a graph: whether the program has it now.
    pub(crate) graph: Option<bool>,
    /// What streams have written (`cuStreamWriteValue32`), by address, as long as nothing else is seen to write there.
    pub(crate) written: BTreeMap<u64, Vec<Written>>,
}

/// Bytes that a stream has written, and the name of the point that it had come to.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) mark: u64,
}

/// Where memory is and who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    Device,
    /// Device memory that the program has mapped at this address.
    Mapped,
    Managed,
    /// Host memory that we made.
    Host,
    /// Host memory that the program made.
    Registered,
}

/// Rows of a pitched allocation start at multiples of this.
const PITCH: usize = 512;

impl State {
    /// Makes an allocation of any kind but [`MemoryKind::Registered`].
    pub(crate) fn allocate(
        &mut self,
        context: u64,
        kind: MemoryKind,
        bytes: usize,
        flags: u32,
    ) -> Result<u64, CUresult> {
        if bytes == 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let bytes = bytes as u64;
        let (total, used) = self.memory_of(self.device_of(context));
        if kind == MemoryKind::Device && bytes > total.saturating_sub(used) {
            return Err(CUresult::OUT_OF_MEMORY);
        }
        let memory = self.engine.memory_mut();
        let made = match kind {
            MemoryKind::Device => memory.alloc(bytes),
            MemoryKind::Mapped => return Err(CUresult::INVALID_VALUE),
            MemoryKind::Managed | MemoryKind::Host | MemoryKind::Registered => {
                memory.alloc_host(bytes)
            }
        };
        let address = made.map_err(|_| CUresult::OUT_OF_MEMORY)?;
        self.remember(context, address, bytes, kind, flags);
        Ok(address)
    }

    /// Bytes of memory that a device has, and how many of them are used.
    pub(crate) fn memory_of(&self, device: i32) -> (u64, u64) {
        let memory = self.engine.memory();
        let index = usize::try_from(device).unwrap_or(usize::MAX);
        match self.devices.get(index).and_then(|found| found.memory) {
            None => (
                memory.total(),
                memory.used() + self.virtual_memory.used(device),
            ),
            Some(total) => {
                let here = |of: &&Allocation| {
                    of.kind == MemoryKind::Device && self.device_of(of.context) == device
                };
                let used: u64 = self.memory.values().filter(here).map(|of| of.bytes).sum();
                let mapped = self.virtual_memory.used(device);
                (total.min(memory.total()), used + mapped)
            }
        }
    }

    pub(crate) fn remember(
        &mut self,
        context: u64,
        address: u64,
        bytes: u64,
        kind: MemoryKind,
        flags: u32,
    ) {
        let call = match kind {
            MemoryKind::Device => "cudaMalloc or cuMemAlloc",
            MemoryKind::Mapped => "cuMemMap",
            MemoryKind::Managed => "cudaMallocManaged or cuMemAllocManaged",
            MemoryKind::Host => "cudaHostAlloc or cuMemHostAlloc",
            MemoryKind::Registered => "cudaHostRegister or cuMemHostRegister",
        };
        match kind {
            MemoryKind::Device | MemoryKind::Mapped => self.engine.allocated(address, bytes, call),
            _ => self.engine.allocated_for_host(address, bytes, call),
        }
        self.allocations += 1;
        let identity = self.allocations;
        let allocation = Allocation {
            bytes,
            kind,
            flags,
            identity,
            context,
            pool: None,
            graph: None,
            written: BTreeMap::new(),
        };
        self.memory.insert(address, allocation);
    }

    /// Takes an allocation back, whatever its kind.
    pub(crate) fn release(&mut self, address: u64) -> Answer {
        let gone = self
            .memory
            .remove(&address)
            .ok_or(CUresult::INVALID_VALUE)?;
        if let Some(pool) = gone.pool.and_then(|pool| self.pools.get_mut(pool).ok()) {
            pool.used = pool.used.saturating_sub(gone.bytes);
        }
        for written in gone.written.into_values().flatten() {
            self.event_gone(written.mark);
        }
        self.engine.freed(address);
        let memory = self.engine.memory_mut();
        let freed = match gone.kind {
            MemoryKind::Device => memory.free(address),
            _ => memory.detach(address).map(drop),
        };
        freed.map_err(|_| CUresult::INVALID_VALUE)
    }

    fn release_if(&mut self, address: u64, kinds: &[MemoryKind]) -> Answer {
        match self.memory.get(&address) {
            Some(allocation) if kinds.contains(&allocation.kind) => match allocation.graph {
                Some(_) => {
                    self.drop_graph_memory(address)?;
                    self.collect_graph_memory();
                    Ok(())
                }
                None => self.release(address),
            },
            Some(_) => Err(CUresult::INVALID_VALUE),
            None if kinds.contains(&MemoryKind::Registered) => {
                Err(CUresult::HOST_MEMORY_NOT_REGISTERED)
            }
            None => Err(CUresult::INVALID_VALUE),
        }
    }

    /// The allocation that contains an address, with its start.
    pub(crate) fn allocation(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (&start, allocation) = self.memory.range(..=address).next_back()?;
        (address - start < allocation.bytes).then_some((start, allocation))
    }

    /// The allocation that contains an address.
    pub(crate) fn allocation_mut(&mut self, address: u64) -> Option<&mut Allocation> {
        let (&start, allocation) = self.memory.range_mut(..=address).next_back()?;
        (address - start < allocation.bytes).then_some(allocation)
    }

    fn register(&mut self, context: u64, host: Ptr<c_void>, bytes: usize, flags: u32) -> Answer {
        let (address, bytes) = (host.address(), bytes as u64);
        let end = address.checked_add(bytes).ok_or(CUresult::INVALID_VALUE)?;
        if host.is_null() || bytes == 0 || self.engine.memory().is_arena(address) {
            return Err(CUresult::INVALID_VALUE);
        }
        let before = self.memory.range(..end).next_back();
        if before.is_some_and(|(&start, allocation)| start + allocation.bytes > address) {
            return Err(CUresult::HOST_MEMORY_ALREADY_REGISTERED);
        }
        // SAFETY: a program that registers memory promises to keep it until it unregisters it;
        // the device reaches it through atomic words only.
        let mapping = unsafe { Mapping::foreign(address, bytes) };
        let mapping = mapping.ok_or(CUresult::INVALID_VALUE)?;
        let attached = self
            .engine
            .memory_mut()
            .attach(Arc::new(mapping), address, bytes);
        attached.map_err(|_| CUresult::INVALID_VALUE)?;
        self.remember(context, address, bytes, MemoryKind::Registered, flags);
        Ok(())
    }
}

pub(crate) fn cuMemGetInfo(free: Ptr<usize>, total: Ptr<usize>) -> Answer {
    let (all, used) = with_context(|state, context| Ok(state.memory_of(state.device_of(context))))?;
    free.set_if(all.saturating_sub(used) as usize);
    total.set_if(all as usize);
    Ok(())
}

pub(crate) fn cuMemAlloc(dptr: Ptr<CUdeviceptr>, bytes: usize) -> Answer {
    if dptr.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    dptr.set(with_context(|state, context| {
        state.allocate(context, MemoryKind::Device, bytes, 0)
    })?)
}

pub(crate) fn cuMemAllocPitch(
    dptr: Ptr<CUdeviceptr>,
    pitch: Ptr<usize>,
    width: usize,
    height: usize,
    element: c_uint,
) -> Answer {
    if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    let row = width
        .checked_next_multiple_of(PITCH)
        .ok_or(CUresult::INVALID_VALUE)?;
    let bytes = row.checked_mul(height).ok_or(CUresult::INVALID_VALUE)?;
    cuMemAlloc(dptr, bytes)?;
    pitch.set(row)
}

pub(crate) fn cuMemFree(dptr: CUdeviceptr) -> Answer {
    with_context(|state, _| match dptr {
        0 => Ok(()),
        _ => {
            let of_pool = state.memory.get(&dptr).filter(|of| of.pool.is_some());
            let waits = match of_pool.map(|of| of.bytes) {
                // The runtime API's text on `cudaFree`: the program sees to it that nobody accesses it any more.
                Some(bytes) => {
                    state.engine.freed_on_host(dptr, bytes);
                    false
                }
                None => true,
            };
            state.release_if(dptr, &[MemoryKind::Device, MemoryKind::Managed])?;
            // Not promised, but what drivers do, and programs rely on.
            if waits {
                state.host_waits_for_all();
            }
            Ok(())
        }
    })
}

pub(crate) fn cuMemGetAddressRange(
    base: Ptr<CUdeviceptr>,
    size: Ptr<usize>,
    dptr: CUdeviceptr,
) -> Answer {
    let (start, bytes) = with_context(|state, _| {
        let found = state
            .allocation(dptr)
            .map(|(start, allocation)| (start, allocation.bytes));
        // Variables of modules are device memory too.
        found
            .or_else(|| state.engine.memory().containing(dptr))
            .ok_or(CUresult::NOT_FOUND)
    })?;
    base.set_if(start);
    size.set_if(bytes as usize);
    Ok(())
}

pub(crate) fn cuMemAllocHost(host: Ptr<*mut c_void>, bytes: usize) -> Answer {
    cuMemHostAlloc(host, bytes, flag::HOST_PORTABLE | flag::HOST_DEVICEMAP)
}

pub(crate) fn cuMemFreeHost(host: Ptr<c_void>) -> Answer {
    with_context(|state, _| {
        state.release_if(host.address(), &[MemoryKind::Host])?;
        state.host_waits_for_all();
        Ok(())
    })
}

pub(crate) fn cuMemHostAlloc(host: Ptr<*mut c_void>, bytes: usize, flags: c_uint) -> Answer {
    let known = flag::HOST_PORTABLE | flag::HOST_DEVICEMAP | flag::HOST_WRITECOMBINED;
    if host.is_null() || flags & !known != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    let made =
        with_context(|state, context| state.allocate(context, MemoryKind::Host, bytes, flags))?;
    host.set(pointer(made))
}

pub(crate) fn cuMemHostGetDevicePointer(
    dptr: Ptr<CUdeviceptr>,
    host: Ptr<c_void>,
    flags: c_uint,
) -> Answer {
    if flags != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    let address = host.address();
    with_context(|state, _| match state.allocation(address) {
        Some((_, allocation))
            if !matches!(allocation.kind, MemoryKind::Device | MemoryKind::Mapped) =>
        {
            Ok(())
        }
        _ => Err(CUresult::INVALID_VALUE),
    })?;
    dptr.set(address)
}

pub(crate) fn cuMemHostGetFlags(flags: Ptr<c_uint>, host: Ptr<c_void>) -> Answer {
    flags.set(with_context(|state, _| {
        match state.allocation(host.address()) {
            Some((_, found)) if matches!(found.kind, MemoryKind::Host | MemoryKind::Registered) => {
                Ok(found.flags)
            }
            _ => Err(CUresult::INVALID_VALUE),
        }
    })?)
}

pub(crate) fn cuMemAllocManaged(dptr: Ptr<CUdeviceptr>, bytes: usize, flags: c_uint) -> Answer {
    if dptr.is_null() || !matches!(flags, flag::ATTACH_GLOBAL | flag::ATTACH_HOST) {
        return Err(CUresult::INVALID_VALUE);
    }
    dptr.set(with_context(|state, context| {
        state.allocate(context, MemoryKind::Managed, bytes, flags)
    })?)
}

pub(crate) fn cuMemHostRegister(host: Ptr<c_void>, bytes: usize, flags: c_uint) -> Answer {
    let known = flag::HOST_PORTABLE
        | flag::HOST_DEVICEMAP
        | flag::REGISTER_READ_ONLY
        | flag::REGISTER_IOMEMORY;
    if flags & !known != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    with_context(|state, context| state.register(context, host, bytes, flags))
}

pub(crate) fn cuMemHostUnregister(host: Ptr<c_void>) -> Answer {
    with_context(|state, _| state.release_if(host.address(), &[MemoryKind::Registered]))
}

/// Whether a range belongs to managed memory, as advice and prefetching want it.
fn managed(dptr: CUdeviceptr, bytes: usize) -> Answer {
    with_context(|state, _| match state.allocation(dptr) {
        Some((start, found)) if !matches!(found.kind, MemoryKind::Device | MemoryKind::Mapped) => {
            let room = start + found.bytes - dptr;
            if bytes as u64 <= room {
                Ok(())
            } else {
                Err(CUresult::INVALID_VALUE)
            }
        }
        _ => Err(CUresult::INVALID_VALUE),
    })
}

/// Advice changes where memory is, never what it holds.
pub(crate) fn cuMemAdvise(
    dptr: CUdeviceptr,
    bytes: usize,
    advice: CUmem_advise,
    _location: CUmemLocation,
) -> Answer {
    ignored("memory is where it is needed");
    if !(1..=6).contains(&advice) {
        return Err(CUresult::INVALID_VALUE);
    }
    managed(dptr, bytes)
}

pub(crate) fn cuMemAdvise_v1(
    dptr: CUdeviceptr,
    bytes: usize,
    advice: CUmem_advise,
    _device: CUdevice,
) -> Answer {
    ignored("memory is where it is needed");
    cuMemAdvise(dptr, bytes, advice, CUmemLocation::default())
}

pub(crate) fn cuMemPrefetchAsync(
    dptr: CUdeviceptr,
    bytes: usize,
    _location: CUmemLocation,
    _flags: c_uint,
    stream: Ptr<CUstream_st>,
) -> Answer {
    ignored("memory is where it is needed");
    managed(dptr, bytes)?;
    with(|state| state.check_stream(stream.address()))
}

pub(crate) fn cuMemPrefetchAsync_v1(
    dptr: CUdeviceptr,
    bytes: usize,
    _device: CUdevice,
    stream: Ptr<CUstream_st>,
) -> Answer {
    ignored("memory is where it is needed");
    cuMemPrefetchAsync(dptr, bytes, CUmemLocation::default(), 0, stream)
}

/// Nothing is ever advised or prefetched as far as a program can tell.
pub(crate) fn cuMemRangeGetAttribute(
    data: Ptr<c_void>,
    size: usize,
    attribute: c_int,
    dptr: CUdeviceptr,
    bytes: usize,
) -> Answer {
    /// `CU_DEVICE_INVALID`
    const NOWHERE: c_int = -2;
    managed(dptr, bytes)?;
    let value = match attribute {
        1 | 5 | 7 => 0,
        2 | 3 | 4 | 6 | 8 => NOWHERE,
        _ => return Err(CUresult::INVALID_VALUE),
    };
    if size == 0 || !size.is_multiple_of(4) {
        return Err(CUresult::INVALID_VALUE);
    }
    data.write(&value.to_le_bytes().repeat(size / 4))
}

pub(crate) fn cuStreamAttachMemAsync(
    stream: Ptr<CUstream_st>,
    dptr: CUdeviceptr,
    length: usize,
    _flags: c_uint,
) -> Answer {
    ignored("memory is where it is needed");
    with(|state| state.check_stream(stream.address()))?;
    managed(dptr, length)
}
