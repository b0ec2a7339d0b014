//! Standard error, and the terminal that it may be.

use std::collections::BTreeSet;
use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

/// Columns of a terminal whose width is not known.
const COLUMNS: usize = 80;

/// Whether standard error is a terminal that understands control sequences.
pub fn is_there() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !dumb && std::io::stderr().is_terminal()
}

/// Its columns.
pub fn columns() -> usize {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: there is room for the result.
    let answered = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    match (answered, size.ws_col) {
        (0, columns @ 1..) => columns.into(),
        _ => COLUMNS,
    }
}

/// Writes to standard error at once, and takes no lock that the program may hold.
/// What cannot be written is not worth failing for.
pub fn write(text: &str) {
    let _ = try_write(text);
}

/// The same where it is worth failing for.
///
/// # Errors
/// When not all can be written.
pub fn try_write(text: &str) -> std::io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        // SAFETY: the buffer is valid for its length.
        let written = unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(written) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(_) => match std::io::Error::last_os_error() {
                error if error.kind() == Interrupted => {}
                error if error.kind() == WouldBlock => wait(),
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// Waits until standard error, which does not block, takes more.
fn wait() {
    let mut poll = libc::pollfd {
        fd: libc::STDERR_FILENO,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: there is one entry. If this fails, so does the next write, which reports it.
    unsafe { libc::poll(&raw mut poll, 1, -1) };
}

/// Writes a line for the user, with the tool's name before it.
pub fn say(text: &str) {
    write(&format!("cudarun-check: {text}\n"));
}

/// Likewise, unless this process has reported the same before.
pub fn say_once(text: &str) {
    static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    if reported.insert(text.to_owned()) {
        say(text);
    }
}
