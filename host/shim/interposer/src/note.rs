//! Lines for the user on standard error, each said once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Says a line, unless it was said before.
pub(crate) fn once(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.insert(text.to_owned()) {
        runtime::progress::erase();
        let line = format!("cudarun-check: {text}\n");
        // SAFETY: the buffer is valid for its length. What cannot be written is not worth failing for.
        let _ = unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    }
}
