//! Who has called into this library.

use std::ffi::{CStr, c_int, c_void};

type Context = *mut c_void;

unsafe extern "C" {
    /// Calls `each` for every frame of the stack, the innermost first, until it returns something else than 0.
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(Context, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: Context) -> usize;
}

/// The file that the innermost frame outside this library belongs to.
pub(crate) fn file() -> Option<String> {
    let mut found: Option<String> = None;
    // SAFETY: the function is called during this call only, with the place of `found`.
    unsafe { _Unwind_Backtrace(outside, (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn outside(context: Context, found: *mut c_void) -> c_int {
    // SAFETY: `file` passes the place, and the unwinder a context.
    let (found, address) =
        unsafe { (&mut *found.cast::<Option<String>>(), _Unwind_GetIP(context)) };
    let own = holder(outside as *const c_void as usize);
    match holder(address) {
        Some((base, name)) if own.as_ref().is_none_or(|(own, _)| *own != base) => {
            *found = Some(name);
            1
        }
        _ => 0,
    }
}

/// The base and the name of the file that an address lies in.
fn holder(address: usize) -> Option<(usize, String)> {
    // SAFETY: zeroes are a value, and the call fills it in; names of loaded files are C strings.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let known = libc::dladdr(std::ptr::without_provenance(address), &raw mut info);
        (known != 0 && !info.dli_fname.is_null()).then(|| {
            let name = CStr::from_ptr(info.dli_fname).to_string_lossy();
            (info.dli_fbase as usize, name.into_owned())
        })
    }
}
