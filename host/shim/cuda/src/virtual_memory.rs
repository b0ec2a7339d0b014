//! Virtual memory management: addresses that are reserved, memory without addresses, and the one mapped to
//! the other.
//!
//! Departures from a real device:
//! 1. A device's kernels reach what is mapped and accessible to any device.
//! 2. A mapping is a range of its own: a single copy or fill that spans two of them is refused.
//! 3. Handles cannot be exported, and there are no multicast objects.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;

use driver::sys::{
    CUdeviceptr, CUmemAccessDesc, CUmemAllocationProp, CUmemGenericAllocationHandle, CUmemLocation,
    CUresult,
};
use os::mem::Mapping;
use runtime::aliases;

use crate::Answer;
use crate::device::check;
use crate::memory::MemoryKind;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::Table;

/// Sizes and addresses are multiples of this.
const GRANULARITY: u64 = 2 << 20;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`
const PINNED: c_int = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`
pub(crate) const DEVICE: c_int = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`; 1 is reading only, 0 no access.
const READ_WRITE: c_int = 3;

/// Everything about virtual memory.
#[derive(Debug)]
pub(crate) struct VirtualMemory {
    /// Reserved ranges by address. The host's memory holds the place, and is never touched.
    reserved: BTreeMap<u64, Mapping>,
    /// Bytes of the reserved ranges.
    sizes: BTreeMap<u64, u64>,
    handles: Table<Handle>,
    /// By address.
    mapped: BTreeMap<u64, Mapped>,
}

/// Memory without an address.
#[derive(Debug)]
struct Handle {
    memory: Arc<Mapping>,
    device: c_int,
    references: u32,
}

/// Memory at an address.
#[derive(Debug)]
struct Mapped {
    bytes: u64,
    memory: Arc<Mapping>,
    offset: u64,
    handle: u64,
    device: c_int,
    access: c_int,
}

impl Default for VirtualMemory {
    fn default() -> Self {
        VirtualMemory {
            reserved: BTreeMap::new(),
            sizes: BTreeMap::new(),
            handles: Table::new(17, CUresult::INVALID_VALUE),
            mapped: BTreeMap::new(),
        }
    }
}

impl VirtualMemory {
    /// Bytes of a device's memory that have handles or are mapped.
    pub(crate) fn used(&self, device: c_int) -> u64 {
        let handles = self.handles.iter().map(|(_, of)| (&of.memory, of.device));
        let mapped = self.mapped.values().map(|of| (&of.memory, of.device));
        let all = handles.chain(mapped).filter(|(_, at)| *at == device);
        let by_address: BTreeMap<u64, u64> =
            all.map(|(of, _)| (of.address(), of.bytes())).collect();
        by_address.values().sum()
    }

    /// The mappings that make up a range, by their addresses; none unless they do so exactly.
    fn within(&self, start: u64, bytes: u64) -> Result<Vec<u64>, CUresult> {
        let end = start.checked_add(bytes).ok_or(CUresult::INVALID_VALUE)?;
        let (mut at, mut found) = (start, Vec::new());
        while at < end {
            let mapped = self.mapped.get(&at).ok_or(CUresult::INVALID_VALUE)?;
            found.push(at);
            at += mapped.bytes;
        }
        match at == end && !found.is_empty() {
            true => Ok(found),
            false => Err(CUresult::INVALID_VALUE),
        }
    }

    /// The mapping that contains an address.
    fn at(&self, address: u64) -> Option<&Mapped> {
        let (start, mapped) = self.mapped.range(..=address).next_back()?;
        (address - start < mapped.bytes).then_some(mapped)
    }
}

/// A size that may be reserved or mapped.
fn whole(bytes: usize) -> Result<u64, CUresult> {
    let bytes = bytes as u64;
    match bytes > 0 && bytes.is_multiple_of(GRANULARITY) {
        true => Ok(bytes),
        false => Err(CUresult::INVALID_VALUE),
    }
}

fn check_prop(prop: &CUmemAllocationProp) -> Answer {
    if prop.kind != PINNED || prop.location.kind != DEVICE {
        return Err(CUresult::NOT_SUPPORTED);
    }
    check(prop.location.id)
}

pub(crate) fn cuMemGetAllocationGranularity(
    granularity: Ptr<usize>,
    prop: Ptr<CUmemAllocationProp>,
    option: c_int,
) -> Answer {
    check_prop(&prop.get()?)?;
    match option {
        0 | 1 => granularity.set(GRANULARITY as usize),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

pub(crate) fn cuMemAddressReserve(
    out: Ptr<CUdeviceptr>,
    size: usize,
    alignment: usize,
    _address: CUdeviceptr,
    flags: u64,
) -> Answer {
    let bytes = whole(size)?;
    let alignment = (alignment as u64).max(GRANULARITY);
    if flags != 0 || out.is_null() || !alignment.is_power_of_two() {
        return Err(CUresult::INVALID_VALUE);
    }
    let reserved = with_context(|state, _| {
        let room = bytes
            .checked_add(alignment)
            .ok_or(CUresult::OUT_OF_MEMORY)?;
        let floor = state.engine.memory().end();
        let mapping = Mapping::zeroed_above(room, floor).map_err(|_| CUresult::OUT_OF_MEMORY)?;
        let start = mapping.address().next_multiple_of(alignment);
        state.virtual_memory.reserved.insert(start, mapping);
        state.virtual_memory.sizes.insert(start, bytes);
        Ok(start)
    })?;
    out.set(reserved)
}

pub(crate) fn cuMemAddressFree(address: CUdeviceptr, size: usize) -> Answer {
    let bytes = whole(size)?;
    with(|state| {
        let all = &mut state.virtual_memory;
        let known = all.sizes.get(&address) == Some(&bytes);
        let used = all.mapped.range(address..address.saturating_add(bytes));
        if !known || used.count() > 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        all.sizes.remove(&address);
        all.reserved.remove(&address);
        Ok(())
    })
}

pub(crate) fn cuMemCreate(
    out: Ptr<CUmemGenericAllocationHandle>,
    size: usize,
    prop: Ptr<CUmemAllocationProp>,
    flags: u64,
) -> Answer {
    let (bytes, prop) = (whole(size)?, prop.get()?);
    check_prop(&prop)?;
    if flags != 0 || out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    if prop.handle_types != 0 {
        return Err(CUresult::NOT_SUPPORTED);
    }
    out.set(with_context(|state, _| {
        let (total, used) = state.memory_of(prop.location.id);
        if bytes > total.saturating_sub(used) {
            return Err(CUresult::OUT_OF_MEMORY);
        }
        let memory = Mapping::zeroed(bytes).map_err(|_| CUresult::OUT_OF_MEMORY)?;
        Ok(state.virtual_memory.handles.insert(Handle {
            memory: Arc::new(memory),
            device: prop.location.id,
            references: 1,
        }))
    })?)
}

pub(crate) fn cuMemRelease(handle: CUmemGenericAllocationHandle) -> Answer {
    with(|state| {
        let handles = &mut state.virtual_memory.handles;
        let found = handles.get_mut(handle)?;
        found.references -= 1;
        match found.references {
            0 => handles.remove(handle).map(drop),
            _ => Ok(()),
        }
    })
}

pub(crate) fn cuMemRetainAllocationHandle(
    out: Ptr<CUmemGenericAllocationHandle>,
    address: Ptr<std::ffi::c_void>,
) -> Answer {
    out.set(with_context(|state, _| {
        let all = &mut state.virtual_memory;
        let mapped = all.at(address.address()).ok_or(CUresult::INVALID_VALUE)?;
        let handle = mapped.handle;
        // One that the program has released already does not come back.
        all.handles.get_mut(handle)?.references += 1;
        Ok(handle)
    })?)
}

pub(crate) fn cuMemGetAllocationPropertiesFromHandle(
    prop: Ptr<CUmemAllocationProp>,
    handle: CUmemGenericAllocationHandle,
) -> Answer {
    let id = with(|state| Ok(state.virtual_memory.handles.get(handle)?.device))?;
    prop.set(CUmemAllocationProp {
        kind: PINNED,
        location: CUmemLocation { kind: DEVICE, id },
        ..CUmemAllocationProp::default()
    })
}

pub(crate) fn cuMemMap(
    address: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: u64,
) -> Answer {
    let (bytes, bad) = (whole(size)?, CUresult::INVALID_VALUE);
    if flags != 0 || !(offset as u64).is_multiple_of(GRANULARITY) {
        return Err(bad);
    }
    with_context(|state, _| {
        let all = &mut state.virtual_memory;
        let found = all.handles.get(handle)?;
        let (memory, device) = (found.memory.clone(), found.device);
        let end = address.checked_add(bytes).ok_or(bad)?;
        let reserved = all.sizes.range(..=address).next_back();
        let inside = reserved.is_some_and(|(start, size)| end <= start + size);
        let before = all.mapped.range(..end).next_back();
        let free = before.is_none_or(|(at, mapped)| at + mapped.bytes <= address);
        let fits = (offset as u64)
            .checked_add(bytes)
            .is_some_and(|last| last <= memory.bytes());
        if !inside || !free || !fits || !address.is_multiple_of(GRANULARITY) {
            return Err(bad);
        }
        all.mapped.insert(
            address,
            Mapped {
                bytes,
                memory,
                offset: offset as u64,
                handle,
                device,
                access: 0,
            },
        );
        Ok(())
    })
}

impl State {
    /// Changes what kernels may do with a mapping.
    fn set_access(&mut self, context: u64, address: u64, access: c_int) -> Answer {
        let mapped = self.virtual_memory.mapped.get_mut(&address);
        let mapped = mapped.ok_or(CUresult::INVALID_VALUE)?;
        let before = std::mem::replace(&mut mapped.access, access);
        let (bytes, memory, offset) = (mapped.bytes, mapped.memory.clone(), mapped.offset);
        match (before, access) {
            (0, 0) => Ok(()),
            (0, _) => {
                let number = memory.address();
                let all = self.engine.memory_mut();
                let placed = all.place(memory, offset, address, bytes);
                placed.map_err(|_| CUresult::INVALID_VALUE)?;
                self.engine.mapped(aliases::Mapping {
                    base: address,
                    bytes,
                    memory: number,
                    offset,
                });
                self.remember(context, address, bytes, MemoryKind::Mapped, 0);
                Ok(())
            }
            (_, 0) => {
                self.engine.unmapped(address, bytes);
                self.release(address)
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn cuMemUnmap(address: CUdeviceptr, size: usize) -> Answer {
    let bytes = whole(size)?;
    with(|state| {
        for at in state.virtual_memory.within(address, bytes)? {
            state.set_access(0, at, 0)?;
            state.virtual_memory.mapped.remove(&at);
        }
        Ok(())
    })
}

pub(crate) fn cuMemSetAccess(
    address: CUdeviceptr,
    size: usize,
    list: Ptr<CUmemAccessDesc>,
    count: usize,
) -> Answer {
    let bytes = whole(size)?;
    let all: Result<Vec<_>, _> = (0..count).map(|index| list.at(index).get()).collect();
    let all = all?;
    for of in &all {
        if of.location.kind != DEVICE || !matches!(of.flags, 0 | 1 | READ_WRITE) {
            return Err(CUresult::INVALID_VALUE);
        }
        check(of.location.id)?;
    }
    let most = all.iter().map(|of| of.flags).max();
    let access = most.ok_or(CUresult::INVALID_VALUE)?;
    with_context(|state, context| {
        let found = state.virtual_memory.within(address, bytes)?;
        let mut found = found.into_iter();
        found.try_for_each(|at| state.set_access(context, at, access))
    })
}

pub(crate) fn cuMemGetAccess(
    flags: Ptr<u64>,
    location: Ptr<CUmemLocation>,
    address: CUdeviceptr,
) -> Answer {
    check(location.get()?.id)?;
    flags.set(with_context(|state, _| {
        let mapped = state.virtual_memory.at(address);
        Ok(mapped.ok_or(CUresult::INVALID_VALUE)?.access as u64)
    })?)
}
