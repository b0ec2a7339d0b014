//! Modules and libraries: loading, and finding kernels and variables by name.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;

use driver::sys::{
    CUdeviceptr, CUfunction, CUkernel, CUlib_st, CUlibrary, CUmod_st, CUmodule, CUresult,
};
use simt::ModuleId;

use crate::Answer;
use crate::function::Function;
use crate::image::{self, Image, Ptx, Refusal};
use crate::jit::{Compiled, Options};
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::{pointer, set};

/// A module: the images of one load.
#[derive(Debug)]
pub(crate) struct Module {
    /// The context it was loaded in; 0 for that of a library.
    pub(crate) context: u64,
    pub(crate) library: Option<u64>,
    images: Vec<u64>,
    compiled: Compiled,
    /// Functions that have been asked for.
    functions: BTreeMap<String, u64>,
}

/// A library: a module that belongs to no context.
#[derive(Debug)]
pub(crate) struct Library {
    /// Its module, once that is loaded.
    module: Option<u64>,
    code: Code,
    compiled: Compiled,
}

/// What a library is loaded of, when something of it is first needed.
#[derive(Debug)]
enum Code {
    Copied(Result<Vec<Ptx>, Refusal>),
    /// Where the program keeps it, by its word, until the library is unloaded.
    Kept(u64),
}

/// What a call looks for among variables. Of a library, managed ones have a call of their own: source is the driver
/// API's text on `cuLibraryGetManaged`, which finds no others.
#[derive(Clone, Copy)]
enum Kind {
    Any,
    Plain,
    Managed,
}

/// Lets libraries be loaded when something of them is first needed, as a driver does whose loading is lazy.
const LAZY: &str = "CUDARUN_SIM_LAZY";

impl State {
    /// Loads images as one module.
    pub(crate) fn load(
        &mut self,
        context: u64,
        all: Vec<Ptx>,
        compiled: Compiled,
    ) -> Result<u64, Refusal> {
        let mut images = Vec::new();
        let device = match context {
            0 => self.device(),
            context => self.device_of(context),
        };
        for ptx in all {
            let plainly = compiled.plainly;
            match self.engine.load(&ptx, plainly) {
                Ok(id) => images.push(self.images.insert(Image {
                    ptx,
                    plainly,
                    library: context == 0,
                    loaded: BTreeMap::from([(device, id)]),
                })),
                Err(refusal) => {
                    images.iter().for_each(|&image| self.drop_image(image));
                    return Err(refusal);
                }
            }
        }
        let functions = BTreeMap::new();
        Ok(self.modules.insert(Module {
            context,
            library: None,
            images,
            functions,
            compiled,
        }))
    }

    /// Unloads a module and its functions.
    pub(crate) fn unload(&mut self, module: u64) -> Answer {
        let gone = self.modules.remove(module)?;
        self.functions.take(|function| function.module == module);
        self.host_waits_for_all();
        gone.images.iter().for_each(|&image| self.drop_image(image));
        Ok(())
    }

    fn drop_image(&mut self, image: u64) {
        let gone = self.images.remove(image).map(|image| image.loaded);
        for id in gone.unwrap_or_default().into_values() {
            self.engine.unload(id);
        }
    }

    /// Takes the images of libraries off a device; they come back when they are used.
    pub(crate) fn forget_images(&mut self, device: i32) {
        let of_libraries = self
            .modules
            .iter()
            .filter(|(_, module)| module.library.is_some());
        let images: Vec<u64> = of_libraries
            .flat_map(|(_, module)| module.images.clone())
            .collect();
        for image in images {
            let image = self.images.get_mut(image).ok();
            if let Some(id) = image.and_then(|image| image.loaded.remove(&device)) {
                self.engine.unload(id);
            }
        }
    }

    /// The identity of an image on the current device, loading it again if need be.
    pub(crate) fn on_device(&mut self, image: u64) -> Result<ModuleId, CUresult> {
        let device = self.device();
        let image = self.images.get_mut(image)?;
        let here = image.loaded.get(&device);
        // A module is where its context is, whichever is current now.
        let there = image.loaded.values().next().filter(|_| !image.library);
        match here.or(there) {
            Some(&id) => Ok(id),
            None => {
                let loaded = self.engine.load(&image.ptx, image.plainly);
                let id = loaded.map_err(|refusal| refusal.code)?;
                image.loaded.insert(device, id);
                Ok(id)
            }
        }
    }

    /// Names of the kernels of a module.
    fn kernels(&mut self, module: u64) -> Result<Vec<String>, CUresult> {
        let mut names = Vec::new();
        for image in self.modules.get(module)?.images.clone() {
            let id = self.on_device(image)?;
            names.extend_from_slice(self.engine.kernels(id));
        }
        Ok(names)
    }

    /// The handle of a kernel; the same one each time.
    pub(crate) fn find_function(&mut self, module: u64, name: &str) -> Result<u64, CUresult> {
        let found = self.modules.get(module)?;
        if let Some(&function) = found.functions.get(name) {
            return Ok(function);
        }
        let compiled = found.compiled;
        for image in found.images.clone() {
            let id = self.on_device(image)?;
            let known = self.engine.kernels(id).iter().any(|kernel| kernel == name);
            let info = self.engine.kernel(id, name).filter(|_| known);
            if let Some(mut info) = info {
                info.max_threads = info.max_threads.min(compiled.most_threads);
                let function = self
                    .functions
                    .insert(Function::new(module, image, name, info));
                let module = self.modules.get_mut(module)?;
                module.functions.insert(name.to_owned(), function);
                return Ok(function);
            }
        }
        Err(CUresult::NOT_FOUND)
    }

    /// Address and size of a variable of a kind.
    fn find_global(&mut self, module: u64, name: &str, kind: Kind) -> Result<(u64, u64), CUresult> {
        for image in self.modules.get(module)?.images.clone() {
            let id = self.on_device(image)?;
            let fits = match kind {
                Kind::Any => true,
                Kind::Plain => !self.engine.is_managed(id, name),
                Kind::Managed => self.engine.is_managed(id, name),
            };
            let found = self.engine.global(id, name).filter(|_| fits);
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(CUresult::NOT_FOUND)
    }

    fn global_to(
        &mut self,
        module: u64,
        name: Ptr<c_char>,
        kind: Kind,
        address: Ptr<CUdeviceptr>,
        bytes: Ptr<usize>,
    ) -> Answer {
        let (found, size) = self.find_global(module, &name.text()?, kind)?;
        address.set_if(found);
        bytes.set_if(size as usize);
        Ok(())
    }

    /// The handles of all kernels of a module, as far as there is room.
    fn all_functions(&mut self, module: u64, room: c_uint) -> Result<Vec<u64>, CUresult> {
        let names = self.kernels(module)?;
        let names = names.iter().take(room as usize);
        names.map(|name| self.find_function(module, name)).collect()
    }
}

/// Loads what was read into a context.
fn load(
    context: u64,
    sources: Result<Vec<Ptx>, Refusal>,
    options: &Options,
) -> Result<u64, CUresult> {
    with(|state| {
        let loaded = sources.and_then(|sources| state.load(context, sources, options.compiled()));
        let loaded = loaded.map_err(|refusal| state.refused(&refusal, options))?;
        options.write_logs("");
        Ok(loaded)
    })
}

fn read_file(name: Ptr<c_char>) -> Result<Result<Vec<Ptx>, Refusal>, CUresult> {
    let name = name.text()?;
    let bytes = std::fs::read(Path::new(&name)).map_err(|_| CUresult::FILE_NOT_FOUND)?;
    Ok(image::read_bytes(&bytes, &name))
}

pub(crate) fn cuModuleLoad(module: Ptr<CUmodule>, fname: Ptr<c_char>) -> Answer {
    let context = with_context(|_, context| Ok(context))?;
    let options = Options::new(0, fname.cast(), fname.cast())?;
    set(module, load(context, read_file(fname)?, &options)?)
}

pub(crate) fn cuModuleLoadData(module: Ptr<CUmodule>, image: Ptr<c_void>) -> Answer {
    cuModuleLoadDataEx(module, image, 0, image.cast(), image.cast())
}

pub(crate) fn cuModuleLoadDataEx(
    module: Ptr<CUmodule>,
    image: Ptr<c_void>,
    count: c_uint,
    options: Ptr<c_int>,
    values: Ptr<*mut c_void>,
) -> Answer {
    let context = with_context(|_, context| Ok(context))?;
    let options = Options::new(count as usize, options, values)?;
    set(module, load(context, image::read(image), &options)?)
}

pub(crate) fn cuModuleLoadFatBinary(module: Ptr<CUmodule>, image: Ptr<c_void>) -> Answer {
    cuModuleLoadData(module, image)
}

pub(crate) fn cuModuleUnload(module: Ptr<CUmod_st>) -> Answer {
    with(|state| match state.modules.get(module.address())?.library {
        Some(_) => Err(CUresult::NOT_PERMITTED),
        None => state.unload(module.address()),
    })
}

pub(crate) fn cuModuleGetLoadingMode(mode: Ptr<c_int>) -> Answer {
    let eager = std::env::var("CUDA_MODULE_LOADING").is_ok_and(|value| value == "EAGER");
    mode.set(if eager { 1 } else { 2 })
}

pub(crate) fn cuModuleGetFunction(
    function: Ptr<CUfunction>,
    module: Ptr<CUmod_st>,
    name: Ptr<c_char>,
) -> Answer {
    let name = name.text()?;
    let found = with_context(|state, _| {
        let found = state.find_function(module.address(), &name)?;
        state.function_of(found)
    })?;
    set(function, found)
}

pub(crate) fn cuModuleGetFunctionCount(count: Ptr<c_uint>, module: Ptr<CUmod_st>) -> Answer {
    let names = with(|state| state.kernels(module.address()))?;
    count.set(names.len() as c_uint)
}

/// Stores handles.
fn give<T>(handles: &[u64], out: Ptr<*mut T>) -> Answer {
    let mut all = handles.iter().enumerate();
    all.try_for_each(|(index, &handle)| out.at(index).set(pointer(handle)))
}

pub(crate) fn cuModuleEnumerateFunctions(
    functions: Ptr<CUfunction>,
    room: c_uint,
    module: Ptr<CUmod_st>,
) -> Answer {
    let found = with(|state| {
        let found = state.all_functions(module.address(), room)?.into_iter();
        let found = found.map(|kernel| state.function_of(kernel));
        found.collect::<Result<Vec<u64>, _>>()
    })?;
    give(&found, functions)
}

pub(crate) fn cuModuleGetGlobal(
    address: Ptr<CUdeviceptr>,
    bytes: Ptr<usize>,
    module: Ptr<CUmod_st>,
    name: Ptr<c_char>,
) -> Answer {
    with_context(|state, _| state.global_to(module.address(), name, Kind::Any, address, bytes))
}

/// Makes a library, and loads it unless that can wait.
fn make_library(out: Ptr<CUlibrary>, code: Code, options: &Options) -> Answer {
    let library = with(|state| {
        let library = state.libraries.insert(Library {
            module: None,
            code,
            compiled: options.compiled(),
        });
        if !std::env::var(LAZY).is_ok_and(|value| value == "1") {
            state.load_library(library, options).inspect_err(|_| {
                let _ = state.libraries.remove(library);
            })?;
        }
        Ok(library)
    })?;
    set(out, library)
}

impl State {
    /// The module of a library, which is loaded if need be.
    fn load_library(&mut self, library: u64, options: &Options) -> Result<u64, CUresult> {
        let found = self.libraries.get(library)?;
        if let Some(module) = found.module {
            return Ok(module);
        }
        let compiled = found.compiled;
        let sources = match &found.code {
            Code::Copied(sources) => sources.clone(),
            Code::Kept(address) => {
                let kept = std::ptr::with_exposed_provenance::<c_void>(*address as usize);
                // SAFETY: the program has promised to keep it there until the library is unloaded.
                image::read(unsafe { Ptr::new(kept) })
            }
        };
        let loaded = sources.and_then(|sources| self.load(0, sources, compiled));
        let module = loaded.map_err(|refusal| self.refused(&refusal, options))?;
        self.modules.get_mut(module)?.library = Some(library);
        self.libraries.get_mut(library)?.module = Some(module);
        options.write_logs("");
        Ok(module)
    }

    /// Tells both the program and the user why something is not loaded.
    ///
    /// A program that goes on may take another kernel, which a GPU would not have run. So the run is incomplete, unless
    /// a driver would have refused the load too.
    pub(crate) fn refused(&mut self, refusal: &Refusal, options: &Options) -> CUresult {
        let why = refusal.to_string();
        options.write_logs(&why);
        match refusal.code {
            CUresult::INVALID_VALUE | CUresult::OUT_OF_MEMORY => self.engine.note(&why),
            _ => self.engine.missed(format!(
                "the simulated device has not loaded a module that a GPU may load: {why}"
            )),
        }
        refusal.code
    }
}

/// `CU_LIBRARY_BINARY_IS_PRESERVED`
const PRESERVED: c_int = 1;

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) fn cuLibraryLoadData(
    library: Ptr<CUlibrary>,
    code: Ptr<c_void>,
    options: Ptr<c_int>,
    values: Ptr<*mut c_void>,
    count: c_uint,
    library_options: Ptr<c_int>,
    library_values: Ptr<*mut c_void>,
    library_count: c_uint,
) -> Answer {
    let options = Options::new(count as usize, options, values)?;
    let mut kept = false;
    for index in 0..library_count as usize {
        let value = library_values.at(index).follow()?;
        kept |= library_options.at(index).get()? == PRESERVED && !value.is_null();
    }
    let code = match kept {
        true => Code::Kept(code.address()),
        false => Code::Copied(image::read(code)),
    };
    make_library(library, code, &options)
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) fn cuLibraryLoadFromFile(
    library: Ptr<CUlibrary>,
    name: Ptr<c_char>,
    options: Ptr<c_int>,
    values: Ptr<*mut c_void>,
    count: c_uint,
    _library_options: Ptr<c_int>,
    _library_values: Ptr<*mut c_void>,
    _library_count: c_uint,
) -> Answer {
    let options = Options::new(count as usize, options, values)?;
    make_library(library, Code::Copied(read_file(name)?), &options)
}

pub(crate) fn cuLibraryUnload(library: Ptr<CUlib_st>) -> Answer {
    with(
        |state| match state.libraries.remove(library.address())?.module {
            Some(module) => state.unload(module),
            None => Ok(()),
        },
    )
}

fn module_of(state: &mut State, library: Ptr<CUlib_st>) -> Result<u64, CUresult> {
    state.load_library(library.address(), &Options::none())
}

pub(crate) fn cuLibraryGetKernel(
    kernel: Ptr<CUkernel>,
    library: Ptr<CUlib_st>,
    name: Ptr<c_char>,
) -> Answer {
    let name = name.text()?;
    let found = with(|state| {
        let module = module_of(state, library)?;
        state.find_function(module, &name)
    })?;
    set(kernel, found)
}

pub(crate) fn cuLibraryGetKernelCount(count: Ptr<c_uint>, library: Ptr<CUlib_st>) -> Answer {
    let names = with(|state| {
        let module = module_of(state, library)?;
        state.kernels(module)
    })?;
    count.set(names.len() as c_uint)
}

pub(crate) fn cuLibraryEnumerateKernels(
    kernels: Ptr<CUkernel>,
    room: c_uint,
    library: Ptr<CUlib_st>,
) -> Answer {
    let found = with(|state| {
        let module = module_of(state, library)?;
        state.all_functions(module, room)
    })?;
    give(&found, kernels)
}

pub(crate) fn cuLibraryGetModule(module: Ptr<CUmodule>, library: Ptr<CUlib_st>) -> Answer {
    set(module, with_context(|state, _| module_of(state, library))?)
}

pub(crate) fn cuLibraryGetGlobal(
    address: Ptr<CUdeviceptr>,
    bytes: Ptr<usize>,
    library: Ptr<CUlib_st>,
    name: Ptr<c_char>,
) -> Answer {
    with_context(|state, _| {
        let module = module_of(state, library)?;
        state.global_to(module, name, Kind::Plain, address, bytes)
    })
}

pub(crate) fn cuLibraryGetManaged(
    address: Ptr<CUdeviceptr>,
    bytes: Ptr<usize>,
    library: Ptr<CUlib_st>,
    name: Ptr<c_char>,
) -> Answer {
    with_context(|state, _| {
        let module = module_of(state, library)?;
        state.global_to(module, name, Kind::Managed, address, bytes)
    })
}

/// Functions that host and device share exist for host compilers other than nvcc's only.
pub(crate) fn cuLibraryGetUnifiedFunction(
    _function: Ptr<*mut c_void>,
    _library: Ptr<CUlib_st>,
    _symbol: Ptr<c_char>,
) -> Answer {
    Err(CUresult::NOT_FOUND)
}
