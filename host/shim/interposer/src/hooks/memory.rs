//! Which memory is the program's.

use std::ffi::{c_uint, c_void};

use driver::pointer::Ptr;
use driver::sys::*;
use runtime::aliases::Mapping;

use super::graph::capture;
use super::launch::number;
use crate::resolve;
use crate::state::{current, with, with_started};

/// What memory a call gives, and how long it lives if it is not freed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Of the device. It lives as long as the context in which it was asked for.
    Device,
    /// The host can access it, too. It lives as long as that context.
    Host,
    /// Of a pool, or mapped. It lives as long as its device.
    Pool,
}

/// Memory that a call has given.
struct Got {
    address: u64,
    bytes: usize,
}

impl Got {
    fn new(address: u64, bytes: usize) -> Self {
        Self { address, bytes }
    }
}

/// Asks for memory, and once more with less shadow memory if there is none left; notifies the checker
/// of what was got.
fn allocate(
    call: &str,
    kind: Kind,
    ask: impl Fn() -> CUresult,
    got: impl FnOnce() -> Got,
) -> CUresult {
    let result = ask_twice(ask);
    if result == CUresult::SUCCESS {
        let Got { address, bytes } = got();
        with(|state| {
            let checker = state.session.checker();
            checker.allocated(address, bytes as u64, call);
            if kind == Kind::Host {
                checker.host_is_not_watched();
            }
            let context = resolve::real().and_then(|real| current(&real.api));
            if let (Kind::Device | Kind::Host, Some(context)) = (kind, context) {
                let context = context.expose_provenance() as u64;
                state.memory.insert(address, context);
            }
        });
    }
    result
}

/// Asks for memory, and once more with less shadow memory if there is none left.
fn ask_twice(mut ask: impl FnMut() -> CUresult) -> CUresult {
    let result = ask();
    match result == CUresult::OUT_OF_MEMORY && make_room() {
        true => ask(),
        false => result,
    }
}

/// Gives shadow memory of the current context back; false if there is none to give.
pub(super) fn make_room() -> bool {
    let yielded = with_started(|state| {
        let context = state.context();
        context.is_some_and(|context| state.session.yield_cells(context))
    });
    yielded == Some(true)
}

/// Notifies the checker of memory that is given back, before the driver can give it out again.
fn free(address: u64, give: impl FnOnce() -> CUresult) -> CUresult {
    with_started(|state| {
        state.memory.remove(&address);
        state.session.checker().freed(address);
    });
    give()
}

pub(crate) unsafe fn cuMemAlloc(
    real: &'static Api,
    dptr: *mut CUdeviceptr,
    bytes: usize,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function; the driver has written the address.
    unsafe {
        allocate(
            "cuMemAlloc",
            Kind::Device,
            || real.cuMemAlloc(dptr, bytes),
            || Got::new(*dptr, bytes),
        )
    }
}

pub(crate) unsafe fn cuMemAllocPitch(
    real: &'static Api,
    dptr: *mut CUdeviceptr,
    pitch_out: *mut usize,
    width_bytes: usize,
    height: usize,
    element_size_bytes: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function; the driver has written both.
    unsafe {
        allocate(
            "cuMemAllocPitch",
            Kind::Device,
            || real.cuMemAllocPitch(dptr, pitch_out, width_bytes, height, element_size_bytes),
            || Got::new(*dptr, (*pitch_out).saturating_mul(height)),
        )
    }
}

pub(crate) unsafe fn cuMemAllocManaged(
    real: &'static Api,
    dptr: *mut CUdeviceptr,
    bytes: usize,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function; the driver has written the address.
    unsafe {
        allocate(
            "cuMemAllocManaged",
            Kind::Host,
            || real.cuMemAllocManaged(dptr, bytes, flags),
            || Got::new(*dptr, bytes),
        )
    }
}

pub(crate) unsafe fn cuMemAllocAsync(
    real: &'static Api,
    dptr: *mut CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function; the driver has written the address.
    unsafe {
        allocate(
            "cuMemAllocAsync",
            Kind::Pool,
            || real.cuMemAllocAsync(dptr, bytes, stream),
            || Got::new(*dptr, bytes),
        )
    }
}

pub(crate) unsafe fn cuMemAllocFromPoolAsync(
    real: &'static Api,
    dptr: *mut CUdeviceptr,
    bytes: usize,
    pool: CUmemoryPool,
    stream: CUstream,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function; the driver has written the address.
    unsafe {
        allocate(
            "cuMemAllocFromPoolAsync",
            Kind::Pool,
            || real.cuMemAllocFromPoolAsync(dptr, bytes, pool, stream),
            || Got::new(*dptr, bytes),
        )
    }
}

pub(crate) unsafe fn cuMemAllocHost(
    real: &'static Api,
    host_out: *mut *mut c_void,
    bytes: usize,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function; the driver has written the address.
    unsafe {
        allocate(
            "cuMemAllocHost",
            Kind::Host,
            || real.cuMemAllocHost(host_out, bytes),
            || Got::new((*host_out).addr() as u64, bytes),
        )
    }
}

pub(crate) unsafe fn cuMemHostAlloc(
    real: &'static Api,
    host_out: *mut *mut c_void,
    bytes: usize,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function; the driver has written the address.
    unsafe {
        allocate(
            "cuMemHostAlloc",
            Kind::Host,
            || real.cuMemHostAlloc(host_out, bytes, flags),
            || Got::new((*host_out).addr() as u64, bytes),
        )
    }
}

pub(crate) unsafe fn cuMemHostRegister(
    real: &'static Api,
    host: *mut c_void,
    bytes: usize,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        allocate(
            "cuMemHostRegister",
            Kind::Host,
            || real.cuMemHostRegister(host, bytes, flags),
            || Got::new(host.addr() as u64, bytes),
        )
    }
}

pub(crate) unsafe fn cuMemFree(real: &'static Api, dptr: CUdeviceptr) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    free(dptr, || unsafe { real.cuMemFree(dptr) })
}

pub(crate) unsafe fn cuMemFreeAsync(
    real: &'static Api,
    dptr: CUdeviceptr,
    stream: CUstream,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let give = || unsafe { real.cuMemFreeAsync(dptr, stream) };
    // A captured free becomes a node. The graph allocates the memory again at each launch.
    match capture(real, number(real, stream)) {
        Some(_) => give(),
        None => free(dptr, give),
    }
}

pub(crate) unsafe fn cuGraphAddMemAllocNode(
    real: &'static Api,
    node_out: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    num_dependencies: usize,
    node_params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
) -> CUresult {
    let (from, count) = (dependencies, num_dependencies);
    // SAFETY: the caller keeps the conditions of the C function; the driver has written the address.
    unsafe {
        let result = real.cuGraphAddMemAllocNode(node_out, graph, from, count, node_params);
        if let (CUresult::SUCCESS, Ok(made)) = (result, Ptr::new(node_params).get()) {
            of_graph(&made);
        }
        result
    }
}

/// Notifies the checker of the memory of an allocation node. The driver cannot be asked about it, because it knows that memory
/// only while the graph runs.
pub(super) fn of_graph(made: &CUDA_MEM_ALLOC_NODE_PARAMS) {
    with(|state| {
        let checker = state.session.checker();
        checker.allocated(made.address, made.bytes as u64, "cuGraphAddMemAllocNode");
    });
}

pub(crate) unsafe fn cuMemFreeHost(real: &'static Api, host: *mut c_void) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    free(host.addr() as u64, || unsafe { real.cuMemFreeHost(host) })
}

pub(crate) unsafe fn cuMemHostUnregister(real: &'static Api, host: *mut c_void) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    free(host.addr() as u64, || unsafe {
        real.cuMemHostUnregister(host)
    })
}

pub(crate) unsafe fn cuMemCreate(
    real: &'static Api,
    handle: *mut CUmemGenericAllocationHandle,
    size: usize,
    prop: *const CUmemAllocationProp,
    flags: u64,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = ask_twice(|| unsafe { real.cuMemCreate(handle, size, prop, flags) });
    // SAFETY: the driver has written the handle.
    if let (CUresult::SUCCESS, Ok(made)) = (result, unsafe { Ptr::new(handle) }.get()) {
        with(|state| state.handles.got(made, None));
    }
    result
}

pub(crate) unsafe fn cuMemRetainAllocationHandle(
    real: &'static Api,
    handle: *mut CUmemGenericAllocationHandle,
    addr: *mut c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuMemRetainAllocationHandle(handle, addr) };
    // SAFETY: the driver has written the handle.
    if let (CUresult::SUCCESS, Ok(got)) = (result, unsafe { Ptr::new(handle) }.get()) {
        with(|state| {
            let memory = state.session.checker().mapped_at(addr.addr() as u64);
            state.handles.got(got, memory);
        });
    }
    result
}

pub(crate) unsafe fn cuMemRelease(
    real: &'static Api,
    handle: CUmemGenericAllocationHandle,
) -> CUresult {
    // Another thread may get the handle again before the call returns.
    with_started(|state| state.handles.released(handle));
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuMemRelease(handle) }
}

pub(crate) unsafe fn cuMemMap(
    real: &'static Api,
    ptr: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: u64,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe {
        allocate(
            "cuMemMap",
            Kind::Pool,
            || real.cuMemMap(ptr, size, offset, handle, flags),
            || Got::new(ptr, size),
        )
    };
    if result == CUresult::SUCCESS {
        with(|state| {
            if let Some(memory) = state.handles.memory(handle) {
                state.session.checker().mapped(Mapping {
                    base: ptr,
                    bytes: size as u64,
                    memory,
                    offset: offset as u64,
                });
            }
        });
    }
    result
}

pub(crate) unsafe fn cuMemUnmap(real: &'static Api, ptr: CUdeviceptr, size: usize) -> CUresult {
    with_started(|state| {
        let checker = state.session.checker();
        checker.freed_within(ptr, size as u64);
        checker.unmapped(ptr, size as u64);
    });
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuMemUnmap(ptr, size) }
}

pub(crate) unsafe fn cuArrayCreate(
    real: &'static Api,
    array: *mut CUarray,
    descriptor: *const CUDA_ARRAY_DESCRIPTOR,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask_twice(|| unsafe { real.cuArrayCreate(array, descriptor) })
}

pub(crate) unsafe fn cuArray3DCreate(
    real: &'static Api,
    array: *mut CUarray,
    descriptor: *const CUDA_ARRAY3D_DESCRIPTOR,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask_twice(|| unsafe { real.cuArray3DCreate(array, descriptor) })
}

pub(crate) unsafe fn cuMipmappedArrayCreate(
    real: &'static Api,
    array: *mut CUmipmappedArray,
    descriptor: *const CUDA_ARRAY3D_DESCRIPTOR,
    levels: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    ask_twice(|| unsafe { real.cuMipmappedArrayCreate(array, descriptor, levels) })
}
