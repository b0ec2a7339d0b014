//! An audit library for the dynamic loader (`LD_AUDIT`, see rtld-audit(7)): whatever driver or runtime library a
//! program asks for, by whatever path, it gets ours.
//!
//! `LD_LIBRARY_PATH` alone is not enough for a program that sets it anew before it starts another, that has an RPATH,
//! or that opens a driver by its absolute path; nor is `LD_PRELOAD` for one that opens it as `libcuda.so`, or in a
//! namespace of its own (`dlmopen`).
//! The one that may open the real driver is the interposer.
//! Of `dlmopen` of an absolute path glibc asks no audit library, so the driver is loaded; but what `dlsym`
//! finds in it is told, and is replaced by the interposer's function of that name.
//! A program that this one starts gets us as well, whatever environment it is given ([`pass_on`]).
//!
//! glibc loads this library into every process, with a C library of its own, before anything else
//! runs; so it allocates nothing, and of Rust's library it uses what needs no initialisation.
//! Departure: the name alone decides, so a file called `libcuda.so` that is no driver is replaced too.

mod exec;
mod given;
mod mapped;
mod outside;
mod pass_on;
mod redirect;

use std::ffi::{CStr, c_char, c_long, c_uint};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

pub use redirect::Dynamic;

/// The newest version of the interface that we know; glibc 2.35 calls its own 2.
const NEWEST: c_uint = 2;

/// `LA_SER_ORIG`: the name as the program gave it.
const AS_GIVEN: c_uint = 1;

/// The cookie of our driver; those of other files are addresses.
const OURS: usize = 1;
/// That of a driver that ours has not asked for.
const DRIVER: usize = 2;
/// That of the program's C library.
const LIBRARY: usize = 3;
/// That of NVIDIA's linker for machine code.
const LINKER: usize = 4;

/// By this name programs find out whether there is that linker; those that find none have the driver link.
const LINKER_VERSION: &CStr = c"nvJitLinkVersion";

/// `LM_ID_BASE`: the program's own namespace.
const BASE: c_long = 0;

/// `LA_FLG_BINDTO`, `LA_FLG_BINDFROM`: what is found in a file is told, if one that asks says so too.
const TO: c_uint = 1;
const FROM: c_uint = 2;

/// The beginning of glibc's `struct link_map`, which is all that is public.
#[repr(C)]
#[derive(Debug)]
pub struct LinkMap {
    /// What is added to addresses in the file.
    pub address: usize,
    /// The path that the file was loaded from.
    pub name: *const c_char,
    /// Its dynamic section.
    pub dynamic: *const Dynamic,
}

/// Our driver in the program's own namespace.
static LOADED: AtomicPtr<LinkMap> = AtomicPtr::new(std::ptr::null_mut());
/// A bit for each other namespace that has one.
static ELSEWHERE: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    /// The environment of the process, as the C library of this namespace found it.
    static environ: pass_on::Environment;
}

/// Called first: agrees on a version of the interface.
///
/// Never 0, which would say that there is nothing to do: a loader of glibc 2.36 that then drops the
/// library ends the process, because the library stays loaded.
#[unsafe(no_mangle)]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    // Reads the environment while it is as the command line has made it.
    if let Some(folder) = given::folder() {
        // SAFETY: no other thread runs yet.
        unsafe { pass_on::prepare(environ, folder) };
        outside::prepare();
    }
    version.min(NEWEST)
}

/// Called for every file that is loaded; marks our driver, drivers that are not its own, and the C library.
///
/// # Safety
/// The loader calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objopen(
    map: *const LinkMap,
    namespace: c_long,
    cookie: *mut usize,
) -> c_uint {
    // SAFETY: the loader passes a map with a name.
    let name = unsafe { CStr::from_ptr((*map).name) };
    let Some(ours) = given::driver() else {
        return 0;
    };
    let bit = u32::try_from(namespace).map_or(0, |number| 1u64.checked_shl(number).unwrap_or(0));
    if name == ours {
        // SAFETY: the loader's place for our use.
        unsafe { *cookie = OURS }
        match namespace {
            BASE => LOADED.store(map.cast_mut(), Ordering::Release),
            _ => _ = ELSEWHERE.fetch_or(bit, Ordering::AcqRel),
        }
        // What it finds is its own affair.
        return 0;
    }
    if namespace == BASE {
        if name.is_empty() {
            exec::program(map);
        }
        if exec::is_library(map, name) {
            // SAFETY: as above.
            unsafe { *cookie = LIBRARY }
            return TO | FROM;
        }
    }
    // What it makes is no PTX, so the simulated device cannot run it.
    if given::is_linker(name) && given::simulates() {
        // SAFETY: as above.
        unsafe { *cookie = LINKER }
        return TO | FROM;
    }
    // In the program's own namespace nobody else gets a driver.
    let strange = namespace != BASE && ELSEWHERE.load(Ordering::Acquire) & bit == 0;
    if strange && given::is_driver(name) {
        // SAFETY: as above.
        unsafe { *cookie = DRIVER }
        return TO;
    }
    FROM
}

/// Called when everything that the program needs is loaded, before any of it runs.
///
/// # Safety
/// The loader calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_preinit(_program: *mut usize) {
    exec::put_steps();
}

/// Called before a library is looked for, and for every place where it may be.
///
/// # Safety
/// The loader calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objsearch(
    name: *const c_char,
    cookie: *const usize,
    flag: c_uint,
) -> *const c_char {
    if flag != AS_GIVEN {
        return name;
    }
    // SAFETY: the loader passes a C string, and the cookie of the file that asks.
    let (given, cookie) = unsafe { (CStr::from_ptr(name), *cookie) };
    // What our driver asks for is the real one.
    let found = given::instead(given).filter(|_| !(cookie == OURS && given::is_driver(given)));
    found.map_or(name, CStr::as_ptr)
}

/// Called when a name is found, by `dlsym` too, in a file of which [`la_objopen`] wants to be told.
///
/// # Safety
/// The loader calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_symbind64(
    symbol: *const libc::Elf64_Sym,
    _index: c_uint,
    _asks: *const usize,
    has: *const usize,
    _flags: *mut c_uint,
    name: *const c_char,
) -> usize {
    // SAFETY: the loader passes a symbol whose value is its address, the cookie of the file that has it, and a C
    // string.
    let (found, has, name) = unsafe { ((*symbol).st_value as usize, *has, CStr::from_ptr(name)) };
    let other = match has {
        // SAFETY: our driver is never unloaded.
        DRIVER => unsafe {
            let ours = LOADED.load(Ordering::Acquire).as_ref();
            ours.and_then(|ours| redirect::find(ours, name))
        },
        LIBRARY => exec::step_before(name, found),
        LINKER => (name == LINKER_VERSION).then_some(0),
        _ => None,
    };
    other.unwrap_or(found)
}
