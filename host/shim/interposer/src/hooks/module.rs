//! Loads in every form.

use std::ffi::{c_char, c_uint, c_void};

use driver::load;
use driver::pointer::Ptr;
use driver::sys::*;

use super::jit::{Jit, JitOptions};
use super::load::{Ask, Found, in_file, in_memory, load, written};

/// Loads into a context: `original` loads what the program has given, of which `image` makes a copy.
///
/// # Safety
/// `module` takes a handle, and there are `count` options and values.
unsafe fn load_module(
    real: &'static Api,
    module: *mut CUmodule,
    mut found: Found,
    jit: Jit,
    image: impl FnOnce() -> Option<Vec<u8>>,
    original: impl Fn() -> CUresult,
) -> CUresult {
    // SAFETY: by the contract.
    let jit = unsafe { JitOptions::new(jit) };
    if let Some(checked) = found.checked() {
        checked.keep_own(image, jit.numbers());
    }
    let ask = |ask: Ask| {
        let result = match ask {
            Ask::Original => original(),
            Ask::Checked(text, how, log) => jit.load(how, log, |count, options, values| {
                let text = text.as_ptr().cast();
                // SAFETY: by the contract.
                unsafe { real.cuModuleLoadDataEx(module, text, count, options, values) }
            }),
        };
        // SAFETY: by the contract.
        unsafe { written(result, module) }
    };
    // SAFETY: the handle is that of a module that the program does not know yet.
    let unload = |handle: u64| unsafe {
        let handle = std::ptr::with_exposed_provenance_mut(handle as usize);
        let _ = real.cuModuleUnload(handle);
    };
    load(real, found, ask, unload)
}

/// A copy of an image in memory.
///
/// # Safety
/// It is what a load takes.
unsafe fn copy(image: *const c_void) -> Option<Vec<u8>> {
    // SAFETY: by the contract.
    load::copy(unsafe { Ptr::new(image) })
}

/// The image in a file.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn file(name: *const c_char) -> Option<Vec<u8>> {
    // SAFETY: by the contract.
    let mut bytes = std::fs::read(unsafe { Ptr::new(name) }.text().ok()?).ok()?;
    // The end of a text.
    bytes.push(0);
    Some(bytes)
}

/// No options.
const NONE: Jit = Jit {
    count: 0,
    names: std::ptr::null_mut(),
    values: std::ptr::null_mut(),
};

pub(crate) unsafe fn cuModuleLoad(
    real: &'static Api,
    module: *mut CUmodule,
    fname: *const c_char,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let found = in_file(real, fname, false);
        load_module(
            real,
            module,
            found,
            NONE,
            || file(fname),
            || real.cuModuleLoad(module, fname),
        )
    }
}

pub(crate) unsafe fn cuModuleLoadData(
    real: &'static Api,
    module: *mut CUmodule,
    image: *const c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let found = in_memory(real, image, false);
        load_module(
            real,
            module,
            found,
            NONE,
            || copy(image),
            || real.cuModuleLoadData(module, image),
        )
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
        let found = in_memory(real, image, false);
        let given = Jit {
            count: num_options,
            names: options,
            values: option_values,
        };
        load_module(
            real,
            module,
            found,
            given,
            || copy(image),
            || real.cuModuleLoadDataEx(module, image, num_options, options, option_values),
        )
    }
}

pub(crate) unsafe fn cuModuleLoadFatBinary(
    real: &'static Api,
    module: *mut CUmodule,
    fat_cubin: *const c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let found = in_memory(real, fat_cubin, false);
        load_module(
            real,
            module,
            found,
            NONE,
            || copy(fat_cubin),
            || real.cuModuleLoadFatBinary(module, fat_cubin),
        )
    }
}

/// What a load of a library takes besides its image.
struct LibraryOptions {
    jit: Jit,
    names: *mut CUlibraryOption,
    values: *mut *mut c_void,
    count: c_uint,
}

/// `CU_LIBRARY_BINARY_IS_PRESERVED`: the program's image stays where it is until the library is unloaded. Our text
/// does not.
const PRESERVED: CUlibraryOption = 1;

impl LibraryOptions {
    /// The options that hold for our text too, with their values.
    ///
    /// # Safety
    /// They are those of a load.
    unsafe fn lasting(&self) -> (Vec<CUlibraryOption>, Vec<*mut c_void>) {
        // SAFETY: by the contract.
        let (names, values) = unsafe { (Ptr::new(self.names), Ptr::new(self.values)) };
        let one = |index| Some((names.at(index).get().ok()?, values.at(index).get().ok()?));
        let all = (0..self.count as usize).filter_map(one);
        all.filter(|(name, _)| *name != PRESERVED).unzip()
    }
}

/// Loads into all contexts: `original` loads what the program has given, of which `image` makes a copy.
///
/// # Safety
/// `library` takes a handle, and the options are those of such a load.
unsafe fn load_library(
    real: &'static Api,
    library: *mut CUlibrary,
    mut found: Found,
    given: &LibraryOptions,
    image: impl FnOnce() -> Option<Vec<u8>>,
    original: impl Fn() -> CUresult,
) -> CUresult {
    // SAFETY: by the contract.
    let (jit, lasting) = unsafe { (JitOptions::new(given.jit), given.lasting()) };
    if let Some(checked) = found.checked() {
        checked.keep_own(image, jit.numbers());
    }
    let ask = |ask: Ask| {
        let result = match ask {
            Ask::Original => original(),
            Ask::Checked(text, how, log) => jit.load(how, log, |count, names, values| {
                let text = text.as_ptr().cast();
                let (mut of, mut with) = lasting.clone();
                let (of, with, more) = (of.as_mut_ptr(), with.as_mut_ptr(), of.len() as c_uint);
                // SAFETY: by the contract.
                unsafe {
                    real.cuLibraryLoadData(library, text, names, values, count, of, with, more)
                }
            }),
        };
        // SAFETY: by the contract.
        unsafe { written(result, library) }
    };
    // SAFETY: the handle is that of a library that the program does not know yet.
    let unload = |handle: u64| unsafe {
        let handle = std::ptr::with_exposed_provenance_mut(handle as usize);
        let _ = real.cuLibraryUnload(handle);
    };
    load(real, found, ask, unload)
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
    let given = LibraryOptions {
        jit: Jit {
            count: num_jit_options,
            names: jit_options,
            values: jit_options_values,
        },
        names: library_options,
        values: library_option_values,
        count: num_library_options,
    };
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let found = in_memory(real, code, true);
        load_library(
            real,
            library,
            found,
            &given,
            || copy(code),
            || {
                real.cuLibraryLoadData(
                    library,
                    code,
                    jit_options,
                    jit_options_values,
                    num_jit_options,
                    library_options,
                    library_option_values,
                    num_library_options,
                )
            },
        )
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
    let given = LibraryOptions {
        jit: Jit {
            count: num_jit_options,
            names: jit_options,
            values: jit_options_values,
        },
        names: library_options,
        values: library_option_values,
        count: num_library_options,
    };
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let found = in_file(real, file_name, true);
        load_library(
            real,
            library,
            found,
            &given,
            || file(file_name),
            || {
                real.cuLibraryLoadFromFile(
                    library,
                    file_name,
                    jit_options,
                    jit_options_values,
                    num_jit_options,
                    library_options,
                    library_option_values,
                    num_library_options,
                )
            },
        )
    }
}
