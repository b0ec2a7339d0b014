//! The C functions of the library, made from the table, one per exported symbol.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use driver::sys::*;

use crate::pointer::FromC;
use crate::{Answer, api, calls, capture_mode, inject, order};

/// Says that this is cudarun-check's own driver; see [`driver::sys::MARKER`].
#[unsafe(no_mangle)]
pub extern "C" fn cudarun_check_marker() -> c_int {
    1
}

macro_rules! exports {
    ($($name:ident: $base:ident $since:literal [$($symbol:ident),+] $args:tt;)*) => {
        $($(one! { $symbol $name $args })+)*

        /// Every symbol the library exports, the marker included.
        pub static EXPORTS: &[&str] = &[$($(stringify!($symbol),)+)* MARKER];

        /// Address of an exported symbol of the table.
        pub(crate) fn address(symbol: &str) -> Option<*mut c_void> {
            match symbol {
                $($(stringify!($symbol) => Some($symbol as *const c_void as *mut c_void),)+)*
                _ => None,
            }
        }
    };
}

macro_rules! one {
    ($symbol:ident $name:ident ($($arg:ident: $ty:ty),*)) => {
        /// The entry point of that name in `cuda.h`.
        ///
        /// # Safety
        /// The conditions are those of the C function.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
        pub unsafe extern "C" fn $symbol($($arg: $ty),*) -> CUresult {
            // SAFETY: the caller keeps the conditions of the C function.
            $(let $arg = unsafe { FromC::make_safe($arg) };)*
            entry(stringify!($symbol), || api::$name($($arg),*))
        }
    };
}

driver::entry_points!(exports);

/// Lets no panic cross into C, and tells of calls, or fails, where a test wants it to. Stream 0 is what
/// the symbol says.
fn entry(symbol: &str, body: impl FnOnce() -> Answer) -> CUresult {
    calls::note(symbol);
    // Known before it has to wait for anybody.
    order::thread();
    let body = || match inject::failure(symbol) {
        Some(code) => Err(code),
        None => capture_mode::check(symbol).and_then(|()| body()),
    };
    let per_thread = symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
    order::with_default_stream(per_thread, || {
        catch_unwind(AssertUnwindSafe(body))
            .unwrap_or(Err(CUresult::UNKNOWN))
            .into()
    })
}

/// NVTX calls this when `NVTX_INJECTION64_PATH` names this library; see [`driver::nvtx`].
///
/// # Safety
/// `get` is what NVTX gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    get: Option<driver::nvtx::GetExportTable>,
) -> std::ffi::c_int {
    // SAFETY: by the contract.
    unsafe { driver::nvtx::initialize(get) }
}
