//! Lines for people on standard output and standard error.
//!
//! What goes there comes from files too, so control characters are shown as escapes. A reader that has gone, or a full
//! device, is no reason to panic: standard output is then left alone, and the exit code still says how it went.

use std::fmt::Display;
use std::io::Write;

use report::escape::printable;

/// A line on standard output.
pub(crate) fn out(line: impl Display) {
    let line = format!("{line}\n");
    drop(std::io::stdout().write_all(printable(&line, false).as_bytes()));
}

/// A text on standard output, whose control characters are its own.
pub(crate) fn out_as_is(text: &str) {
    drop(std::io::stdout().write_all(text.as_bytes()));
}

/// A line on standard error.
pub(crate) fn say(line: impl Display) {
    let line = format!("{line}\n");
    os::terminal::write(&printable(&line, false));
}
