//! What every exported function has in common: no panic crosses the boundary, and its error is
//! remembered for `cudaGetLastError`.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{self, Error};

/// Runs the body of an exported function.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Error>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Error::UNKNOWN));
    match result {
        Ok(()) => 0,
        Err(error) => error::remember(error).0,
    }
}

/// Marks a function that does nothing, with the reason; the tables of `cargo xtask api-table` are made
/// from these marks. A function that calls one of the driver's that does nothing needs none.
pub(crate) const fn ignored(_why: &str) {}

/// Defines exported functions, `fn name(arguments) as alias { body }`, whose body is a
/// `Result<(), Error>`.
///
/// The alias is the name that programs built with a per-thread default stream import: stream 0 is
/// the thread's own there.
macro_rules! entry {
    ($(fn $name:ident $arguments:tt $(as $alias:ident)? $body:block)*) => { $(
        entry!(@function $name $arguments $body);
        $(entry!(@alias $alias $name $arguments);)?
    )* };
    (@function $name:ident ($($argument:ident: $ty:ty),* $(,)?) $body:block) => {
        #[doc = concat!("`", stringify!($name), "` of the CUDA runtime API.")]
        ///
        /// # Safety
        /// As the C function: pointers are valid for what the function does with them.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $ty),*) -> std::ffi::c_int {
            #[allow(unused_unsafe, reason = "some bodies look through no pointer")]
            // SAFETY: the caller keeps the conditions of the C function of this name.
            crate::entry::guard(|| unsafe { $body })
        }
    };
    (@alias $alias:ident $name:ident ($($argument:ident: $ty:ty),* $(,)?)) => {
        #[doc = concat!("`", stringify!($name), "` for a per-thread default stream.")]
        ///
        /// # Safety
        /// As the other.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $alias($($argument: $ty),*) -> std::ffi::c_int {
            // SAFETY: the same conditions.
            crate::context::with_per_thread_stream(|| unsafe { $name($($argument),*) })
        }
    };
}
pub(crate) use entry;
