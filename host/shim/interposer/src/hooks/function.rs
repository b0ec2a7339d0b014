//! Finding functions by name, and the end of modules.

use std::ffi::{CStr, c_char, c_int, c_uint};

use driver::gpu;
use driver::pointer::Ptr;
use driver::sys::*;

use super::load::{find, written};
use crate::watch::{Function, Module, Watch, with_begun};

/// Forgets a module, a library and their functions.
fn forget(real: &'static Api, handle: u64) {
    let gone = with_begun(|watch| {
        watch.session.poll();
        let gone = watch.modules.remove(&handle);
        watch.functions.retain(|_, of| of.module != handle);
        let functions = &watch.functions;
        watch.steps.retain(|of, _| functions.contains_key(of));
        watch
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
unsafe fn learn<T>(
    (result, out): (CUresult, *mut *mut T),
    module: u64,
    name: *const c_char,
    kernel: bool,
) -> CUresult {
    if result == CUresult::SUCCESS {
        // SAFETY: by the contract.
        let (handle, name) = unsafe { ((*out).expose_provenance(), CStr::from_ptr(name)) };
        with_begun(|watch| watch.learn(handle as u64, module, &name.to_string_lossy(), kernel));
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
        learn(
            (result, func),
            module.expose_provenance() as u64,
            name,
            false,
        )
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
        learn((result, kernel_out), library, name, true)
    }
}

/// Remembers all functions of a module, because the program has got handles without names. A
/// driver gives the same handle for the same name each time.
fn learn_all(real: &'static Api, handle: u64) {
    let Some(Some(module)) = with_begun(|watch| watch.modules.get(&handle).cloned()) else {
        return;
    };
    for name in module.kernels.keys() {
        if let Some(function) = find(real, handle, module.library, name) {
            with_begun(|watch| watch.learn(function, handle, name, module.library));
        }
    }
}

pub(crate) unsafe fn cuModuleEnumerateFunctions(
    real: &'static Api,
    functions: *mut CUfunction,
    num_functions: c_uint,
    module: CUmodule,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuModuleEnumerateFunctions(functions, num_functions, module) };
    learn_all(real, module.expose_provenance() as u64);
    result
}

pub(crate) unsafe fn cuLibraryEnumerateKernels(
    real: &'static Api,
    kernels: *mut CUkernel,
    num_kernels: c_uint,
    library: CUlibrary,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuLibraryEnumerateKernels(kernels, num_kernels, library) };
    learn_all(real, library.expose_provenance() as u64);
    result
}

/// Remembers what a context has of a library: a module.
fn learn_module(handle: u64, library: u64) {
    with_begun(|watch| {
        watch.modules.remove(&handle);
        if let Some(found) = watch.modules.get(&library).cloned() {
            let module = Module {
                library: false,
                ..found
            };
            watch.modules.insert(handle, module);
        }
    });
}

pub(crate) unsafe fn cuLibraryGetModule(
    real: &'static Api,
    module_out: *mut CUmodule,
    library: CUlibrary,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let (result, handle) =
        unsafe { written(real.cuLibraryGetModule(module_out, library), module_out) };
    if result == CUresult::SUCCESS {
        learn_module(handle, library.expose_provenance() as u64);
    }
    result
}

pub(crate) unsafe fn cuFuncGetModule(
    real: &'static Api,
    module: *mut CUmodule,
    func: CUfunction,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let (result, handle) = unsafe { written(real.cuFuncGetModule(module, func), module) };
    let of = func.expose_provenance() as u64;
    let found = with_begun(|watch| Some(watch.functions.get(&of)?.module));
    // A function of a module that the program has loaded leads back to what is known.
    if let (CUresult::SUCCESS, Some(Some(of))) = (result, found)
        && of != handle
    {
        learn_module(handle, of);
    }
    result
}

pub(crate) unsafe fn cuKernelGetFunction(
    real: &'static Api,
    func_out: *mut CUfunction,
    kernel: CUkernel,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let (result, handle) = unsafe { written(real.cuKernelGetFunction(func_out, kernel), func_out) };
    if result == CUresult::SUCCESS {
        let kernel = kernel.expose_provenance() as u64;
        with_begun(|watch| watch.learn_function(handle, kernel));
    }
    result
}

impl Watch {
    /// Finds out whether a function of which the driver has told is that of a kernel that is known.
    pub(super) fn adopt(&mut self, real: &'static Api, function: u64) {
        if self.functions.contains_key(&function) {
            return;
        }
        let handle = std::ptr::with_exposed_provenance_mut(function as usize);
        let mut name = std::ptr::null();
        // SAFETY: the handle is that of a live function, and there is room for the result.
        let name = unsafe {
            match real.cuFuncGetName(&mut name, handle) {
                CUresult::SUCCESS => Ptr::new(name).text().ok(),
                _ => None,
            }
        };
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
            self.learn_function(function, kernel);
        }
    }
}

/// Forgets attributes that a call sets, of all functions: a kernel is known by more than one handle.
fn set(result: CUresult, attribute: CUfunction_attribute) -> CUresult {
    if super::launch::ATTRIBUTES.contains(&attribute) {
        with_begun(|watch| watch.attributes.clear());
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
    set(
        unsafe { real.cuFuncSetAttribute(func, attrib, value) },
        attrib,
    )
}

pub(crate) unsafe fn cuKernelSetAttribute(
    real: &'static Api,
    attrib: CUfunction_attribute,
    val: c_int,
    kernel: CUkernel,
    dev: CUdevice,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    set(
        unsafe { real.cuKernelSetAttribute(attrib, val, kernel, dev) },
        attrib,
    )
}

/// The hidden parameter is none of the program's.
fn is_hidden(handle: u64, index: usize) -> bool {
    let found = with_begun(|watch| watch.functions.get(&handle).cloned());
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
