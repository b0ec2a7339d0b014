//! An audit library for the dynamic loader (`LD_AUDIT`, see rtld-audit(7)): whatever driver a
//! program asks for, by whatever path, it gets the interposer.
//!
//! `LD_PRELOAD` alone is not enough for a program that opens a driver by its absolute path, or as
//! `libcuda.so`, or in a namespace of its own (`dlmopen`).
//! The one that may open the real driver is the interposer.
//! Of `dlmopen` of an absolute path glibc asks no audit library, so the driver is loaded; but what `dlsym`
//! finds in it is told, and is replaced by the interposer's function of that name.
//!
//! glibc loads this library into every process, with a C library of its own, before anything else
//! runs; so it allocates nothing, and of Rust's library it uses what needs no initialisation.
//! Departure: the name alone decides, so a file called `libcuda.so` that is no driver is replaced too.

mod redirect;

use std::ffi::{CStr, c_char, c_long, c_uint};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

pub use redirect::Dynamic;

/// Names the interposer, by absolute path; without it everything is left as it is.
const VARIABLE: &CStr = c"CUDARUN_CHECK_INTERPOSER";

/// What a driver may be called.
const NAMES: [&[u8]; 2] = [b"libcuda.so.1", b"libcuda.so"];

/// The newest version of the interface that we know; glibc 2.35 calls its own 2.
const NEWEST: c_uint = 2;

/// `LA_SER_ORIG`: the name as the program gave it.
const AS_GIVEN: c_uint = 1;

/// The cookie of the interposer; those of other files are addresses.
const INTERPOSER: usize = 1;
/// That of a driver that the interposer has not asked for.
const DRIVER: usize = 2;

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

/// The interposer in the program's own namespace.
static LOADED: AtomicPtr<LinkMap> = AtomicPtr::new(std::ptr::null_mut());
/// A bit for each other namespace that has one.
static ELSEWHERE: AtomicU64 = AtomicU64::new(0);

/// A path, with the zero byte at its end.
struct Path {
    bytes: [u8; libc::PATH_MAX as usize],
}

/// The interposer's path, copied: the program may overwrite its environment.
static PATH: OnceLock<Option<Path>> = OnceLock::new();

impl Path {
    fn from_environment() -> Option<Path> {
        // SAFETY: the name is a C string, and no other thread runs yet.
        let value = unsafe { libc::getenv(VARIABLE.as_ptr()) };
        if value.is_null() {
            return None;
        }
        // SAFETY: the environment holds C strings.
        Path::new(unsafe { CStr::from_ptr(value) })
    }

    /// Nothing for a path that is not absolute, or too long for the system.
    fn new(path: &CStr) -> Option<Path> {
        let mut bytes = [0; libc::PATH_MAX as usize];
        let from = path.to_bytes_with_nul();
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        (bytes[0] == b'/').then_some(Path { bytes })
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

fn interposer() -> Option<&'static CStr> {
    PATH.get_or_init(Path::from_environment)
        .as_ref()
        .map(Path::as_c_str)
}

/// What a search for `name` shall find instead, for a file with this cookie.
fn instead<'a>(name: &CStr, cookie: usize, interposer: &'a CStr) -> Option<&'a CStr> {
    (is_driver(name) && cookie != INTERPOSER).then_some(interposer)
}

fn is_driver(name: &CStr) -> bool {
    let last = name.to_bytes().rsplit(|byte| *byte == b'/').next();
    last.is_some_and(|last| NAMES.contains(&last))
}

/// Called first: agrees on a version of the interface.
///
/// Never 0, which would say that there is nothing to do: a loader of glibc 2.36 that then drops the
/// library ends the process, because the library stays loaded.
#[unsafe(no_mangle)]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    // Reads the environment while it is as the command line has made it.
    let _ = interposer();
    version.min(NEWEST)
}

/// Called for every file that is loaded; marks the interposer, and drivers that are not its own.
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
    let Some(ours) = interposer() else {
        return 0;
    };
    let bit = u32::try_from(namespace).map_or(0, |number| 1u64.checked_shl(number).unwrap_or(0));
    if name == ours {
        // SAFETY: the loader's place for our use.
        unsafe { *cookie = INTERPOSER }
        match namespace {
            BASE => LOADED.store(map.cast_mut(), Ordering::Release),
            _ => _ = ELSEWHERE.fetch_or(bit, Ordering::AcqRel),
        }
        // What it finds is its own affair.
        return 0;
    }
    // In the program's own namespace nobody else gets a driver.
    let strange = namespace != BASE && ELSEWHERE.load(Ordering::Acquire) & bit == 0;
    if strange && is_driver(name) {
        // SAFETY: as above.
        unsafe { *cookie = DRIVER }
        return TO;
    }
    FROM
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
    interposer()
        .and_then(|interposer| instead(given, cookie, interposer))
        .map_or(name, CStr::as_ptr)
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
    // SAFETY: the loader passes a symbol whose value is its address, the cookies of both files, and a C
    // string; the interposer is never unloaded.
    unsafe {
        let found = (*symbol).st_value as usize;
        match LOADED.load(Ordering::Acquire).as_ref() {
            Some(ours) if *has == DRIVER => {
                redirect::find(ours, CStr::from_ptr(name)).unwrap_or(found)
            }
            _ => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_drivers_are_replaced_and_not_for_the_interposer() {
        let ours = c"/x/gpu/libcuda.so.1";
        for (name, found) in [
            (c"libcuda.so.1", Some(ours)),
            (c"libcuda.so", Some(ours)),
            (c"/usr/lib64/libcuda.so.1", Some(ours)),
            (c"libcudart.so.13", None),
            (c"/usr/lib64/libcuda.so.1/libm.so.6", None),
            (c"libcuda.so.1.1", None),
            (c"", None),
        ] {
            assert_eq!(instead(name, 0x7f00, ours), found, "{name:?}");
            assert_eq!(instead(name, INTERPOSER, ours), None, "{name:?}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_one_is_not_used() {
        let path = Path::new(c"/x/libcuda.so.1").expect("an absolute path");
        assert_eq!(path.as_c_str(), c"/x/libcuda.so.1");
        assert!(Path::new(c"libcuda.so.1").is_none());
        let long = std::ffi::CString::new(vec![b'/'; libc::PATH_MAX as usize]).expect("no zero");
        assert!(Path::new(&long).is_none());
    }
}
