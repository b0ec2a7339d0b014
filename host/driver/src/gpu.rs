//! A context of a CUDA driver, as the checker uses it beside the program.
//!
//! Whatever is done here disturbs neither the program's streams nor its captures: what has to be done at
//! once goes through a stream of our own that waits for no other, what belongs to a launch goes into
//! the stream of that launch, and the calling thread's current context and capture mode are put back.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};

mod calling;

pub use calling::{Here, Relaxed, captures, elsewhere, here, relaxed};

use calling::HERE;

use crate::sys::{
    Api, CUcontext, CUdevice, CUevent, CUmemAccessDesc, CUmemAllocationProp, CUmemLocation,
    CUresult, CUstream, device_attribute,
};
use crate::{Device, DeviceError};

/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: c_uint = 1;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`
const VISIBLE: c_uint = 1 | 2;
/// `CU_MEM_LOCATION_TYPE_DEVICE`
const ON_DEVICE: c_int = 1;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`
const PINNED: c_int = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`
const READ_WRITE: c_int = 3;
/// Bytes of what is worth addresses of its own.
const LARGE: u64 = 1 << 20;
/// Bytes of addresses with nothing behind them, on either side.
const GUARD: u64 = 1 << 30;

/// A context, and what the checker has in it.
#[derive(Debug)]
pub struct Gpu {
    api: &'static Api,
    /// Handles are kept as numbers: the driver may be called with them from every thread.
    context: usize,
    stream: usize,
    name: String,
    total: u64,
    shared: bool,
    /// Memory of the host that the device sees: address and length by device address.
    visible: BTreeMap<u64, (usize, u64)>,
    /// Memory that lies apart: the reserved range around it and its own bytes, by its address.
    far: BTreeMap<u64, Far>,
    device: CUdevice,
    /// The stream of the launch that is prepared or followed.
    queue: Option<usize>,
    /// Events that nobody uses now.
    spare: Vec<Event>,
}

impl Gpu {
    /// Looks at a context.
    ///
    /// # Safety
    /// `context` is a live context of this driver, and stays so until the value is dropped, or only
    /// [`Gpu::forget`] is called on it.
    ///
    /// # Errors
    /// The driver's.
    pub unsafe fn new(api: &'static Api, context: CUcontext) -> Result<Gpu, DeviceError> {
        let mut gpu = Gpu {
            api,
            context: context.expose_provenance(),
            stream: 0,
            name: String::new(),
            total: 0,
            shared: false,
            visible: BTreeMap::new(),
            far: BTreeMap::new(),
            device: 0,
            queue: None,
            spare: Vec::new(),
        };
        let entered = gpu.enter()?;
        let mut stream: CUstream = std::ptr::null_mut();
        let (mut device, mut shared) = (0, 0);
        let (mut total, mut free, mut limit) = (0usize, 0usize, 0usize);
        let mut name = [0u8; 128];
        // SAFETY: the context is current, and all results have room.
        unsafe {
            check(api.cuStreamCreate(&mut stream, NON_BLOCKING))?;
            check(api.cuCtxGetDevice(&mut device))?;
            check(api.cuDeviceTotalMem(&mut total, device))?;
            let room = name.len() as c_int - 1;
            // A part of a device has a part of its memory, and MPS may allow its clients less than that.
            if api.cuMemGetInfo(&mut free, &mut limit) == CUresult::SUCCESS && limit > 0 {
                total = total.min(limit);
            }
            let attribute = device_attribute::MPS_ENABLED;
            if api.cuDeviceGetAttribute(&mut shared, attribute, device) != CUresult::SUCCESS {
                // A driver that does not know the question.
                shared = 0;
            }
            check(api.cuDeviceGetName(name.as_mut_ptr().cast(), room, device))?;
        }
        drop(entered);
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        gpu.name = String::from_utf8_lossy(&name[..end]).into_owned();
        gpu.stream = stream.expose_provenance();
        gpu.total = total as u64;
        gpu.shared = shared != 0;
        gpu.device = device;
        Ok(gpu)
    }

    /// Whether other processes share the device's contexts by MPS.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Takes the device to have 1/`parts` of its memory, where other processes do the same with the rest.
    pub fn share(&mut self, parts: u64) {
        self.total /= parts.max(1);
    }

    /// The context is gone, or about to go, and all that was in it. What lies apart belongs to no context.
    pub fn forget(mut self) {
        for (address, far) in std::mem::take(&mut self.far) {
            // Where this fails, the process keeps the memory.
            let _ = self.free_far(address, far);
        }
        std::mem::forget(self);
    }

    /// Says which stream the next launch goes into, and the last one went into.
    pub fn queue(&mut self, stream: usize) {
        self.queue = Some(stream);
    }

    /// An event of this context that nobody waits for.
    ///
    /// # Errors
    /// The driver's.
    pub fn event(&mut self) -> Result<Event, DeviceError> {
        if let Some(event) = self.spare.pop() {
            return Ok(event);
        }
        let _entered = self.enter()?;
        let mut event: CUevent = std::ptr::null_mut();
        // SAFETY: the context is current; there is room for the result.
        check(unsafe { self.api.cuEventCreate(&mut event, 0) })?;
        Ok(Event(event.expose_provenance()))
    }

    /// Records an event after what is in the stream with this handle.
    ///
    /// # Errors
    /// The driver's.
    pub fn record(&self, event: &Event, stream: usize) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        // SAFETY: the event lives, and the program has just used the stream.
        check(unsafe { self.api.cuEventRecord(handle(event.0), handle(stream)) })
    }

    /// Whether the event has been passed.
    ///
    /// # Errors
    /// The driver's: a launch before the event has failed, for instance.
    pub fn passed(&self, event: &Event) -> Result<bool, DeviceError> {
        let _entered = self.enter()?;
        // SAFETY: the event lives.
        match unsafe { self.api.cuEventQuery(handle(event.0)) } {
            CUresult::NOT_READY => Ok(false),
            result => check(result).map(|()| true),
        }
    }

    /// Seconds between two events that have been passed.
    pub fn seconds(&self, from: &Event, to: &Event) -> Option<f64> {
        let _entered = self.enter().ok()?;
        let (from, to) = (handle(from.0), handle(to.0));
        let mut milliseconds = 0f32;
        // SAFETY: the events live; there is room for the result.
        let mut result = unsafe { self.api.cuEventElapsedTime(&mut milliseconds, from, to) };
        if result == CUresult::NOT_FOUND {
            // SAFETY: as above; before CUDA 12.8 there is only the older name.
            result = unsafe { self.api.cuEventElapsedTime_v1(&mut milliseconds, from, to) };
        }
        check(result).ok().map(|()| f64::from(milliseconds) / 1e3)
    }

    /// Gives an event back, for others.
    pub fn put_back(&mut self, event: Event) {
        self.spare.push(event);
    }

    /// Makes the context current, and calls allowed that a capture elsewhere would forbid. Every call of
    /// this does so for itself; several in a row cost less within one.
    ///
    /// # Errors
    /// The driver's.
    pub fn enter(&self) -> Result<Entered, DeviceError> {
        let before = HERE.get();
        let mut now = before.0;
        if now == 0 {
            let mut context: CUcontext = std::ptr::null_mut();
            // SAFETY: there is room for the result.
            let known = unsafe { self.api.cuCtxGetCurrent(&mut context) };
            now = match known {
                CUresult::SUCCESS => context.expose_provenance(),
                _ => 0,
            };
        }
        let pushed = now != self.context;
        if pushed {
            // SAFETY: the context lives.
            check(unsafe { self.api.cuCtxPushCurrent(handle(self.context)) })?;
        }
        let relaxed = relaxed(self.api);
        HERE.set((self.context, before.1 || relaxed.is_new()));
        Ok(Entered {
            api: self.api,
            relaxed,
            pushed,
            before,
        })
    }

    /// The stream for what belongs to a launch, and whether it is our own.
    fn launching(&self) -> (CUstream, bool) {
        (
            handle(self.queue.unwrap_or(self.stream)),
            self.queue.is_none(),
        )
    }

    /// Waits for our own stream.
    fn settle(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream is ours.
        check(unsafe { self.api.cuStreamSynchronize(handle(self.stream)) })
    }

    /// The bytes of the host behind a range of device addresses, if it is such memory.
    fn host(&self, address: u64, bytes: u64) -> Result<Option<*mut u8>, DeviceError> {
        let Some((base, &(host, length))) = self.visible.range(..=address).next_back() else {
            return Ok(None);
        };
        let offset = address - base;
        match offset {
            _ if offset >= length => Ok(None),
            _ if bytes > length - offset => Err(DeviceError::InvalidRange { address, bytes }),
            _ => Ok(Some(handle::<u8>(host + offset as usize))),
        }
    }
}

/// Memory with reserved addresses around it.
#[derive(Clone, Copy, Debug)]
struct Far {
    /// Where the reserved range starts, and its length.
    range: (u64, usize),
    bytes: usize,
}

impl Gpu {
    /// Memory with nothing near it, so that a pointer of the program that has gone astray does not meet it;
    /// none where the driver has no virtual memory management.
    ///
    /// # Errors
    /// When there is no memory left.
    fn alloc_far(&mut self, bytes: u64) -> Result<Option<u64>, DeviceError> {
        let here = CUmemLocation {
            kind: ON_DEVICE,
            id: self.device,
        };
        let prop = CUmemAllocationProp {
            kind: PINNED,
            location: here,
            ..CUmemAllocationProp::default()
        };
        let api = self.api;
        let mut unit = 0;
        // SAFETY: the properties are read, and there is room for the result.
        let known = unsafe { api.cuMemGetAllocationGranularity(&mut unit, &prop, 0) };
        let whole = |bytes: u64| usize::try_from(bytes).ok()?.checked_next_multiple_of(unit);
        if known != CUresult::SUCCESS || unit == 0 {
            return Ok(None);
        }
        let (Some(size), Some(guard)) = (whole(bytes), whole(GUARD)) else {
            return Ok(None);
        };
        let Some(length) = size.checked_add(2 * guard) else {
            return Ok(None);
        };
        let (mut start, mut handle) = (0, 0);
        // SAFETY: there is room for the result.
        if unsafe { api.cuMemAddressReserve(&mut start, length, 0, 0, 0) } != CUresult::SUCCESS {
            return Ok(None);
        }
        let address = start + guard as u64;
        let access = CUmemAccessDesc {
            location: here,
            flags: READ_WRITE,
        };
        // SAFETY: the range is ours, the structures are read during the calls, and what was made is given
        // back if a later step fails. A mapping keeps its memory without the handle.
        let made = unsafe {
            let created = api.cuMemCreate(&mut handle, size, &prop, 0);
            created.result().and_then(|()| {
                let mapped = api.cuMemMap(address, size, 0, handle, 0).result();
                let _ = api.cuMemRelease(handle);
                mapped?;
                let allowed = api.cuMemSetAccess(address, size, &access, 1).result();
                if allowed.is_err() {
                    let _ = api.cuMemUnmap(address, size);
                }
                allowed
            })
        };
        if let Err(error) = made {
            // SAFETY: nothing is mapped there any more.
            let _ = unsafe { api.cuMemAddressFree(start, length) };
            return match error {
                CUresult::OUT_OF_MEMORY => Err(DeviceError::OutOfMemory { bytes }),
                _ => Ok(None),
            };
        }
        let range = (start, length);
        self.far.insert(address, Far { range, bytes: size });
        Ok(Some(address))
    }

    /// Gives such memory back.
    fn free_far(&self, address: u64, far: Far) -> Result<(), DeviceError> {
        let (start, length) = far.range;
        // SAFETY: it was mapped there, and no launch uses it any more.
        check(unsafe {
            match self.api.cuMemUnmap(address, far.bytes) {
                CUresult::SUCCESS => self.api.cuMemAddressFree(start, length),
                error => error,
            }
        })
    }
}

/// A point in a stream.
#[derive(Debug)]
pub struct Event(usize);

/// The context of a [`Gpu`] is current while this lives.
#[derive(Debug)]
pub struct Entered {
    api: &'static Api,
    /// The mode of captures, if it was changed.
    relaxed: Relaxed,
    /// The context was not current before.
    pushed: bool,
    /// What was known of the thread.
    before: (usize, bool),
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut context: CUcontext = std::ptr::null_mut();
        self.relaxed.end();
        if self.pushed {
            // SAFETY: there is room for the result; it was pushed.
            let _ = unsafe { self.api.cuCtxPopCurrent(&mut context) };
        }
        HERE.set(self.before);
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if let Ok(_entered) = self.enter() {
            // SAFETY: the stream and the events are ours and not used again.
            unsafe {
                for event in &self.spare {
                    let _ = self.api.cuEventDestroy(handle(event.0));
                }
                let _ = self.api.cuStreamDestroy(handle(self.stream));
            }
        }
    }
}

impl Device for Gpu {
    fn alloc(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        let _entered = self.enter()?;
        let size = usize::try_from(bytes).map_err(|_| DeviceError::OutOfMemory { bytes })?;
        let far = match bytes >= LARGE {
            true => self.alloc_far(bytes)?,
            false => None,
        };
        let mut address = far.unwrap_or(0);
        if far.is_none() {
            // SAFETY: the context is current; there is room for the result.
            match unsafe { self.api.cuMemAlloc(&mut address, size.max(1)) } {
                CUresult::OUT_OF_MEMORY => return Err(DeviceError::OutOfMemory { bytes }),
                result => check(result)?,
            }
        }
        if let Err(error) = self.fill(address, 0, bytes) {
            let _ = self.free(address);
            return Err(error);
        }
        Ok(address)
    }

    fn alloc_visible(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        let _entered = self.enter()?;
        let size = usize::try_from(bytes).map_err(|_| DeviceError::OutOfMemory { bytes })?;
        let mut host: *mut c_void = std::ptr::null_mut();
        let mut address = 0;
        // SAFETY: the context is current; there is room for the results, and for the zeroes.
        unsafe {
            check(self.api.cuMemHostAlloc(&mut host, size.max(1), VISIBLE))?;
            let found = self.api.cuMemHostGetDevicePointer(&mut address, host, 0);
            if let Err(error) = check(found) {
                let _ = self.api.cuMemFreeHost(host);
                return Err(error);
            }
            host.cast::<u8>().write_bytes(0, size);
        }
        let visible = (host.expose_provenance(), bytes);
        self.visible.insert(address, visible);
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        if let Some(far) = self.far.remove(&address) {
            return self.free_far(address, far);
        }
        let host = self.visible.remove(&address);
        // SAFETY: the caller got it from `alloc` or `alloc_visible`, and no launch uses it any more.
        check(unsafe {
            match host {
                Some((host, _)) => self.api.cuMemFreeHost(handle(host)),
                None => self.api.cuMemFree(address),
            }
        })
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), DeviceError> {
        if let Some(host) = self.host(address, into.len() as u64)? {
            // SAFETY: the range was looked up; the launch that wrote it has ended.
            unsafe { std::ptr::copy_nonoverlapping(host, into.as_mut_ptr(), into.len()) };
            return Ok(());
        }
        let _entered = self.enter()?;
        let (to, stream) = (into.as_mut_ptr().cast(), handle(self.stream));
        // SAFETY: `into` has room until the stream has settled.
        check(unsafe { self.api.cuMemcpyDtoHAsync(to, address, into.len(), stream) })?;
        self.settle()
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), DeviceError> {
        if let Some(host) = self.host(address, from.len() as u64)? {
            // SAFETY: the range was looked up; no launch uses it now.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), host, from.len()) };
            return Ok(());
        }
        let _entered = self.enter()?;
        let (bytes, stream) = (from.as_ptr().cast(), handle(self.stream));
        // SAFETY: `from` stays until the stream has settled.
        check(unsafe {
            self.api
                .cuMemcpyHtoDAsync(address, bytes, from.len(), stream)
        })?;
        self.settle()
    }

    fn fill(&mut self, address: u64, value: u8, bytes: u64) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        if let Some(host) = self.host(address, bytes)? {
            // SAFETY: the range was looked up; no launch uses it now.
            unsafe { host.write_bytes(value, bytes as usize) };
            return Ok(());
        }
        let _entered = self.enter()?;
        let stream = handle(self.stream);
        // SAFETY: the range is memory of ours.
        check(unsafe {
            self.api
                .cuMemsetD8Async(address, value, bytes as usize, stream)
        })?;
        self.settle()
    }

    fn send(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), DeviceError> {
        let Some(host) = self.host(from, bytes)? else {
            return self.copy(to, from, bytes);
        };
        let _entered = self.enter()?;
        let (stream, own) = self.launching();
        // SAFETY: both ranges were reserved, and stay until the launch has ended.
        check(unsafe {
            self.api
                .cuMemcpyHtoDAsync(to, host.cast(), bytes as usize, stream)
        })?;
        match own {
            true => self.settle(),
            false => Ok(()),
        }
    }

    fn fetch(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), DeviceError> {
        let Some(host) = self.host(to, bytes)? else {
            return self.copy(to, from, bytes);
        };
        let _entered = self.enter()?;
        let (stream, own) = self.launching();
        // SAFETY: both ranges were reserved, and stay until the launch has ended.
        check(unsafe {
            self.api
                .cuMemcpyDtoHAsync(host.cast(), from, bytes as usize, stream)
        })?;
        match own {
            true => self.settle(),
            false => Ok(()),
        }
    }

    fn wipe(&mut self, address: u64, bytes: u64) -> Result<(), DeviceError> {
        if bytes == 0 || self.host(address, bytes)?.is_some() {
            return self.fill(address, 0, bytes);
        }
        let _entered = self.enter()?;
        let (stream, own) = self.launching();
        // SAFETY: the range is memory of ours.
        check(unsafe { self.api.cuMemsetD8Async(address, 0, bytes as usize, stream) })?;
        match own {
            true => self.settle(),
            false => Ok(()),
        }
    }

    fn total_memory(&self) -> u64 {
        self.total
    }

    fn free_memory(&self) -> u64 {
        let (mut free, mut total) = (0usize, 0usize);
        let Ok(_entered) = self.enter() else {
            return self.total;
        };
        // SAFETY: the context is current, and both results have room.
        match unsafe { self.api.cuMemGetInfo(&mut free, &mut total) } {
            CUresult::SUCCESS => self.total.min(free as u64),
            _ => self.total,
        }
    }

    fn memory_id(&self) -> u64 {
        self.context as u64
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// A handle as the driver takes it.
fn handle<T>(number: usize) -> *mut T {
    std::ptr::with_exposed_provenance_mut(number)
}

fn check(result: CUresult) -> Result<(), DeviceError> {
    match result {
        CUresult::SUCCESS => Ok(()),
        error => Err(DeviceError::Other(error.to_string())),
    }
}
