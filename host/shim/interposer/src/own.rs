//! A program's own module, loaded beside the one with checks when the program first asks about its kernels.
//!
//! Registers, block sizes and occupancy are not those of a kernel with checks, and a program that gets those
//! answers launches other shapes. The driver knows the right answers of the program's own image alone: machine code is loaded at
//! once, PTX is compiled. Nothing of it runs.

use std::collections::BTreeSet;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use driver::gpu;
use driver::sys::*;
use ptx::ast::Module;

/// An option for the driver's compiler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompilerOption {
    pub(crate) name: CUjit_option,
    pub(crate) value: usize,
}

/// The program's own image of a module.
#[derive(Debug)]
pub(crate) struct Own {
    image: Vec<u8>,
    /// How it is to be compiled.
    options: Vec<CompilerOption>,
    /// Its PTX.
    module: Arc<Module>,
    /// Its library, once it has been loaded; 0 if the driver does not take it.
    library: Mutex<Option<u64>>,
    waiting: OnceLock<BTreeSet<String>>,
}

/// Attributes that a program sets, and that its answers depend on.
const SET: [CUfunction_attribute; 7] = [
    function_attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES,
    function_attribute::PREFERRED_SHARED_MEMORY_CARVEOUT,
    function_attribute::REQUIRED_CLUSTER_WIDTH,
    function_attribute::REQUIRED_CLUSTER_HEIGHT,
    function_attribute::REQUIRED_CLUSTER_DEPTH,
    function_attribute::NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
    function_attribute::CLUSTER_SCHEDULING_POLICY_PREFERENCE,
];

/// A function, or a kernel of a library, by its handle.
#[derive(Clone, Copy)]
pub(crate) struct Handle {
    pub(crate) number: u64,
    pub(crate) kernel: bool,
}

/// The current context's device.
pub(crate) fn device(real: &Api) -> Option<CUdevice> {
    let mut device = 0;
    // SAFETY: there is room for the result.
    let known = unsafe { real.cuCtxGetDevice(&mut device) };
    (known == CUresult::SUCCESS).then_some(device)
}

/// An attribute of a function or kernel.
fn attribute(real: &Api, of: Handle, device: CUdevice, id: CUfunction_attribute) -> Option<c_int> {
    let mut value = 0;
    let handle = std::ptr::with_exposed_provenance_mut::<c_void>(of.number as usize);
    // SAFETY: the handle is that of a live function or kernel; there is room for the result.
    let known = unsafe {
        match of.kernel {
            true => real.cuKernelGetAttribute(&mut value, id, handle.cast(), device),
            false => real.cuFuncGetAttribute(&mut value, id, handle.cast()),
        }
    };
    (known == CUresult::SUCCESS).then_some(value)
}

impl Own {
    /// A copy of an image, what the program has said of compiling it, and its PTX.
    pub(crate) fn new(image: Vec<u8>, options: Vec<CompilerOption>, module: Arc<Module>) -> Own {
        Own {
            image,
            options,
            module,
            library: Mutex::new(None),
            waiting: OnceLock::new(),
        }
    }

    /// The kernel of that name, with what the program has set of the one with checks, `checked`.
    pub(crate) fn kernel(
        &self,
        real: &'static Api,
        name: &str,
        checked: Handle,
    ) -> Option<CUkernel> {
        let library = self.library(real)?;
        let name = CString::new(name).ok()?;
        let library = std::ptr::with_exposed_provenance_mut(library as usize);
        let mut kernel = std::ptr::null_mut();
        // SAFETY: the library lives; there is room for the result.
        let found = unsafe { real.cuLibraryGetKernel(&mut kernel, library, name.as_ptr()) };
        found.result().ok()?;
        let own = Handle {
            number: kernel.expose_provenance() as u64,
            kernel: true,
        };
        let device = device(real)?;
        for id in SET {
            let given = attribute(real, checked, device, id);
            let differs = given.filter(|given| attribute(real, own, device, id) != Some(*given));
            if let Some(value) = differs {
                // SAFETY: as above. What it does not take, the program could not set either.
                let _ = unsafe { real.cuKernelSetAttribute(id, value, kernel, device) };
            }
        }
        Some(kernel)
    }

    fn library(&self, real: &'static Api) -> Option<u64> {
        let mut library = self.library.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = *library.get_or_insert_with(|| self.load(real).unwrap_or(0));
        (loaded != 0).then_some(loaded)
    }

    fn load(&self, real: &'static Api) -> Option<u64> {
        let _relaxed = gpu::relaxed(real);
        let number = std::ptr::without_provenance_mut::<c_void>;
        let options = self
            .options
            .iter()
            .map(|option| (option.name, number(option.value)));
        let (mut names, mut values): (Vec<_>, Vec<_>) = options.unzip();
        let (count, image) = (names.len() as c_uint, self.image.as_ptr().cast());
        let (names, values) = (names.as_mut_ptr(), values.as_mut_ptr());
        let (none, nothing) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut library = std::ptr::null_mut();
        // SAFETY: the image is a whole one, and stays where it is; so are the options until the call returns.
        let loaded = unsafe {
            real.cuLibraryLoadData(&mut library, image, names, values, count, none, nothing, 0)
        };
        loaded.result().ok()?;
        Some(library.expose_provenance() as u64)
    }

    /// Gives the driver's copy back.
    pub(crate) fn unload(&self, real: &'static Api) {
        let mut library = self.library.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded @ 1..) = library.take() {
            let loaded = std::ptr::with_exposed_provenance_mut(loaded as usize);
            // SAFETY: it was loaded here, and nothing else has it.
            let _ = unsafe { real.cuLibraryUnload(loaded) };
        }
    }

    /// Whether a kernel's blocks may wait for one another: it has a loop that ends by what another thread has written.
    /// More of its blocks than fit at once may wait for ever.
    pub(crate) fn waits(&self, kernel: &str) -> bool {
        let waiting = self.waiting.get_or_init(|| {
            let module = &self.module;
            let waits = |of: &&ptx::ast::Function| !ptx::waits(module, of).is_empty();
            let functions: Vec<_> = module.functions().filter(|of| of.body.is_some()).collect();
            // Who calls a function that waits is not followed.
            let any = functions.iter().any(|of| !of.entry && waits(of));
            let entries = functions.iter().filter(|of| of.entry && (any || waits(of)));
            entries.map(|of| of.name.to_string()).collect()
        });
        waiting.contains(kernel)
    }
}
