//! A list of the calls that the library gets, for tests that count them.
//!
//! `CUDARUN_SIM_CALLS=FILE` appends a line per call to a file: the number of the thread, a blank, and the
//! name of the exported function. See docs/adding-a-test.md.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;

/// Names the file.
const VARIABLE: &str = "CUDARUN_SIM_CALLS";

/// Writes a call down, if somebody wants to know.
pub(crate) fn note(symbol: &str) {
    static LIST: OnceLock<Option<File>> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let path = std::env::var_os(VARIABLE)?;
        OpenOptions::new().append(true).create(true).open(path).ok()
    });
    if let Some(mut list) = list.as_ref() {
        // SAFETY: the call has no conditions.
        let thread = unsafe { libc::gettid() };
        // One write per line, so that lines of several threads stay whole. A list that cannot be written
        // is shorter than whoever reads it expects.
        let _ = list.write_all(format!("{thread} {symbol}\n").as_bytes());
    }
}
