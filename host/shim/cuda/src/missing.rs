//! What the simulated device has not got: each call that asks for it fails, and the first one says so
//! on standard error, and makes the run incomplete.

use driver::sys::CUresult;
use runtime::progress;

use crate::engine::stands_in;

/// Marks an entry point that checks its arguments and does nothing else, with the reason; the tables of
/// `cargo xtask api-table` are made from these marks.
pub(crate) const fn ignored(_why: &str) {}

/// Marks an entry point that does what it should but for what the text says, for the same tables.
pub(crate) const fn remark(_what: &str) {}

/// The answer to a call that needs `what`, in the plural.
pub(crate) fn missing(what: &str) -> CUresult {
    let text = format!("{what} are not available on the simulated device");
    // A program that goes on does something else than on a GPU, unless we are the GPU.
    match stands_in() {
        true => progress::say_once(&text),
        false => progress::say_missed(&text),
    }
    CUresult::NOT_SUPPORTED
}
