//! Signals of a process that waits for another one. Here because it needs `unsafe`; it has
//! nothing to do with devices.

use std::sync::atomic::{AtomicI32, Ordering};

/// The last signal that [`hold`] caught; 0 when there was none.
static CAUGHT: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    CAUGHT.store(signal, Ordering::Relaxed);
}

/// From now on SIGINT, SIGQUIT, SIGTERM and SIGHUP do not end this process but are noted.
///
/// Programs it starts have the default again: a caught signal does not stay caught over `exec`, as
/// an ignored one would stay ignored.
pub fn hold() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        let handler = note as extern "C" fn(libc::c_int);
        // SAFETY: the handler only stores to an atomic, which is safe at any moment.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Takes the last signal that was noted.
pub fn take() -> Option<i32> {
    Some(CAUGHT.swap(0, Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// Whether the terminal sends this signal to all processes in the foreground itself.
pub fn from_terminal(signal: i32) -> bool {
    signal == libc::SIGINT || signal == libc::SIGQUIT
}

/// Sends a signal to a process. One that is gone already is nobody's error.
pub fn send(pid: u32, signal: i32) {
    let Ok(pid) = libc::pid_t::try_from(pid) else {
        return;
    };
    // SAFETY: kill touches no memory; a positive id names one process.
    unsafe { libc::kill(pid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_signals_are_noted_and_do_not_end_the_process() {
        hold();
        assert_eq!(take(), None);
        send(std::process::id(), libc::SIGHUP);
        // Another thread may be the one that gets it.
        let noted = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            take()
        });
        assert_eq!(noted, Some(libc::SIGHUP));
    }
}
