//! What the simulated device has not got: each call that asks for it fails, and the first one says so
//! on standard error.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use driver::sys::CUresult;

/// Marks an entry point that checks its arguments and does nothing else, with the reason; the tables of
/// `cargo xtask api-table` are made from these marks.
pub(crate) const fn ignored(_why: &str) {}

/// Marks an entry point that does what it should but for what the text says, for the same tables.
pub(crate) const fn remark(_what: &str) {}

/// The answer to a call that needs `what`, in the plural.
pub(crate) fn missing(what: &'static str) -> CUresult {
    static SAID: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.insert(what) {
        let line = format!("cudarun-check: {what} are not available on the simulated device\n");
        // SAFETY: the buffer is valid for its length. What cannot be written is not worth failing for.
        let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    }
    CUresult::NOT_SUPPORTED
}
