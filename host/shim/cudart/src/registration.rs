//! What nvcc's host code registers before `main`: fat binaries, kernels, variables.
//!
//! A fat binary is loaded when the first of its kernels or variables is needed, as the real library
//! does, and when a managed variable is first touched: nvcc's code calls `__cudaInitModule` there.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use driver::sys::{Api, CUkernel, CUlibrary};

use crate::context::{context, lock};
use crate::error::{Error, check};

#[derive(Default)]
struct Registry {
    /// By the handle's value, which is the index plus 1.
    binaries: Vec<Binary>,
    kernels: HashMap<usize, Kernel>,
    variables: HashMap<usize, Variable>,
}

impl Registry {
    /// The managed variable that lies at an address: nvcc's code names it so, and not by where the
    /// host keeps that address.
    fn managed_at(&self, address: u64) -> Option<&Variable> {
        let managed = self.binaries.iter().filter(|b| b.library.is_some());
        let (host, _) = managed.flat_map(|b| &b.managed).find(|(host, _)| {
            // SAFETY: registered as valid, and written when the library was loaded.
            unsafe { *(*host as *const u64) == address }
        })?;
        self.variables.get(host)
    }
}

struct Binary {
    wrapper: usize,
    library: Option<usize>,
    /// Where the host keeps the addresses of managed variables, and their device names.
    managed: Vec<(usize, CString)>,
}

struct Kernel {
    binary: usize,
    name: CString,
    handle: Option<usize>,
}

struct Variable {
    binary: usize,
    name: CString,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

/// Held while a fat binary is loaded: two threads that need it at once must get the same variables.
static LOADING: Mutex<()> = Mutex::new(());

fn with<T>(body: impl FnOnce(&mut Registry) -> T) -> T {
    body(lock(&REGISTRY).get_or_insert_default())
}

/// Registers the fat binary of a translation unit.
///
/// # Safety
/// `wrapper` is the fat binary's wrapper, which lives as long as the library that registers it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFatBinary(wrapper: *mut c_void) -> *mut *mut c_void {
    let handle = with(|registry| {
        registry.binaries.push(Binary {
            wrapper: wrapper as usize,
            library: None,
            managed: Vec::new(),
        });
        registry.binaries.len()
    });
    // The handle is never looked through, only given back.
    handle as *mut *mut c_void
}

/// Ends the registration of a translation unit.
///
/// # Safety
/// Takes a handle and looks through nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_handle: *mut *mut c_void) {}

/// Takes a translation unit's registration back.
///
/// # Safety
/// Takes a handle and looks through nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaUnregisterFatBinary(handle: *mut *mut c_void) {
    // At exit the driver may be gone already, and the process's memory goes anyway; only the host's
    // names must not be found any more.
    let binary = handle as usize;
    with(|registry| {
        if let Some(binary) = registry.binaries.get_mut(binary.wrapping_sub(1)) {
            binary.managed.clear();
        }
        registry.kernels.retain(|_, kernel| kernel.binary != binary);
        registry
            .variables
            .retain(|_, variable| variable.binary != binary);
    });
}

/// Registers a kernel by the address of its host stub.
///
/// # Safety
/// `device_name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterFunction(
    handle: *mut *mut c_void,
    host: *const c_char,
    _device_function: *mut c_char,
    device_name: *const c_char,
    _thread_limit: c_int,
    _tid: *mut c_void,
    _bid: *mut c_void,
    _block: *mut c_void,
    _grid: *mut c_void,
    _warp_size: *mut c_int,
) {
    // SAFETY: the caller's condition.
    let name = unsafe { CStr::from_ptr(device_name) }.to_owned();
    let kernel = Kernel {
        binary: handle as usize,
        name,
        handle: None,
    };
    with(|registry| registry.kernels.insert(host as usize, kernel));
}

/// Registers a device variable by the address of its host shadow.
///
/// # Safety
/// `device_name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterVar(
    handle: *mut *mut c_void,
    host: *mut c_char,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
    // SAFETY: the caller's condition.
    let name = unsafe { CStr::from_ptr(device_name) }.to_owned();
    let variable = Variable {
        binary: handle as usize,
        name,
    };
    with(|registry| registry.variables.insert(host as usize, variable));
}

/// Registers a managed variable: the host reads its address from `*host_address`.
///
/// # Safety
/// `device_name` is a string, and `host_address` stays valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaRegisterManagedVar(
    handle: *mut *mut c_void,
    host_address: *mut *mut c_void,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
    // SAFETY: the caller's condition.
    let name = unsafe { CStr::from_ptr(device_name) }.to_owned();
    let binary = handle as usize;
    with(|registry| {
        let variable = Variable {
            binary,
            name: name.clone(),
        };
        registry.variables.insert(host_address as usize, variable);
        if let Some(binary) = registry.binaries.get_mut(binary.wrapping_sub(1)) {
            binary.managed.push((host_address as usize, name));
        }
    });
}

/// Loads a translation unit's device code now.
///
/// # Safety
/// Takes a handle and looks through nothing but what was registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaInitModule(handle: *mut *mut c_void) -> c_char {
    let result = crate::entry::guard(|| library(handle as usize).map(drop));
    c_char::from(result == 0)
}

/// `CU_STREAM_CAPTURE_MODE_RELAXED`
const RELAXED: c_int = 2;

/// Captures forbid the calling thread nothing while this lives.
struct Relaxed(&'static Api, c_int);

impl Relaxed {
    fn new(api: &'static Api) -> Result<Relaxed, Error> {
        let mut mode = RELAXED;
        // SAFETY: there is room for the mode before.
        check(unsafe { api.cuThreadExchangeStreamCaptureMode(&mut mode) })?;
        Ok(Relaxed(api, mode))
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { self.0.cuThreadExchangeStreamCaptureMode(&mut self.1) };
    }
}

/// The loaded library of a fat binary.
fn library(handle: usize) -> Result<CUlibrary, Error> {
    let api = context()?;
    let _loading = lock(&LOADING);
    let found = with(|registry| {
        let binary = registry.binaries.get(handle.wrapping_sub(1))?;
        Some((binary.library, binary.wrapper, binary.managed.clone()))
    });
    let (known, wrapper, managed) = found.ok_or(Error::INVALID_VALUE)?;
    if let Some(library) = known {
        return Ok(library as CUlibrary);
    }
    let mut library: CUlibrary = null_mut();
    // The program has not asked for a load, so no capture of its forbids it one.
    let _relaxed = Relaxed::new(api)?;
    // SAFETY: the wrapper is what the host code registered; the out parameters outlive the calls;
    // the host's pointers to managed variables were registered as valid.
    unsafe {
        check(api.cuLibraryLoadData(
            &mut library,
            wrapper as *const c_void,
            null_mut(),
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0,
        ))?;
        for (host, name) in managed {
            let (mut address, mut bytes) = (0, 0);
            check(api.cuLibraryGetManaged(&mut address, &mut bytes, library, name.as_ptr()))?;
            *(host as *mut u64) = address;
        }
    }
    with(|registry| {
        if let Some(binary) = registry.binaries.get_mut(handle - 1) {
            binary.library = Some(library as usize);
        }
    });
    Ok(library)
}

/// The kernel whose host stub is at `host`.
pub(crate) fn kernel(host: *const c_void) -> Result<CUkernel, Error> {
    let found = with(|registry| {
        let kernel = registry.kernels.get(&(host as usize))?;
        Some((kernel.handle, kernel.binary, kernel.name.clone()))
    });
    let Some((known, binary, name)) = found else {
        return loaded(host as CUkernel);
    };
    if let Some(kernel) = known {
        return Ok(kernel as CUkernel);
    }
    let (library, api) = (library(binary)?, context()?);
    let mut kernel: CUkernel = null_mut();
    // SAFETY: the library is loaded, the name is a string, the out parameter outlives the call.
    let result = unsafe { api.cuLibraryGetKernel(&mut kernel, library, name.as_ptr()) };
    check(result).map_err(|error| {
        if error.0 == 500 {
            Error::INVALID_DEVICE_FUNCTION
        } else {
            error
        }
    })?;
    with(|registry| {
        if let Some(known) = registry.kernels.get_mut(&(host as usize)) {
            known.handle = Some(kernel as usize);
        }
    });
    Ok(kernel)
}

/// A kernel of a library that the program has loaded itself, which stands for itself.
fn loaded(kernel: CUkernel) -> Result<CUkernel, Error> {
    let api = context()?;
    let mut name = null();
    // SAFETY: the driver finds out what is no kernel; the out parameter outlives the call.
    match unsafe { api.cuKernelGetName(&mut name, kernel) }.0 {
        0 => Ok(kernel),
        _ => Err(Error::INVALID_DEVICE_FUNCTION),
    }
}

/// The host stub of a loaded kernel, by its handle or by that of the function that the context has of it.
pub(crate) fn host_of(handle: usize) -> Option<usize> {
    let all: Vec<(usize, usize)> = with(|registry| {
        let kernels = registry.kernels.iter();
        let loaded = kernels.filter_map(|(&host, of)| Some((host, of.handle?)));
        loaded.collect()
    });
    let api = context().ok()?;
    let is_of = |kernel: usize| {
        let mut function = null_mut();
        // SAFETY: the kernel is loaded, and there is room for the result.
        let known = unsafe { api.cuKernelGetFunction(&mut function, kernel as CUkernel) };
        known.0 == 0 && function as usize == handle
    };
    let found = all
        .into_iter()
        .find(|&(_, kernel)| kernel == handle || is_of(kernel));
    found.map(|(host, _)| host)
}

/// Device address and size in bytes of the variable whose host shadow is at `host`.
pub(crate) fn symbol(host: *const c_void) -> Result<(u64, usize), Error> {
    let found = with(|registry| {
        let variable = registry
            .variables
            .get(&(host as usize))
            .or_else(|| registry.managed_at(host as u64))?;
        Some((variable.binary, variable.name.clone()))
    });
    let (binary, name) = found.ok_or(Error::INVALID_SYMBOL)?;
    let (library, api) = (library(binary)?, context()?);
    let (mut address, mut bytes) = (0, 0);
    // SAFETY: the library is loaded, the name is a string, the out parameters outlive the calls.
    unsafe {
        let global = api.cuLibraryGetGlobal(&mut address, &mut bytes, library, name.as_ptr());
        if check(global).is_err() {
            let managed = api.cuLibraryGetManaged(&mut address, &mut bytes, library, name.as_ptr());
            check(managed).map_err(|_| Error::INVALID_SYMBOL)?;
        }
    }
    Ok((address, bytes))
}

/// Forgets what was loaded: the context is gone.
pub(crate) fn forget_loaded() {
    with(|registry| {
        registry
            .binaries
            .iter_mut()
            .for_each(|binary| binary.library = None);
        registry
            .kernels
            .values_mut()
            .for_each(|kernel| kernel.handle = None);
    });
}
