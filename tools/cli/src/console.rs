//! Lines for people on standard output and standard error.
//!
//! What goes there comes from files too, so control characters are shown as escapes. A reader that has gone wants no more,
//! which is no error. Where standard output cannot be written for another reason, such as a full disk, the command goes on
//! and ends with an error ([`failure`]).

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

use report::escape::printable;

use crate::exit::{INTERNAL, Stop};

/// The first write to standard output that has failed.
static FAILED: OnceLock<String> = OnceLock::new();

/// A line on standard output.
pub(crate) fn out(line: impl Display) {
    let line = format!("{line}\n");
    out_as_is(&printable(&line, false));
}

/// A text on standard output, whose control characters are its own.
pub(crate) fn out_as_is(text: &str) {
    note(write(text));
}

/// The same for a caller that says itself what has failed.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout();
    let written = output.write_all(text.as_bytes());
    match written.and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Remembers that standard output could not be written.
pub(crate) fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        // Of several, the first says why.
        FAILED.get_or_init(|| error.to_string());
    }
}

/// Why the command ends with an error whatever it has found: its output is not whole.
pub(crate) fn failure() -> Option<Stop> {
    let why = FAILED.get()?;
    let text = format!("cannot write to standard output: {why}");
    Some(Stop::new(INTERNAL, text))
}

/// A line on standard error.
pub(crate) fn say(line: impl Display) {
    let line = format!("{line}\n");
    os::terminal::write(&printable(&line, false));
}
