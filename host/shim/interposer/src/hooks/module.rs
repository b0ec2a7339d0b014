//! Loads in every form, and finding functions by name.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_uint, c_void};

use driver::image::{self, Image, Refusal, Source};
use driver::pointer::Ptr;
use driver::sys::*;
use ptx::ast::Space;
use runtime::Prepared;

use crate::watch::{Function, Module, Watch, with, with_begun};

/// Two digits of an architecture: major and minor.
fn architecture(real: &Api) -> u32 {
    let (mut device, mut major, mut minor) = (0, 0, 0);
    // SAFETY: there is room for all results. Without a context it is the first device, 0.
    let known = unsafe {
        let _ = real.cuCtxGetDevice(&mut device);
        [
            real.cuDeviceGetAttribute(
                &mut major,
                device_attribute::COMPUTE_CAPABILITY_MAJOR,
                device,
            ),
            real.cuDeviceGetAttribute(
                &mut minor,
                device_attribute::COMPUTE_CAPABILITY_MINOR,
                device,
            ),
        ]
    };
    match known {
        [CUresult::SUCCESS, CUresult::SUCCESS] => (major * 10 + minor) as u32,
        // The oldest that is still worth compiling for.
        _ => 75,
    }
}

/// PTX of an image with its checks.
pub(super) struct Checked {
    prepared: Prepared,
    original: Source,
    pub(super) module: Module,
}

impl Checked {
    /// What to load. A text that has got no checks is not worth compiling anew.
    pub(super) fn text(&self) -> Option<CString> {
        match self.prepared.text == *self.original.text {
            true => None,
            false => CString::new(self.prepared.text.as_str()).ok(),
        }
    }
}

/// What is known of an image before it is loaded.
enum Found {
    Checked(Checked),
    /// The driver has compiled it of PTX with checks.
    Linked(Module),
}

impl Watch {
    /// Puts checks into PTX.
    pub(super) fn prepare(&mut self, source: Source, library: bool) -> Checked {
        let prepared = self.session.checker().prepare(&source.text, &source.origin);
        let (parsed, _) = ptx::parse(&source.text);
        let entries = parsed.functions().filter(|function| function.entry);
        let kernels = entries.map(|entry| (entry.name.to_string(), entry.params.len()));
        let global = parsed
            .variables()
            .filter(|variable| variable.space == Space::Global);
        Checked {
            module: Module {
                key: prepared.key,
                kernels: kernels.collect(),
                variables: global.map(|variable| variable.name.to_string()).collect(),
                library,
                told: HashSet::new(),
            },
            prepared,
            original: source,
        }
    }
}

/// Reads an image and puts checks in, if that is possible and this process is checked.
fn check(found: Result<Image, Refusal>, library: bool) -> Option<Checked> {
    let source = match found {
        Ok(Image::Text(source) | Image::Module(source)) => source,
        Ok(Image::Units(units)) => {
            let origin = units.first().map_or("a module", |unit| &unit.origin);
            let why = "relocatable device code (-rdc=true) is not checked on a GPU";
            with(|watch| watch.session.checker().note(format!("{origin}: {why}")));
            return None;
        }
        Err(refusal) => {
            with(|watch| watch.session.checker().note(refusal.message));
            return None;
        }
    };
    with(|watch| watch.prepare(source, library))
}

/// Loads what a program wants to load, with checks if there is PTX in it.
///
/// `load` asks the driver for an image and gives the handle; `original` is the program's own image.
fn load(
    found: Option<Found>,
    original: *const c_void,
    load: impl Fn(*const c_void) -> (CUresult, u64),
) -> CUresult {
    let checked = match found {
        Some(Found::Checked(checked)) => checked,
        Some(Found::Linked(module)) => {
            let (result, handle) = load(original);
            if result == CUresult::SUCCESS {
                with(|watch| watch.modules.insert(handle, module));
            }
            return result;
        }
        None => return load(original).0,
    };
    let mut text = checked.text();
    let mut why = String::new();
    // A launch needs its hidden parameter, whatever happens.
    if text.is_some() && with(|watch| watch.is_ready()) == Some(false) {
        (text, why) = (None, "the context has no room for checks".to_owned());
    }
    let Checked {
        prepared,
        original: source,
        module,
    } = checked;
    let (mut result, mut handle) = match &text {
        Some(text) => load(text.as_ptr().cast()),
        None => load(original),
    };
    if text.is_some() && result != CUresult::SUCCESS {
        why = format!("its module does not load with checks: {result}");
        (result, handle) = load(original);
    }
    // If the program's own image does not load either, that is the program's affair.
    if !why.is_empty() && result == CUresult::SUCCESS {
        with(|watch| {
            let checker = watch.session.checker();
            checker.give_up(prepared.key, &source.text, &why);
        });
    }
    if result == CUresult::SUCCESS {
        with(|watch| watch.modules.insert(handle, module));
    }
    result
}

/// The handle that a successful call has written.
///
/// # Safety
/// After success `out` points to a handle.
unsafe fn written<T>(result: CUresult, out: *mut *mut T) -> (CUresult, u64) {
    let handle = match result {
        // SAFETY: by the contract.
        CUresult::SUCCESS => unsafe { *out }.expose_provenance() as u64,
        _ => 0,
    };
    (result, handle)
}

/// An image in memory, as a program passes it.
///
/// # Safety
/// `image` is what a load of the driver API takes.
unsafe fn in_memory(real: &Api, image: *const c_void, library: bool) -> Option<Found> {
    let address = image.addr() as u64;
    let linked = with(|watch| {
        let mut links = watch.links.values();
        links.find(|link| link.image == Some(address)).cloned()
    })?;
    if let Some(link) = linked {
        // A linker has made it of PTX that has its checks.
        let module = Module {
            library,
            ..link.module
        };
        return Some(Found::Linked(module));
    }
    // SAFETY: by the contract.
    let found = image::read(unsafe { Ptr::new(image) }, architecture(real));
    check(found, library).map(Found::Checked)
}

/// The image in a file.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn in_file(real: &Api, name: *const c_char, library: bool) -> Option<Found> {
    // SAFETY: by the contract.
    let name = unsafe { Ptr::new(name) }.text().ok()?;
    let bytes = std::fs::read(&name).ok()?;
    // Read it only where somebody asks.
    with(|_| ())?;
    check(
        image::read_bytes(&bytes, &name, architecture(real)),
        library,
    )
    .map(Found::Checked)
}

pub(crate) unsafe fn cuModuleLoad(
    real: &'static Api,
    module: *mut CUmodule,
    fname: *const c_char,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let found = unsafe { in_file(real, fname, false) };
    let file: *const c_void = fname.cast();
    // SAFETY: as above; an image that is not the file's name is a text.
    load(found, file, |image| unsafe {
        let result = match image == file {
            true => real.cuModuleLoad(module, fname),
            false => real.cuModuleLoadData(module, image),
        };
        written(result, module)
    })
}

pub(crate) unsafe fn cuModuleLoadData(
    real: &'static Api,
    module: *mut CUmodule,
    image: *const c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        load(in_memory(real, image, false), image, |image| {
            written(real.cuModuleLoadData(module, image), module)
        })
    }
}

pub(crate) unsafe fn cuModuleLoadDataEx(
    real: &'static Api,
    module: *mut CUmodule,
    image: *const c_void,
    num_options: c_uint,
    options: *mut CUjit_option,
    option_values: *mut *mut c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        load(in_memory(real, image, false), image, |image| {
            let result =
                real.cuModuleLoadDataEx(module, image, num_options, options, option_values);
            written(result, module)
        })
    }
}

pub(crate) unsafe fn cuModuleLoadFatBinary(
    real: &'static Api,
    module: *mut CUmodule,
    fat_cubin: *const c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function; text is loaded as such.
    unsafe {
        load(in_memory(real, fat_cubin, false), fat_cubin, |image| {
            let result = match image == fat_cubin {
                true => real.cuModuleLoadFatBinary(module, image),
                false => real.cuModuleLoadData(module, image),
            };
            written(result, module)
        })
    }
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) unsafe fn cuLibraryLoadData(
    real: &'static Api,
    library: *mut CUlibrary,
    code: *const c_void,
    jit_options: *mut CUjit_option,
    jit_options_values: *mut *mut c_void,
    num_jit_options: c_uint,
    library_options: *mut CUlibraryOption,
    library_option_values: *mut *mut c_void,
    num_library_options: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        load(in_memory(real, code, true), code, |code| {
            let result = real.cuLibraryLoadData(
                library,
                code,
                jit_options,
                jit_options_values,
                num_jit_options,
                library_options,
                library_option_values,
                num_library_options,
            );
            written(result, library)
        })
    }
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) unsafe fn cuLibraryLoadFromFile(
    real: &'static Api,
    library: *mut CUlibrary,
    file_name: *const c_char,
    jit_options: *mut CUjit_option,
    jit_options_values: *mut *mut c_void,
    num_jit_options: c_uint,
    library_options: *mut CUlibraryOption,
    library_option_values: *mut *mut c_void,
    num_library_options: c_uint,
) -> CUresult {
    let file: *const c_void = file_name.cast();
    // SAFETY: the caller keeps the conditions of the C function.
    let found = unsafe { in_file(real, file_name, true) };
    // SAFETY: as above; an image that is not the file's name is a text.
    load(found, file, |image| unsafe {
        let result = match image == file {
            true => real.cuLibraryLoadFromFile(
                library,
                file_name,
                jit_options,
                jit_options_values,
                num_jit_options,
                library_options,
                library_option_values,
                num_library_options,
            ),
            false => real.cuLibraryLoadData(
                library,
                image,
                jit_options,
                jit_options_values,
                num_jit_options,
                library_options,
                library_option_values,
                num_library_options,
            ),
        };
        written(result, library)
    })
}

/// Forgets a module, a library and their functions.
fn forget(handle: u64) {
    with_begun(|watch| {
        watch.session.poll();
        watch.modules.remove(&handle);
        watch.functions.retain(|_, of| of.module != handle);
    });
}

pub(crate) unsafe fn cuModuleUnload(real: &'static Api, module: CUmodule) -> CUresult {
    forget(module.expose_provenance() as u64);
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuModuleUnload(module) }
}

pub(crate) unsafe fn cuLibraryUnload(real: &'static Api, library: CUlibrary) -> CUresult {
    forget(library.expose_provenance() as u64);
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
        let Ok(symbol) = CString::new(name.as_str()) else {
            continue;
        };
        let at = std::ptr::with_exposed_provenance_mut::<c_void>(handle as usize);
        let mut found = std::ptr::null_mut::<c_void>();
        let to = &raw mut found;
        // SAFETY: the program has just used the handle; there is room for the result.
        let result = unsafe {
            match module.library {
                true => real.cuLibraryGetKernel(to.cast(), at.cast(), symbol.as_ptr()),
                false => real.cuModuleGetFunction(to.cast(), at.cast(), symbol.as_ptr()),
            }
        };
        if result == CUresult::SUCCESS {
            let function = found.expose_provenance() as u64;
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

pub(crate) unsafe fn cuLibraryGetModule(
    real: &'static Api,
    module_out: *mut CUmodule,
    library: CUlibrary,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let (result, handle) =
        unsafe { written(real.cuLibraryGetModule(module_out, library), module_out) };
    if result == CUresult::SUCCESS {
        with_begun(|watch| {
            let of = library.expose_provenance() as u64;
            if let Some(found) = watch.modules.get(&of).cloned() {
                let module = Module {
                    library: false,
                    ..found
                };
                watch.modules.insert(handle, module);
            }
        });
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
        with_begun(|watch| {
            let of = kernel.expose_provenance() as u64;
            if let Some(found) = watch.functions.get(&of).cloned() {
                watch.functions.insert(
                    handle,
                    Function {
                        kernel: false,
                        ..found
                    },
                );
            }
        });
    }
    result
}

/// The hidden parameter is none of the program's.
fn is_hidden(handle: u64, index: usize) -> bool {
    let found = with_begun(|watch| watch.functions.get(&handle).cloned());
    found
        .flatten()
        .is_some_and(|of| of.hidden.is_some() && index == of.params)
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
