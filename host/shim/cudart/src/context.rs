//! The driver underneath: loading it, and making a device's primary context current.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

use driver::sys::{Api, CUcontext};

use crate::error::{Error, check};

/// Names the driver library when it does not lie beside this one.
const DRIVER_VARIABLE: &str = "CUDARUN_CHECK_LIBCUDA";

thread_local! {
    /// The thread's device. No destructor: it must work while the process exits.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
    /// The function that the thread is in is one for a per-thread default stream.
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Primary contexts that were retained, by device.
static CONTEXTS: Mutex<Vec<(c_int, usize)>> = Mutex::new(Vec::new());

/// Does something for which stream 0 is the thread's own default stream.
pub(crate) fn with_per_thread_stream<T>(body: impl FnOnce() -> T) -> T {
    let before = PER_THREAD.replace(true);
    let done = body();
    PER_THREAD.set(before);
    done
}

/// The initialised driver, whose stream 0 is that of the function that the thread is in.
pub(crate) fn driver() -> Result<&'static Api, Error> {
    static API: OnceLock<Result<[Api; 2], Error>> = OnceLock::new();
    let api = API.get_or_init(|| {
        let api = Api::open(&driver_path()).map_err(|error| {
            os::terminal::say(&error.to_string());
            Error::INITIALIZATION
        })?;
        // SAFETY: cuInit takes no pointers.
        check(unsafe { api.cuInit(0) })?;
        Ok([api.clone(), api.with_per_thread_stream()])
    });
    match api {
        Ok(kinds) => Ok(&kinds[usize::from(PER_THREAD.get())]),
        Err(error) => Err(*error),
    }
}

/// The driver, with the thread's device made current.
pub(crate) fn context() -> Result<&'static Api, Error> {
    let api = driver()?;
    let mut current: CUcontext = null_mut();
    // SAFETY: `current` outlives the calls; the context is one that the driver gave.
    unsafe {
        check(api.cuCtxGetCurrent(&mut current))?;
        if current.is_null() {
            check(api.cuCtxSetCurrent(primary(api, device())?))?;
        }
    }
    Ok(api)
}

/// The thread's device.
pub(crate) fn device() -> c_int {
    DEVICE.get()
}

/// Makes `device` the thread's device.
pub(crate) fn set_device(device: c_int) -> Result<(), Error> {
    let api = driver()?;
    let mut count = 0;
    // SAFETY: `count` outlives the call; the context is one that the driver gave.
    unsafe {
        check(api.cuDeviceGetCount(&mut count))?;
        if !(0..count).contains(&device) {
            return Err(Error::INVALID_DEVICE);
        }
        DEVICE.set(device);
        check(api.cuCtxSetCurrent(primary(api, device)?))
    }
}

/// Forgets the primary context of the thread's device; the next call makes a new one.
pub(crate) fn reset() -> Result<(), Error> {
    let api = driver()?;
    lock(&CONTEXTS).retain(|(of, _)| *of != device());
    // SAFETY: no pointers but null, which is "no context".
    unsafe {
        check(api.cuDevicePrimaryCtxReset(device()))?;
        check(api.cuCtxSetCurrent(null_mut()))
    }
}

/// The primary context of a device.
pub(crate) fn primary(api: &Api, device: c_int) -> Result<CUcontext, Error> {
    let mut contexts = lock(&CONTEXTS);
    if let Some((_, context)) = contexts.iter().find(|(of, _)| *of == device) {
        return Ok(*context as CUcontext);
    }
    let mut context: CUcontext = null_mut();
    // SAFETY: `context` outlives the call.
    check(unsafe { api.cuDevicePrimaryCtxRetain(&mut context, device) })?;
    contexts.push((device, context as usize));
    Ok(context)
}

/// The primary context of another device than the thread's.
pub(crate) fn peer(api: &Api, peer: c_int) -> Result<CUcontext, Error> {
    match peer == device() {
        true => Err(Error::INVALID_DEVICE),
        false => primary(api, peer),
    }
}

/// Locks in spite of a panic elsewhere: the data is valid after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn driver_path() -> PathBuf {
    if let Some(path) = std::env::var_os(DRIVER_VARIABLE) {
        return path.into();
    }
    own_path()
        .and_then(|path| Some(path.parent()?.join("libcuda.so.1")))
        .unwrap_or_default()
}

/// Whether this is the library of CUDA 12, whose functions have other arguments in places.
pub(crate) fn is_cuda_12() -> bool {
    static OLD: OnceLock<bool> = OnceLock::new();
    *OLD.get_or_init(|| {
        let file = own_path().unwrap_or_default();
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.ends_with(".12"))
    })
}

/// The file this library was loaded from, with links resolved.
pub(crate) fn own_path() -> Option<PathBuf> {
    let function: fn() -> Option<PathBuf> = own_path;
    // SAFETY: an all-zero Dl_info is a value; dladdr fills it and keeps no pointer to it.
    let name = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(function as *const c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(info.dli_fname)
    };
    Path::new(OsStr::from_bytes(name.to_bytes()))
        .canonicalize()
        .ok()
}
