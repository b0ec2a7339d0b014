//! The ranges of NVTX that a program has open, and the names that it has given to streams.
//!
//! NVTX 3 is made of headers: the first call of it in a program loads the library that `NVTX_INJECTION64_PATH` names and
//! lets that put functions of its own behind those of the headers. After `nvtx3/nvtxDetail/nvtxTypes.h`,
//! `nvtx3/nvToolsExt.h`, `nvtx3/nvToolsExtCuda.h` and `nvtx3/nvToolsExtCudaRt.h`.
//!
//! Ranges that a thread pushes are open on that thread; ranges that are started, on all threads.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::offset_of;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names the library that NVTX loads.
pub const INJECTION_VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// A range: its name and that of its domain, which is empty for the default domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The domain.
    pub domain: String,
    /// The range.
    pub name: String,
}

/// What a program has reported.
#[derive(Debug, Default)]
struct Ranges {
    /// Domains; the handle of the first is 1.
    domains: Vec<String>,
    /// Registered strings; likewise.
    strings: Vec<String>,
    /// Ranges that were started, by their numbers.
    started: Vec<(u64, Range)>,
    /// Those so far.
    starts: u64,
    /// Names of streams, by their handles.
    streams: BTreeMap<usize, String>,
}

static RANGES: Mutex<Ranges> = Mutex::new(Ranges {
    domains: Vec::new(),
    strings: Vec::new(),
    started: Vec::new(),
    starts: 0,
    streams: BTreeMap::new(),
});

thread_local! {
    static PUSHED: RefCell<Vec<Range>> = const { RefCell::new(Vec::new()) };
}

fn ranges() -> MutexGuard<'static, Ranges> {
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a range is open for the calling thread that fits.
pub fn is_open(fits: impl Fn(&Range) -> bool) -> bool {
    let pushed = PUSHED.try_with(|pushed| pushed.borrow().iter().any(&fits));
    pushed.unwrap_or(false) || ranges().started.iter().any(|(_, range)| fits(range))
}

/// The name that the program has given to a stream, by `nvtxNameCuStreamA` and the like.
pub fn name_of_stream(handle: u64) -> Option<String> {
    let handle = usize::try_from(handle).ok()?;
    ranges().streams.get(&handle).cloned()
}

/// A stream gets a name, instead of the one that it may have.
fn name_stream(stream: Handle, name: String) {
    ranges().streams.insert(stream.addr(), name);
}

fn push(range: Range) -> c_int {
    let pushed = PUSHED.try_with(|pushed| {
        let mut pushed = pushed.borrow_mut();
        pushed.push(range.clone());
        pushed.iter().filter(|of| of.domain == range.domain).count()
    });
    pushed.map_or(-1, |level| level as c_int - 1)
}

/// Ends the innermost range of a domain.
fn pop(domain: &str) -> c_int {
    let popped = PUSHED.try_with(|pushed| {
        let mut pushed = pushed.borrow_mut();
        let at = pushed.iter().rposition(|range| range.domain == domain)?;
        pushed.remove(at);
        Some(pushed.iter().filter(|of| of.domain == domain).count())
    });
    popped.ok().flatten().map_or(-1, |level| level as c_int)
}

fn start(range: Range) -> u64 {
    let mut ranges = ranges();
    ranges.starts += 1;
    let number = ranges.starts;
    ranges.started.push((number, range));
    number
}

fn end(number: u64) {
    ranges().started.retain(|(of, _)| *of != number);
}

/// A handle for a text that is kept.
fn keep(kept: &mut Vec<String>, text: String) -> *mut c_void {
    // The same name is the same domain.
    let at = kept
        .iter()
        .position(|known| *known == text)
        .unwrap_or_else(|| {
            kept.push(text);
            kept.len() - 1
        });
    std::ptr::without_provenance_mut(at + 1)
}

fn kept(all: &[String], handle: *mut c_void) -> String {
    let at = handle.addr().checked_sub(1);
    at.and_then(|at| all.get(at)).cloned().unwrap_or_default()
}

fn domain(handle: *mut c_void) -> String {
    kept(&ranges().domains, handle)
}

/// `nvtxEventAttributes_t`, the fields that are looked at.
#[repr(C)]
struct Attributes {
    _version: u16,
    _size: u16,
    /// Category, type and value of the colour, type of the payload, and what is reserved.
    _looks: [u32; 5],
    _payload: u64,
    kind: i32,
    message: *mut c_void,
}

// 48 bytes, of which the last 16 tell the name.
const _: () = assert!(offset_of!(Attributes, kind) == 32 && offset_of!(Attributes, message) == 40);

/// `nvtxMessageType_t`.
const ASCII: i32 = 1;
const UNICODE: i32 = 2;
const REGISTERED: i32 = 3;

/// # Safety
/// The text ends in a zero, or is null.
unsafe fn narrow(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// # Safety
/// The text ends in a zero, or is null.
unsafe fn wide(text: *const u32) -> String {
    let mut read = String::new();
    let mut at = text;
    while !at.is_null() {
        // SAFETY: no zero has been read before.
        let (c, next) = unsafe { (at.read_unaligned(), at.add(1)) };
        if c == 0 {
            break;
        }
        read.push(char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER));
        at = next;
    }
    read
}

/// # Safety
/// The attributes are as the program gives them to NVTX, or null.
unsafe fn named(domain: String, attributes: *const Attributes) -> Range {
    // SAFETY: by the contract.
    let Some(attributes) = (unsafe { attributes.as_ref() }) else {
        return Range {
            domain,
            ..Range::default()
        };
    };
    let message = attributes.message;
    let name = match attributes.kind {
        // SAFETY: NVTX wants a text that ends in a zero.
        ASCII => unsafe { narrow(message.cast()) },
        // SAFETY: likewise.
        UNICODE => unsafe { wide(message.cast()) },
        REGISTERED => kept(&ranges().strings, message),
        _ => String::new(),
    };
    Range { domain, name }
}

fn plain(name: String) -> Range {
    Range {
        domain: String::new(),
        name,
    }
}

type Handle = *mut c_void;

/// The functions that NVTX calls in place of its own. A panic does not unwind into the program.
macro_rules! functions {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty, else $otherwise:expr; $do:expr;)*) => {
        $(#[allow(unused_unsafe, reason = "some take handles only")]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $result {
            // SAFETY: the program passes what the headers of NVTX say: texts end in zeros, attributes are whole.
            let run = move || unsafe { $do };
            std::panic::catch_unwind(run).unwrap_or($otherwise)
        })*
    };
}

functions! {
    push_ex(of: *const Attributes) -> c_int, else -1; push(named(String::new(), of));
    push_a(name: *const c_char) -> c_int, else -1; push(plain(narrow(name)));
    push_w(name: *const u32) -> c_int, else -1; push(plain(wide(name)));
    pop_default() -> c_int, else -1; pop("");
    start_ex(of: *const Attributes) -> u64, else 0; start(named(String::new(), of));
    start_a(name: *const c_char) -> u64, else 0; start(plain(narrow(name)));
    start_w(name: *const u32) -> u64, else 0; start(plain(wide(name)));
    end_default(number: u64) -> (), else (); end(number);
    domain_push(within: Handle, of: *const Attributes) -> c_int, else -1; push(named(domain(within), of));
    domain_pop(within: Handle) -> c_int, else -1; pop(&domain(within));
    domain_start(within: Handle, of: *const Attributes) -> u64, else 0; start(named(domain(within), of));
    domain_end(_within: Handle, number: u64) -> (), else (); end(number);
    domain_create_a(name: *const c_char) -> Handle, else std::ptr::null_mut(); {
        let name = narrow(name);
        keep(&mut ranges().domains, name)
    };
    domain_create_w(name: *const u32) -> Handle, else std::ptr::null_mut(); {
        let name = wide(name);
        keep(&mut ranges().domains, name)
    };
    register_a(_within: Handle, text: *const c_char) -> Handle, else std::ptr::null_mut(); {
        let text = narrow(text);
        keep(&mut ranges().strings, text)
    };
    register_w(_within: Handle, text: *const u32) -> Handle, else std::ptr::null_mut(); {
        let text = wide(text);
        keep(&mut ranges().strings, text)
    };
    name_stream_a(stream: Handle, name: *const c_char) -> (), else (); name_stream(stream, narrow(name));
    name_stream_w(stream: Handle, name: *const u32) -> (), else (); name_stream(stream, wide(name));
}

/// `NVTX_ETID_CALLBACKS`.
const CALLBACKS: u32 = 1;
/// `NVTX_CB_MODULE_CORE` and the like.
const CORE: c_int = 1;
const CUDA: c_int = 2;
const CUDART: c_int = 4;
const CORE2: c_int = 5;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    struct_size: usize,
    table: Option<unsafe extern "C" fn(c_int, *mut *mut *mut *const c_void, *mut c_uint) -> c_int>,
}

/// `NvtxGetExportTableFunc_t`.
pub type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// What `InitializeInjectionNvtx2` does: takes the place of NVTX's functions for ranges and for names of streams; 1 if
/// that is done, else 0.
///
/// # Safety
/// `get` is what NVTX gives.
pub unsafe fn initialize(get: Option<GetExportTable>) -> c_int {
    let Some(get) = get else {
        return 0;
    };
    // SAFETY: NVTX gives a table of this kind, or null.
    let table = unsafe { get(CALLBACKS).cast::<Callbacks>().as_ref() };
    let Some(table) = table.filter(|of| of.struct_size >= size_of::<Callbacks>()) else {
        return 0;
    };
    let core: [(usize, *const c_void); 8] = [
        (4, start_ex as *const c_void),
        (5, start_a as *const c_void),
        (6, start_w as *const c_void),
        (7, end_default as *const c_void),
        (8, push_ex as *const c_void),
        (9, push_a as *const c_void),
        (10, push_w as *const c_void),
        (11, pop_default as *const c_void),
    ];
    let core2: [(usize, *const c_void); 8] = [
        (2, domain_start as *const c_void),
        (3, domain_end as *const c_void),
        (4, domain_push as *const c_void),
        (5, domain_pop as *const c_void),
        (10, register_a as *const c_void),
        (11, register_w as *const c_void),
        (12, domain_create_a as *const c_void),
        (13, domain_create_w as *const c_void),
    ];
    // Handles of the runtime are those of the driver.
    let [cuda, cudart] = [5, 3].map(|first| {
        [
            (first, name_stream_a as *const c_void),
            (first + 1, name_stream_w as *const c_void),
        ]
    });
    let all: [(c_int, &[(usize, *const c_void)]); 4] = [
        (CORE, &core),
        (CORE2, &core2),
        (CUDA, &cuda),
        (CUDART, &cudart),
    ];
    let mut served = 0;
    for (module, functions) in all {
        let (mut slots, mut count) = (std::ptr::null_mut(), 0);
        let Some(slots_of) = table.table else {
            return 0;
        };
        // SAFETY: there is room for both results.
        let found = unsafe { slots_of(module, &mut slots, &mut count) };
        // Not every version has all.
        if found == 0 || slots.is_null() {
            continue;
        }
        served = 1;
        for &(number, function) in functions {
            if number >= count as usize {
                continue;
            }
            // SAFETY: so many slots are there; each points to NVTX's pointer to the function, or is null.
            unsafe {
                let slot: *mut *const c_void = slots.add(number).read();
                if !slot.is_null() {
                    slot.write(function);
                }
            }
        }
    }
    served
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(domain: &str, name: &str) -> bool {
        is_open(|range| range.domain == domain && range.name == name)
    }

    #[test]
    fn pushed_ranges_are_open_on_their_thread_and_started_ones_everywhere() {
        let named = |name: &str| plain(name.to_owned());
        assert_eq!(push(named("outer")), 0);
        assert_eq!(push(named("inner")), 1);
        let number = start(named("step"));
        assert!(open("", "outer") && open("", "inner") && open("", "step"));
        let elsewhere = std::thread::spawn(|| (open("", "outer"), open("", "step")));
        assert_eq!(elsewhere.join().unwrap(), (false, true));
        assert_eq!(pop("other"), -1);
        assert_eq!(pop(""), 1);
        assert!(open("", "outer") && !open("", "inner"));
        end(number);
        assert!(!open("", "step"));
        assert_eq!((pop(""), pop("")), (0, -1));
    }

    #[test]
    fn texts_of_all_kinds_are_read() {
        let wide_text = ['ä', 'b', '\0'].map(u32::from);
        // SAFETY: both end in a zero.
        let read = unsafe { (narrow(c"x y".as_ptr()), wide(wide_text.as_ptr())) };
        assert_eq!(read, ("x y".to_owned(), "äb".to_owned()));
        // SAFETY: null is no text.
        let none = unsafe { narrow(std::ptr::null()) + &wide(std::ptr::null()) };
        assert_eq!(none, "");
        let mut all = Vec::new();
        let handle = keep(&mut all, "physics".to_owned());
        assert_eq!(keep(&mut all, "physics".to_owned()), handle);
        assert_eq!(kept(&all, handle), "physics");
        assert_eq!(kept(&all, std::ptr::null_mut()), "");
    }
}
