//! Finding functions by name, and the end of modules.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use driver::gpu;
use driver::pointer::Ptr;
use driver::sys::*;

use super::load::{Answer, find, written};
use crate::state::{Function, Module, State, with_started};

/// Forgets a module, a library and their functions.
fn forget(real: &'static Api, handle: u64) {
    let gone = with_started(|state| {
        state.session.poll();
        state.without_ptx.unloaded(handle);
        let gone = state.modules.remove(&handle);
        state.functions.retain(|_, of| of.module != handle);
        let functions = &state.functions;
        state.owns.retain(|of, _| functions.contains_key(of));
        state.steps.retain(|of, _| functions.contains_key(of));
        state
            .attributes
            .retain(|(of, _), _| functions.contains_key(of));
        gone
    });
    if let Some(Some(own)) = gone.map(|gone| gone.and_then(|gone| gone.own)) {
        own.unload(real);
    }
}

pub(crate) unsafe fn cuModuleUnload(real: &'static Api, module: CUmodule) -> CUresult {
    forget(real, module.expose_provenance() as u64);
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuModuleUnload(module) }
}

pub(crate) unsafe fn cuLibraryUnload(real: &'static Api, library: CUlibrary) -> CUresult {
    forget(real, library.expose_provenance() as u64);
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuLibraryUnload(library) }
}

/// Remembers the function of that name that a call has found.
///
/// # Safety
/// After success `out` points to a handle, and `name` is a C string.
unsafe fn register<T>(
    result: CUresult,
    out: *mut *mut T,
    module: u64,
    name: *const c_char,
    kernel: bool,
) -> CUresult {
    if result == CUresult::SUCCESS {
        // SAFETY: by the contract.
        let (handle, name) = unsafe { ((*out).expose_provenance(), CStr::from_ptr(name)) };
        with_started(|state| {
            state.register(handle as u64, module, &name.to_string_lossy(), kernel)
        });
    }
    result
}

pub(crate) unsafe fn cuModuleGetFunction(
    real: &'static Api,
    func: *mut CUfunction,
    module: CUmodule,
    name: *const c_char,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let result = real.cuModuleGetFunction(func, module, name);
        register(result, func, module.expose_provenance() as u64, name, false)
    }
}

pub(crate) unsafe fn cuLibraryGetKernel(
    real: &'static Api,
    kernel_out: *mut CUkernel,
    library: CUlibrary,
    name: *const c_char,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let result = real.cuLibraryGetKernel(kernel_out, library, name);
        let library = library.expose_provenance() as u64;
        register(result, kernel_out, library, name, true)
    }
}

/// What a program has got when it asked for all functions of a module, or all kernels of a library.
struct Enumerated<T> {
    result: CUresult,
    out: *mut *mut T,
    /// How many handles it has asked for.
    room: c_uint,
}

/// Remembers the functions of a module, or the kernels of a library, if it has no PTX.
///
/// # Safety
/// After success `out` has room for so many handles, if it is not null.
unsafe fn found_without_ptx<T>(
    real: &'static Api,
    handle: u64,
    Enumerated { result, out, room }: Enumerated<T>,
    kernel: bool,
) {
    let has = with_started(|state| state.without_ptx.has(handle)) == Some(true);
    if result != CUresult::SUCCESS || !has || out.is_null() {
        return;
    }
    for index in 0..room as usize {
        // SAFETY: by the contract.
        let found = unsafe { out.add(index).read() }.expose_provenance() as u64;
        if found != 0
            && let Some(name) = name_of(real, found, kernel)
        {
            with_started(|state| state.without_ptx.found(found, handle, &name));
        }
    }
}

/// Remembers all functions of a module, because the program has got handles without names. A
/// driver gives the same handle for the same name each time.
fn register_all(real: &'static Api, handle: u64) {
    let Some(Some(module)) = with_started(|state| state.modules.get(&handle).cloned()) else {
        return;
    };
    for name in module.kernels.keys() {
        if let Some(function) = find(real, handle, module.library, name) {
            with_started(|state| state.register(function, handle, name, module.library));
        }
    }
}

/// Handles of the program's own code beside the kernels of a module or library: these are none of the program's.
fn beside(real: &'static Api, handle: u64) -> Vec<u64> {
    let names = with_started(|state| {
        let module = state.modules.get(&handle)?;
        let checker = state.session.checker();
        let names = module.kernels.keys();
        let names = names.filter_map(|name| checker.own_name(module.key, name));
        Some((module.library, names.collect::<Vec<String>>()))
    });
    let Some((library, names)) = names.flatten() else {
        return Vec::new();
    };
    let found = names.iter().map(|name| find(real, handle, library, name));
    found.flatten().collect()
}

/// Counts functions without those that are none of the program's.
///
/// # Safety
/// After success `count` points to a number.
unsafe fn counted(
    real: &'static Api,
    handle: u64,
    count: *mut c_uint,
    result: CUresult,
) -> CUresult {
    if result == CUresult::SUCCESS {
        let beside = beside(real, handle).len() as c_uint;
        // SAFETY: by the contract.
        unsafe { *count = (*count).saturating_sub(beside) };
    }
    result
}

/// Gives the handles of functions without those that are none of the program's: up to `room` of them in `out`. `count`
/// asks the driver how many there are, and `all` for all of them.
///
/// # Safety
/// `out` has room for so many handles, if it is not null.
unsafe fn enumerated<T>(
    real: &'static Api,
    handle: u64,
    out: *mut *mut T,
    room: c_uint,
    count: impl FnOnce(*mut c_uint) -> CUresult,
    all: impl FnOnce(*mut *mut T, c_uint) -> CUresult,
) -> CUresult {
    let beside = beside(real, handle);
    let mut there = 0;
    if beside.is_empty() || out.is_null() || count(&mut there) != CUresult::SUCCESS {
        return all(out, room);
    }
    let mut found = vec![std::ptr::null_mut::<T>(); there as usize];
    let result = all(found.as_mut_ptr(), there);
    if result == CUresult::SUCCESS {
        let own = |of: &*mut T| beside.contains(&(of.expose_provenance() as u64));
        found.retain(|of| !of.is_null() && !own(of));
        found.truncate(room as usize);
        // SAFETY: by the contract; there are no more of them than there is room.
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), out, found.len()) };
    }
    result
}

pub(crate) unsafe fn cuModuleGetFunctionCount(
    real: &'static Api,
    count: *mut c_uint,
    module: CUmodule,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let result = real.cuModuleGetFunctionCount(count, module);
        counted(real, module.expose_provenance() as u64, count, result)
    }
}

pub(crate) unsafe fn cuLibraryGetKernelCount(
    real: &'static Api,
    count: *mut c_uint,
    library: CUlibrary,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let result = real.cuLibraryGetKernelCount(count, library);
        counted(real, library.expose_provenance() as u64, count, result)
    }
}

pub(crate) unsafe fn cuModuleEnumerateFunctions(
    real: &'static Api,
    functions: *mut CUfunction,
    num_functions: c_uint,
    module: CUmodule,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe {
        let handle = module.expose_provenance() as u64;
        let count = |count| real.cuModuleGetFunctionCount(count, module);
        let all = |out, room| real.cuModuleEnumerateFunctions(out, room, module);
        enumerated(real, handle, functions, num_functions, count, all)
    };
    let handle = module.expose_provenance() as u64;
    register_all(real, handle);
    let found = Enumerated {
        result,
        out: functions,
        room: num_functions,
    };
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { found_without_ptx(real, handle, found, false) };
    result
}

pub(crate) unsafe fn cuLibraryEnumerateKernels(
    real: &'static Api,
    kernels: *mut CUkernel,
    num_kernels: c_uint,
    library: CUlibrary,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe {
        let handle = library.expose_provenance() as u64;
        let count = |count| real.cuLibraryGetKernelCount(count, library);
        let all = |out, room| real.cuLibraryEnumerateKernels(out, room, library);
        enumerated(real, handle, kernels, num_kernels, count, all)
    };
    let handle = library.expose_provenance() as u64;
    register_all(real, handle);
    let found = Enumerated {
        result,
        out: kernels,
        room: num_kernels,
    };
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { found_without_ptx(real, handle, found, true) };
    result
}

/// Remembers what a context has of a library: a module.
fn register_module(handle: u64, library: u64) {
    with_started(|state| {
        state.modules.remove(&handle);
        state.without_ptx.module_of(handle, library);
        if let Some(found) = state.modules.get(&library).cloned() {
            let module = Module {
                library: false,
                ..found
            };
            state.modules.insert(handle, module);
        }
    });
}

pub(crate) unsafe fn cuLibraryGetModule(
    real: &'static Api,
    module_out: *mut CUmodule,
    library: CUlibrary,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let Answer { result, handle } =
        unsafe { written(real.cuLibraryGetModule(module_out, library), module_out) };
    if result == CUresult::SUCCESS {
        register_module(handle, library.expose_provenance() as u64);
    }
    result
}

pub(crate) unsafe fn cuFuncGetModule(
    real: &'static Api,
    module: *mut CUmodule,
    func: CUfunction,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let Answer { result, handle } = unsafe { written(real.cuFuncGetModule(module, func), module) };
    let of = func.expose_provenance() as u64;
    let found = with_started(|state| Some(state.functions.get(&of)?.module));
    // A function of a module that the program has loaded leads back to what is known.
    if let (CUresult::SUCCESS, Some(Some(of))) = (result, found)
        && of != handle
    {
        register_module(handle, of);
    }
    result
}

pub(crate) unsafe fn cuKernelGetFunction(
    real: &'static Api,
    func_out: *mut CUfunction,
    kernel: CUkernel,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let Answer { result, handle } =
        unsafe { written(real.cuKernelGetFunction(func_out, kernel), func_out) };
    if result == CUresult::SUCCESS {
        let kernel = kernel.expose_provenance() as u64;
        with_started(|state| state.register_function(handle, kernel));
    }
    result
}

impl State {
    /// The handle of the program's own code beside a function or kernel with checks, if there is any.
    pub(super) fn own(&mut self, real: &'static Api, handle: u64) -> Option<u64> {
        if let Some(&own) = self.owns.get(&handle) {
            return Some(own);
        }
        let of = self.functions.get(&handle)?;
        let checker = self.session.checker();
        if !checker.has_own(of.key, &of.name) {
            return None;
        }
        let name = checker.own_name(of.key, &of.name)?;
        let library = self.modules.get(&of.module)?.library;
        let found = find(real, of.module, library, &name);
        let own = match library && !of.kernel {
            false => found,
            true => found.and_then(|found| {
                let mut function = std::ptr::null_mut();
                let kernel = std::ptr::with_exposed_provenance_mut(found as usize);
                // SAFETY: the handle is that of a live kernel, and there is room for the result.
                let result = unsafe { real.cuKernelGetFunction(&mut function, kernel) };
                let given = result == CUresult::SUCCESS;
                given.then(|| function.expose_provenance() as u64)
            }),
        };
        match own {
            Some(own) => _ = self.owns.insert(handle, own),
            None => checker.lacks_own(of.key, &of.name),
        }
        own
    }

    /// Finds out whether a function that the driver has returned is that of a kernel that is known.
    pub(super) fn adopt(&mut self, real: &'static Api, function: u64) {
        if self.functions.contains_key(&function) {
            return;
        }
        let name = name_of(real, function, false);
        let named = |of: &Function| name.as_ref().is_none_or(|name| *name == of.name);
        let known = self.functions.iter();
        let known = known.filter(|(_, of)| of.kernel && named(of));
        let kernels: Vec<u64> = known.map(|(&handle, _)| handle).collect();
        let of_kernel = |kernel: &u64| {
            let mut found = std::ptr::null_mut();
            let kernel = std::ptr::with_exposed_provenance_mut(*kernel as usize);
            // SAFETY: the handle is that of a live kernel, and there is room for the result.
            let result = unsafe { real.cuKernelGetFunction(&mut found, kernel) };
            result == CUresult::SUCCESS && found.addr() == function as usize
        };
        let _relaxed = gpu::relaxed(real);
        if let Some(kernel) = kernels.into_iter().find(of_kernel) {
            self.register_function(function, kernel);
        }
    }
}

/// The name that the driver gives of a function or, where `kernel`, of a library's kernel.
pub(super) fn name_of(real: &Api, handle: u64, kernel: bool) -> Option<String> {
    let at = std::ptr::with_exposed_provenance_mut::<c_void>(handle as usize);
    let mut name = std::ptr::null();
    // SAFETY: the handle is that of a live function or kernel, and there is room for the result.
    unsafe {
        let result = match kernel {
            true => real.cuKernelGetName(&mut name, at.cast()),
            false => real.cuFuncGetName(&mut name, at.cast()),
        };
        match result {
            CUresult::SUCCESS => Ptr::new(name).text().ok(),
            _ => None,
        }
    }
}

/// Sets for the program's own code what has been set for a kernel with checks, if that has worked.
fn also<T>(
    real: &'static Api,
    result: CUresult,
    handle: *mut T,
    set: impl FnOnce(*mut T) -> CUresult,
) -> CUresult {
    let handle = handle.expose_provenance() as u64;
    match result {
        CUresult::SUCCESS => match with_started(|state| state.own(real, handle)).flatten() {
            Some(own) => set(std::ptr::with_exposed_provenance_mut(own as usize)),
            None => result,
        },
        error => error,
    }
}

pub(crate) unsafe fn cuFuncSetCacheConfig(
    real: &'static Api,
    func: CUfunction,
    config: CUfunc_cache,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let set = |func| unsafe { real.cuFuncSetCacheConfig(func, config) };
    also(real, set(func), func, set)
}

pub(crate) unsafe fn cuFuncSetSharedMemConfig(
    real: &'static Api,
    func: CUfunction,
    config: CUsharedconfig,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let set = |func| unsafe { real.cuFuncSetSharedMemConfig(func, config) };
    also(real, set(func), func, set)
}

pub(crate) unsafe fn cuKernelSetCacheConfig(
    real: &'static Api,
    kernel: CUkernel,
    config: CUfunc_cache,
    dev: CUdevice,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let set = |kernel| unsafe { real.cuKernelSetCacheConfig(kernel, config, dev) };
    also(real, set(kernel), kernel, set)
}

/// Forgets attributes that a call sets, of all functions: a kernel is known by more than one handle.
fn set(result: CUresult, attribute: CUfunction_attribute) -> CUresult {
    if super::launch::ATTRIBUTES.contains(&attribute) {
        with_started(|state| state.attributes.clear());
    }
    result
}

pub(crate) unsafe fn cuFuncSetAttribute(
    real: &'static Api,
    func: CUfunction,
    attrib: CUfunction_attribute,
    value: c_int,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let on = |func| unsafe { real.cuFuncSetAttribute(func, attrib, value) };
    set(also(real, on(func), func, on), attrib)
}

pub(crate) unsafe fn cuKernelSetAttribute(
    real: &'static Api,
    attrib: CUfunction_attribute,
    val: c_int,
    kernel: CUkernel,
    dev: CUdevice,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let on = |kernel| unsafe { real.cuKernelSetAttribute(attrib, val, kernel, dev) };
    set(also(real, on(kernel), kernel, on), attrib)
}

/// The hidden parameter is none of the program's.
fn is_hidden(handle: u64, index: usize) -> bool {
    let found = with_started(|state| state.functions.get(&handle).cloned());
    found
        .flatten()
        .is_some_and(|of| of.hidden.is_some() && index == of.params.len())
}

pub(crate) unsafe fn cuFuncGetParamInfo(
    real: &'static Api,
    func: CUfunction,
    param_index: usize,
    param_offset: *mut usize,
    param_size: *mut usize,
) -> CUresult {
    if is_hidden(func.expose_provenance() as u64, param_index) {
        return CUresult::INVALID_VALUE;
    }
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuFuncGetParamInfo(func, param_index, param_offset, param_size) }
}

pub(crate) unsafe fn cuKernelGetParamInfo(
    real: &'static Api,
    kernel: CUkernel,
    param_index: usize,
    param_offset: *mut usize,
    param_size: *mut usize,
) -> CUresult {
    if is_hidden(kernel.expose_provenance() as u64, param_index) {
        return CUresult::INVALID_VALUE;
    }
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuKernelGetParamInfo(kernel, param_index, param_offset, param_size) }
}
