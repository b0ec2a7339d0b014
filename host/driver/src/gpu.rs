//! A context of a CUDA driver, as the checker uses it beside the program.
//!
//! Whatever is done here disturbs neither the program's streams nor its captures: transfers go
//! through a stream of our own that waits for no other, and the calling thread's current context and
//! capture mode are put back.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};

use crate::sys::{Api, CUcontext, CUevent, CUresult, CUstream};
use crate::{Device, DeviceError};

/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: c_uint = 1;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`
const VISIBLE: c_uint = 1 | 2;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`
const RELAXED: c_int = 2;

/// A context, and what the checker has in it.
#[derive(Debug)]
pub struct Gpu {
    api: &'static Api,
    /// Handles are kept as numbers: the driver may be called with them from every thread.
    context: usize,
    stream: usize,
    name: String,
    total: u64,
    /// Memory of the host that the device sees: address and length by device address.
    visible: BTreeMap<u64, (usize, u64)>,
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
            visible: BTreeMap::new(),
        };
        let entered = gpu.enter()?;
        let mut stream: CUstream = std::ptr::null_mut();
        let (mut device, mut total) = (0, 0usize);
        let mut name = [0u8; 128];
        // SAFETY: the context is current, and all results have room.
        unsafe {
            check(api.cuStreamCreate(&mut stream, NON_BLOCKING))?;
            check(api.cuCtxGetDevice(&mut device))?;
            check(api.cuDeviceTotalMem(&mut total, device))?;
            let room = name.len() as c_int - 1;
            check(api.cuDeviceGetName(name.as_mut_ptr().cast(), room, device))?;
        }
        drop(entered);
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        gpu.name = String::from_utf8_lossy(&name[..end]).into_owned();
        gpu.stream = stream.expose_provenance();
        gpu.total = total as u64;
        Ok(gpu)
    }

    /// The context is gone, and all that was in it.
    pub fn forget(self) {
        std::mem::forget(self);
    }

    /// An event of this context that has not been recorded.
    ///
    /// # Errors
    /// The driver's.
    pub fn event(&self) -> Result<Event, DeviceError> {
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

    /// Whether a stream is being captured, so that a launch becomes part of a graph.
    pub fn is_capturing(&self, stream: usize) -> bool {
        let mut status = 0;
        // SAFETY: the program is about to use the stream; there is room for the result.
        let result = unsafe { self.api.cuStreamIsCapturing(handle(stream), &mut status) };
        result == CUresult::SUCCESS && status != 0
    }

    /// Gives an event back.
    pub fn destroy(&self, event: Event) {
        if let Ok(_entered) = self.enter() {
            // SAFETY: the event lives, and is not used again.
            let _ = unsafe { self.api.cuEventDestroy(handle(event.0)) };
        }
    }

    /// Makes the context current, and calls allowed that a capture elsewhere would forbid.
    fn enter(&self) -> Result<Entered, DeviceError> {
        // SAFETY: the context lives.
        check(unsafe { self.api.cuCtxPushCurrent(handle(self.context)) })?;
        let mut mode = RELAXED;
        // SAFETY: there is room for the old mode. Drivers that know no captures need no mode.
        let result = unsafe { self.api.cuThreadExchangeStreamCaptureMode(&mut mode) };
        Ok(Entered {
            api: self.api,
            mode: (result == CUresult::SUCCESS).then_some(mode),
        })
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

/// A point in a stream.
#[derive(Debug)]
pub struct Event(usize);

/// The context of a [`Gpu`] is current while this lives.
struct Entered {
    api: &'static Api,
    mode: Option<c_int>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut context: CUcontext = std::ptr::null_mut();
        // SAFETY: there is room for both results; what was pushed and changed is put back.
        unsafe {
            if let Some(mut mode) = self.mode {
                let _ = self.api.cuThreadExchangeStreamCaptureMode(&mut mode);
            }
            let _ = self.api.cuCtxPopCurrent(&mut context);
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if let Ok(_entered) = self.enter() {
            // SAFETY: the stream is ours and not used again.
            let _ = unsafe { self.api.cuStreamDestroy(handle(self.stream)) };
        }
    }
}

impl Device for Gpu {
    fn alloc(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        let _entered = self.enter()?;
        let size = usize::try_from(bytes).map_err(|_| DeviceError::OutOfMemory { bytes })?;
        let mut address = 0;
        // SAFETY: the context is current; there is room for the result.
        match unsafe { self.api.cuMemAlloc(&mut address, size.max(1)) } {
            CUresult::OUT_OF_MEMORY => return Err(DeviceError::OutOfMemory { bytes }),
            result => check(result)?,
        }
        if let Err(error) = self.fill(address, 0, bytes) {
            // SAFETY: it was allocated above.
            let _ = unsafe { self.api.cuMemFree(address) };
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
        let place = (host.expose_provenance(), bytes);
        self.visible.insert(address, place);
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
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

    fn total_memory(&self) -> u64 {
        self.total
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
