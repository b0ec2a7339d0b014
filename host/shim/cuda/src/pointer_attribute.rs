//! What a program may ask about an address.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};

use driver::sys::pointer_attribute as p;
use driver::sys::{CUdeviceptr, CUpointer_attribute, CUresult, memory_type};

use crate::Answer;
use crate::memory::{Allocation, MemoryKind};
use crate::pointer::Ptr;
use crate::state::{State, with_context};

/// What is known of an address.
struct Known {
    start: u64,
    allocation: Allocation,
    device: c_int,
}

fn find(state: &State, context: u64, address: u64) -> Option<Known> {
    if let Some((start, allocation)) = state.allocation(address) {
        return Some(Known {
            start,
            allocation: allocation.clone(),
            device: state.device_of(allocation.context),
        });
    }
    // A module's variable. It belongs to the device unless it is managed.
    let (start, bytes) = state.engine.memory().containing(address)?;
    let kind = match state.engine.memory().is_arena(address) {
        true => MemoryKind::Device,
        false => MemoryKind::Managed,
    };
    let allocation = Allocation {
        graph: None,
        bytes,
        kind,
        flags: 0,
        identity: start,
        context,
        pool: None,
        written: BTreeMap::new(),
    };
    Some(Known {
        start,
        allocation,
        device: state.device_of(context),
    })
}

fn answer(
    known: &Known,
    attribute: CUpointer_attribute,
    address: u64,
    data: Ptr<c_void>,
) -> Answer {
    let word = |value: u64| data.cast::<u64>().set(value);
    let integer = |value: c_int| data.cast::<c_int>().set(value);
    let truth = |value: bool| data.cast::<u8>().set(u8::from(value));
    let found = &known.allocation;
    match attribute {
        p::CONTEXT => word(found.context),
        p::MEMORY_TYPE => integer(match found.kind {
            MemoryKind::Device | MemoryKind::Mapped | MemoryKind::Managed => memory_type::DEVICE,
            MemoryKind::Host | MemoryKind::Registered => memory_type::HOST,
        }),
        p::DEVICE_POINTER => word(address),
        p::HOST_POINTER if matches!(found.kind, MemoryKind::Device | MemoryKind::Mapped) => {
            Err(CUresult::INVALID_VALUE)
        }
        p::HOST_POINTER => word(address),
        p::SYNC_MEMOPS | p::IS_LEGACY_CUDA_IPC_CAPABLE | p::IS_GPU_DIRECT_RDMA_CAPABLE => {
            truth(false)
        }
        p::IS_HW_DECOMPRESS_CAPABLE => truth(false),
        p::BUFFER_ID | p::MEMORY_BLOCK_ID => word(found.identity),
        p::IS_MANAGED => integer(c_int::from(found.kind == MemoryKind::Managed)),
        p::DEVICE_ORDINAL => integer(known.device),
        p::RANGE_START_ADDR | p::MAPPING_BASE_ADDR => word(known.start),
        p::RANGE_SIZE | p::MAPPING_SIZE => word(found.bytes),
        p::MAPPED => truth(true),
        p::ALLOWED_HANDLE_TYPES => word(0),
        p::ACCESS_FLAGS => integer(3),
        p::MEMPOOL_HANDLE => word(found.pool.unwrap_or(0)),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

pub(crate) fn cuPointerGetAttribute(
    data: Ptr<c_void>,
    attribute: CUpointer_attribute,
    address: CUdeviceptr,
) -> Answer {
    let known = with_context(|state, context| Ok(find(state, context, address)))?;
    answer(
        &known.ok_or(CUresult::INVALID_VALUE)?,
        attribute,
        address,
        data,
    )
}

/// As for one attribute, but an address we do not know gives zeroes instead of an error.
pub(crate) fn cuPointerGetAttributes(
    count: c_uint,
    attributes: Ptr<c_int>,
    data: Ptr<*mut c_void>,
    address: CUdeviceptr,
) -> Answer {
    let known = with_context(|state, context| Ok(find(state, context, address)))?;
    for index in 0..count as usize {
        let attribute = attributes.at(index).get()?;
        let into = data.at(index).follow()?;
        let known = known.as_ref().ok_or(CUresult::INVALID_VALUE);
        if known
            .and_then(|known| answer(known, attribute, address, into))
            .is_err()
        {
            unknown(attribute, into)?;
        }
    }
    Ok(())
}

/// The value of an attribute that cannot be told.
fn unknown(attribute: CUpointer_attribute, into: Ptr<c_void>) -> Answer {
    match attribute {
        p::DEVICE_ORDINAL => into.cast::<c_int>().set(-2),
        p::MEMORY_TYPE | p::IS_MANAGED | p::ACCESS_FLAGS => into.cast::<c_int>().set(0),
        p::SYNC_MEMOPS
        | p::IS_LEGACY_CUDA_IPC_CAPABLE
        | p::IS_GPU_DIRECT_RDMA_CAPABLE
        | p::IS_HW_DECOMPRESS_CAPABLE
        | p::MAPPED => into.cast::<u8>().set(0),
        _ if (1..=21).contains(&attribute) => into.cast::<u64>().set(0),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

pub(crate) fn cuPointerSetAttribute(
    _value: Ptr<c_void>,
    attribute: CUpointer_attribute,
    address: CUdeviceptr,
) -> Answer {
    with_context(
        |state, context| match (attribute, find(state, context, address)) {
            // All copies are synchronous anyway.
            (p::SYNC_MEMOPS, Some(_)) => Ok(()),
            _ => Err(CUresult::INVALID_VALUE),
        },
    )
}
