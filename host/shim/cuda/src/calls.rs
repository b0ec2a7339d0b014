//! Lists of what the library is asked for, for tests that count it.
//!
//! `CUDARUN_SIM_CALLS=FILE` appends a line per call to a file: the number of the thread, a blank, and the
//! name of the exported function. `CUDARUN_SIM_LAUNCHES=FILE` appends a line per launch: the name of the
//! kernel, a blank, and how many warp-instructions it has executed. See docs/adding-a-test.md.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;

/// Names the file of calls.
const CALLS: &str = "CUDARUN_SIM_CALLS";
/// Names the file of launches.
const LAUNCHES: &str = "CUDARUN_SIM_LAUNCHES";

/// Writes a call down, if somebody wants to know.
pub(crate) fn note(symbol: &str) {
    static LIST: OnceLock<Option<File>> = OnceLock::new();
    append(&LIST, CALLS, || {
        // SAFETY: the call has no conditions.
        let thread = unsafe { libc::gettid() };
        format!("{thread} {symbol}")
    });
}

/// Writes a launch down that has come to its end, if somebody wants to know.
pub(crate) fn launched(kernel: &str, warp_instructions: u64) {
    static LIST: OnceLock<Option<File>> = OnceLock::new();
    append(&LIST, LAUNCHES, || format!("{kernel} {warp_instructions}"));
}

/// Appends a line to the file that a variable names.
fn append(list: &OnceLock<Option<File>>, variable: &str, line: impl FnOnce() -> String) {
    let list = list.get_or_init(|| {
        let path = std::env::var_os(variable)?;
        OpenOptions::new().append(true).create(true).open(path).ok()
    });
    if let Some(mut list) = list.as_ref() {
        // One write per line, so that lines of several threads stay whole. A list that cannot be written
        // is shorter than whoever reads it expects.
        let _ = list.write_all(format!("{}\n", line()).as_bytes());
    }
}
