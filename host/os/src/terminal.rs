//! The terminal that standard error may be.

use std::io::{IsTerminal, Write};

/// Columns of a terminal that does not tell.
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
    let told = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    match (told, size.ws_col) {
        (0, columns @ 1..) => columns.into(),
        _ => COLUMNS,
    }
}

/// Writes to standard error at once. What cannot be written is not worth failing for.
pub fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
