//! What all loads have in common: PTX with its checks in place of the program's image, and the
//! program's image where that does not work.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use driver::gpu;
use driver::load::{self, Image, Refusal, Source};
use driver::pointer::Ptr;
use driver::sys::*;
use ptx::Parsed;
use ptx::link::{LinkError, SYSTEM_CALLS, Unit, in_one_line};
use runtime::backend::{self, Backend};
use runtime::{Code, Prepared};

use super::backend::Driver;
use super::jit::{Compile, Log};
use super::memory::make_room;
use super::version::Lowered;
use crate::own::{CompilerOption, Own};
use crate::state::{Module, State, with, with_started};

/// The oldest architecture that is still worth compiling for.
const OLDEST: u32 = 75;

/// Two digits of the architecture of the current device: major and minor.
pub(super) fn architecture(real: &Api) -> u32 {
    let mut device = 0;
    // SAFETY: there is room for the result. Without a context it is the first device, 0.
    let _ = unsafe { real.cuCtxGetDevice(&mut device) };
    of_device(real, device).unwrap_or(OLDEST)
}

/// Likewise of a device.
fn of_device(real: &Api, device: CUdevice) -> Option<u32> {
    let ids = [
        device_attribute::COMPUTE_CAPABILITY_MAJOR,
        device_attribute::COMPUTE_CAPABILITY_MINOR,
    ];
    let [major, minor] = ids.map(|id| {
        let mut value = 0;
        // SAFETY: there is room for the result.
        let known = unsafe { real.cuDeviceGetAttribute(&mut value, id, device) };
        (known == CUresult::SUCCESS).then_some(value as u32)
    });
    Some(major? * 10 + minor?)
}

/// The oldest architecture of all devices.
fn lowest(real: &Api) -> Option<u32> {
    let mut count = 0;
    // SAFETY: there is room for the result.
    let known = unsafe { real.cuDeviceGetCount(&mut count) };
    let all = (0..count).filter_map(|device| of_device(real, device));
    all.min().filter(|_| known == CUresult::SUCCESS)
}

/// Finds the PTX of an image: of a library one for all devices, because it is loaded wherever it is used.
fn read(
    real: &Api,
    library: bool,
    find: impl Fn(u32) -> Result<Image, Refusal>,
    runs_on: impl Fn(u32) -> bool,
) -> Result<Image, Refusal> {
    let here = architecture(real);
    let lowest = match library {
        true => lowest(real).filter(|&lowest| lowest < here),
        false => None,
    };
    let Some(lowest) = lowest else {
        return find(here);
    };
    let found = find(lowest);
    match found {
        // Not made for that device, so that the program has no use for it there.
        Err(_) if !runs_on(lowest) => find(here),
        found => found,
    }
}

/// PTX of an image with its checks.
pub(super) struct Checked {
    prepared: Prepared,
    original: Source,
    /// The program's own text, parsed.
    own: Arc<ptx::ast::Module>,
    module: Module,
    /// Registers that a thread may have, if that has to be limited.
    limit: Option<u32>,
}

impl Checked {
    /// Keeps the program's own image, to answer what it asks about its kernels.
    pub(super) fn keep_own(
        &mut self,
        image: impl FnOnce() -> Option<Vec<u8>>,
        options: Vec<CompilerOption>,
    ) {
        if self.prepared.has_checks() {
            let module = Arc::clone(&self.own);
            let own = image().map(|image| Own::new(image, options, module));
            self.module.own = own.map(Arc::new);
        }
    }
}

impl State {
    /// Puts checks into PTX.
    pub(super) fn prepare(&mut self, source: Source, library: bool) -> Checked {
        let parsed = Parsed::new(&source.text);
        let prepared = self.session.checker().prepare(&parsed, &source.origin);
        let module = parsed.module;
        let entries = || module.functions().filter(|function| function.entry);
        let kernels = entries().map(|entry| {
            let (layout, _) = ptx::param_layout(&entry.params);
            let params = layout.iter().map(|of| (of.offset, of.bytes)).collect();
            (entry.name.to_string(), params)
        });
        Checked {
            limit: backend::register_limit(&module),
            module: Module {
                key: prepared.key,
                kernels: kernels.collect(),
                variables: backend::writable(&module).map(str::to_owned).collect(),
                library,
                registered: HashSet::new(),
                own: None,
            },
            prepared,
            own: module,
            original: source,
        }
    }
}

/// What the driver loads for an image.
pub(super) enum Found {
    /// The image's PTX with checks.
    Checked(Box<Checked>),
    /// The program's own image. If it has no PTX, the reason for that.
    Unchecked(Option<String>),
}

impl Found {
    /// The PTX with checks, if the driver loads that.
    pub(super) fn checked(&mut self) -> Option<&mut Checked> {
        match self {
            Self::Checked(checked) => Some(checked),
            Self::Unchecked(_) => None,
        }
    }
}

/// Reads an image and puts checks in, if that is possible and this process is checked.
fn check(found: Result<Image, Refusal>, library: bool) -> Found {
    let source = match found {
        Ok(Image::Text(source) | Image::Module(source)) => source,
        Ok(Image::Units(units)) => match linked(&units) {
            Ok(source) => source,
            Err(why) => {
                // There is PTX, and the driver gets what the program has linked.
                with(|state| state.session.checker().missed(why));
                return Found::Unchecked(None);
            }
        },
        Err(refusal) => return Found::Unchecked(Some(refusal.why)),
    };
    let checked = with(|state| {
        if let Some((ptx, code)) = source.outdone {
            state.session.checker().note(format!(
                "{}: its PTX for compute_{ptx} is checked; without checks the GPU runs machine code for sm_{code}, which differs where the source asks for the architecture",
                source.origin
            ));
        }
        state.prepare(source, library)
    });
    match checked {
        Some(checked) => Found::Checked(Box::new(checked)),
        None => Found::Unchecked(None),
    }
}

/// The PTX of translation units of relocatable device code as one module, which the driver gets in place
/// of the machine code that was linked of them; or why they run unchecked.
fn linked(units: &[Source]) -> Result<Source, String> {
    let names: Vec<&str> = units.iter().map(|unit| unit.origin.as_str()).collect();
    let origin = names.join(" + ");
    let outdone = units.iter().find_map(|unit| unit.outdone);
    let units = units.iter().map(|unit| Unit {
        name: &unit.origin,
        text: &unit.text,
    });
    match ptx::link::link(&units.collect::<Vec<_>>(), &SYSTEM_CALLS) {
        Ok(text) => Ok(Source {
            text: text.into(),
            origin,
            outdone,
        }),
        Err(errors) => Err(unlinked(&origin, &errors)),
    }
}

/// One line about units that cannot be linked.
fn unlinked(origin: &str, errors: &[LinkError]) -> String {
    let mut uses: Vec<String> = errors
        .iter()
        .filter_map(LinkError::device_runtime)
        .collect();
    uses.sort_unstable_by_key(|what| (what.starts_with("call"), what.clone()));
    uses.dedup();
    let why = match &uses[..] {
        [] => in_one_line(errors),
        uses => format!(
            "kernels that {} are not checked on a GPU; `--device sim` checks them",
            uses.join(" or ")
        ),
    };
    format!("{origin}: relocatable device code that runs unchecked: {why}")
}

/// What the driver is asked to load.
pub(super) enum Ask<'a> {
    /// What the program has given.
    Original,
    /// PTX with checks, how to compile it, and where the compiler says why not.
    Checked(&'a CStr, Compile, &'a mut Log),
}

/// What the driver says to a load.
pub(super) struct Answer {
    pub(super) result: CUresult,
    /// 0 where the load has failed.
    pub(super) handle: u64,
}

/// Loads what a program wants to load, with checks if there is PTX in it.
///
/// `load` asks the driver and gives the handle, `unload` gives it back.
pub(super) fn load(
    real: &'static Api,
    found: Found,
    load: impl Fn(Ask) -> Answer,
    unload: impl Fn(u64),
) -> CUresult {
    let checked = match found {
        Found::Checked(checked) => checked,
        Found::Unchecked(why) => {
            // A driver may need memory for a module, and have none left beside ours.
            let Answer { result, handle } = in_room(|| load(Ask::Original));
            with_started(|state| {
                // The handle may have been that of another one.
                state.modules.remove(&handle);
                state.without_ptx.unloaded(handle);
                if let (CUresult::SUCCESS, Some(why)) = (result, why) {
                    state.without_ptx.loaded(handle, &why);
                }
            });
            return result;
        }
    };
    let loading = Loading {
        checked: &checked,
        ask: &load,
        unload: &unload,
    };
    let loaded = match Backend::load(&mut Driver(real), &loading, &checked.prepared) {
        Ok(loaded) => loaded,
        // If the program's own image does not load either, that is the program's affair.
        Err(refused) => return refused.code,
    };
    let mut module = checked.module;
    if loaded.refused.is_some() {
        module.own = None;
    }
    let handle = loaded.module;
    with(|state| {
        state.without_ptx.unloaded(handle);
        state.modules.insert(handle, module);
        // The earlier the better: a driver waits for the device to do that.
        if let Some(context) = state.context() {
            state.raise_stack_limit(real, handle, context);
        }
    });
    CUresult::SUCCESS
}

/// PTX with checks, and how the program asks for what it has been made of.
pub(super) struct Loading<'a> {
    checked: &'a Checked,
    /// Asks the driver, and gives the handle.
    ask: &'a dyn Fn(Ask) -> Answer,
    /// Gives a handle back.
    unload: &'a dyn Fn(u64),
}

/// How the driver refuses a load.
pub(super) struct Refused {
    code: CUresult,
    why: String,
}

impl Refused {
    /// With what the compiler says about a text that the driver does not take.
    fn new(code: CUresult, log: &Log) -> Refused {
        let why = match log.first_line() {
            Some(line) => format!("{code}: {line}"),
            None => code.to_string(),
        };
        Refused { code, why }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Loading<'_> {
    /// Loads what the program has given. A driver may need memory for a module, and have none left beside ours.
    pub(super) fn own(&self) -> Result<u64, Refused> {
        let Answer { result, handle } = in_room(|| (self.ask)(Ask::Original));
        match result {
            CUresult::SUCCESS => Ok(handle),
            code => Err(Refused {
                code,
                why: code.to_string(),
            }),
        }
    }

    /// Loads the text with checks.
    pub(super) fn checked(&self, real: &'static Api) -> Result<u64, Refused> {
        let Checked {
            prepared,
            original,
            module,
            limit,
            ..
        } = self.checked;

        let code = CUresult::INVALID_PTX;
        let refused = |why| Refused { code, why };
        let text = CString::new(prepared.code.text())
            .map_err(|_| refused("it holds a zero byte".to_owned()))?;
        let _relaxed = gpu::relaxed(real);
        let compile = |text: &CStr, how| {
            let mut log = Log::new();
            let ask = || (self.ask)(Ask::Checked(text, how, &mut log));
            let Answer { result, handle } = in_room(ask);
            if result == CUresult::SUCCESS && module.library {
                let entered = into_context(real, handle);
                if let Err(error) = entered {
                    (self.unload)(handle);
                    return Err(Refused::new(error, &log));
                }
                log.keep();
                return Ok(handle);
            }
            match result {
                CUresult::SUCCESS => Ok(handle),
                error => Err(Refused::new(error, &log)),
            }
        };
        let code = &prepared.code;
        let taken = first_taken(real, &text, code, &original.origin, *limit, compile);
        let (handle, notes) = taken.map_err(refused)?;
        with(|state| {
            let checker = state.session.checker();
            notes.into_iter().for_each(|note| checker.note(note));
        });
        Ok(handle)
    }
}

/// Loads `text`, which is that of `code`, in the first of several ways that the driver takes, by `compile`. Gives the handle and
/// what is to be reported to the user, or why there is none.
fn first_taken(
    real: &'static Api,
    text: &CStr,
    code: &Code,
    origin: &str,
    limit: Option<u32>,
    compile: impl Fn(&CStr, Compile) -> Result<u64, Refused>,
) -> Result<(u64, Vec<String>), String> {
    // Large modules take their time, so the limit comes first: with checks nearly every module has a kernel that
    // would take more registers.
    let few = Compile {
        registers: limit,
        plainly: false,
    };
    let mut made = compile(text, few);
    let lowered = match made {
        Err(Refused {
            code: CUresult::UNSUPPORTED_PTX_VERSION,
            ..
        }) => Lowered::new(real, code.loaded()),
        _ => None,
    };
    let text = lowered.as_ref().map_or(text, |lowered| &lowered.text);
    if lowered.is_some() {
        made = compile(text, few);
    }
    let refused_for =
        |made: &Result<_, Refused>, code| made.as_ref().is_err_and(|of| of.code == code);
    let too_new = refused_for(&made, CUresult::UNSUPPORTED_PTX_VERSION);
    if made.is_err() && limit.is_some() && !too_new {
        made = compile(text, Compile::default());
    }
    let mut notes = Vec::new();
    // Its register allocation gives up on some large kernels with calls (ptxas 13.0: C7600, of CUB's radix sort), and
    // does without where nothing is optimised.
    if let Err(Refused {
        code: CUresult::INVALID_PTX,
        why,
    }) = &made
    {
        let plainly = true;
        if let Ok(handle) = compile(text, Compile { plainly, ..few }) {
            let slow = "its checks are compiled without optimisation, since the driver says";
            notes.push(format!("{origin}: {slow} {why}"));
            made = Ok(handle);
        }
    }
    match (made, lowered) {
        (Ok(handle), lowered) => {
            notes.extend(lowered.map(|lowered| lowered.taken(origin)));
            Ok((handle, notes))
        }
        (Err(error), Some(lowered)) => Err(error.why + &lowered.remedy()),
        (Err(error), None) => Err(error.why),
    }
}

/// Asks for a load, and once more with less shadow memory if there is none left.
fn in_room(mut ask: impl FnMut() -> Answer) -> Answer {
    let made = ask();
    match made.result == CUresult::OUT_OF_MEMORY && make_room() {
        true => ask(),
        false => made,
    }
}

/// Brings a library into the current context, if there is one, so that what is wrong with it shows as long as
/// the program's own image can take its place: a driver compiles a library when it first needs it.
fn into_context(real: &'static Api, library: u64) -> Result<(), CUresult> {
    let mut module = std::ptr::null_mut();
    let library = std::ptr::with_exposed_provenance_mut(library as usize);
    // SAFETY: the handle is that of a live library; there is room for the result.
    match unsafe { real.cuLibraryGetModule(&mut module, library) } {
        CUresult::INVALID_CONTEXT | CUresult::NOT_FOUND => Ok(()),
        result => result.result(),
    }
}

/// The handle of a kernel by its name.
pub(super) fn find(real: &'static Api, handle: u64, library: bool, name: &str) -> Option<u64> {
    let symbol = CString::new(name).ok()?;
    let at = std::ptr::with_exposed_provenance_mut::<c_void>(handle as usize);
    let mut found = std::ptr::null_mut::<c_void>();
    let to = &raw mut found;
    // SAFETY: the handle is that of a live module or library; there is room for the result.
    let result = unsafe {
        match library {
            true => real.cuLibraryGetKernel(to.cast(), at.cast(), symbol.as_ptr()),
            false => real.cuModuleGetFunction(to.cast(), at.cast(), symbol.as_ptr()),
        }
    };
    (result == CUresult::SUCCESS).then(|| found.expose_provenance() as u64)
}

/// The handle that a successful call has written.
///
/// # Safety
/// After success `out` points to a handle.
pub(super) unsafe fn written<T>(result: CUresult, out: *mut *mut T) -> Answer {
    let handle = match result {
        // SAFETY: by the contract.
        CUresult::SUCCESS => unsafe { *out }.expose_provenance() as u64,
        _ => 0,
    };
    Answer { result, handle }
}

/// A number by which an image is known again.
pub(super) fn fingerprint(contents: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    contents.hash(&mut hasher);
    hasher.finish()
}

/// The PTX that an image was linked of by the driver's linker; none if it was not.
fn of_link(contents: Option<&[u8]>) -> Option<Result<Image, Refusal>> {
    let contents = contents?;
    let link = with(|state| state.linked.get(&fingerprint(contents)).cloned())??;
    Some(match (link.other, link.units.len()) {
        (Some(name), _) => Err(Refusal::new(
            CUresult::NO_BINARY_FOR_GPU,
            format!("no PTX for {name}, which is in device code that was linked"),
        )),
        (None, 1) => Ok(Image::Text(link.units.into_iter().next()?)),
        (None, _) => Ok(Image::Units(link.units)),
    })
}

/// Whether this process is checked and has linked something; none if it is not checked.
fn has_linked() -> Option<bool> {
    with(|state| !state.linked.is_empty())
}

/// An image in memory, as a program passes it.
///
/// # Safety
/// `image` is what a load of the driver API takes.
pub(super) unsafe fn in_memory(real: &Api, image: *const c_void, library: bool) -> Found {
    // SAFETY: by the contract.
    let image = unsafe { Ptr::new(image) };
    let contents = match has_linked() {
        None => return Found::Unchecked(None),
        Some(true) => load::contents(image),
        Some(false) => None,
    };
    let found = of_link(contents.as_deref());
    let found = found.unwrap_or_else(|| {
        let runs_on = |sm| load::runs_on(image, sm);
        read(real, library, |sm| load::read(image, sm), runs_on)
    });
    check(found, library)
}

/// The image in a file.
///
/// # Safety
/// `name` is null or a C string.
pub(super) unsafe fn in_file(real: &Api, name: *const c_char, library: bool) -> Found {
    // SAFETY: by the contract.
    let name = unsafe { Ptr::new(name) }.text().ok();
    // Read it only where it is asked for.
    let file = has_linked().and_then(|linked| {
        let name = name?;
        Some((linked, std::fs::read(&name).ok()?, name))
    });
    let Some((linked, bytes, name)) = file else {
        return Found::Unchecked(None);
    };
    let found = of_link(load::contents_of(&bytes).filter(|_| linked));
    let found = found.unwrap_or_else(|| {
        let find = |sm| load::read_bytes(&bytes, &name, sm);
        read(real, library, find, |sm| load::bytes_run_on(&bytes, sm))
    });
    check(found, library)
}
