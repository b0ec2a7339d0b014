//! Signals of a process that waits for another one. Here because it needs `unsafe`; it has
//! nothing to do with devices.

use std::sync::atomic::{AtomicI32, Ordering};

const HELD: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// The last signal that [`hold`] caught, with [`TERMINAL`]; 0 when there was none.
static CAUGHT: AtomicI32 = AtomicI32::new(0);
/// Set for a signal that the kernel sent by itself.
const TERMINAL: i32 = 1 << 16;
/// `SI_KERNEL`: nobody sent it by `kill`.
const FROM_KERNEL: i32 = 0x80;

/// A signal that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caught {
    /// Its number.
    pub signal: i32,
    /// It came from the terminal, which sends it to all processes in the foreground.
    pub from_terminal: bool,
}

extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the system passes a valid description.
    let code = unsafe { (*info).si_code };
    let terminal = if code == FROM_KERNEL { TERMINAL } else { 0 };
    CAUGHT.store(signal | terminal, Ordering::Relaxed);
}

/// From now on SIGINT, SIGQUIT, SIGTERM and SIGHUP do not end this process but are noted; those it
/// was started to ignore, as `nohup` does, stay ignored.
///
/// Programs it starts have the default again: a caught signal does not stay caught over `exec`, as
/// an ignored one would stay ignored.
pub fn hold() {
    for signal in HELD {
        // SAFETY: an action of zeros is valid, and filled in below; the first call only reads the
        // current action; the handler only stores to an atomic, which is safe at any moment.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            if action.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let handler =
                note as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            action = std::mem::zeroed();
            action.sa_sigaction = handler as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

extern "C" fn pass_over(_: libc::c_int) {}

/// From now on a write beyond the limit on file sizes (`ulimit -f`) fails, and SIGXFSZ does not end this process. Programs
/// that it starts have the default action again.
pub fn survive_size() {
    let handler = pass_over as extern "C" fn(libc::c_int);
    // SAFETY: the handler does nothing, which is safe at any moment.
    unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
}

/// Takes the last signal that was noted.
pub fn take() -> Option<Caught> {
    let caught = CAUGHT.swap(0, Ordering::Relaxed);
    (caught != 0).then_some(Caught {
        signal: caught & !TERMINAL,
        from_terminal: caught & TERMINAL != 0,
    })
}

/// Gives this process, and what it starts, the default for the signals of [`hold`], also where it was
/// started to ignore them, as CI systems and shells do with jobs in the background.
pub fn reset() {
    for signal in HELD {
        // SAFETY: the default is a valid disposition.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Sends a signal to a process. One that is gone already is nobody's error.
pub fn send(pid: u32, signal: i32) {
    let Ok(pid) = libc::pid_t::try_from(pid) else {
        return;
    };
    // SAFETY: kill touches no memory; a positive id names one process.
    unsafe { libc::kill(pid, signal) };
}

/// Does something while the calling thread is sent no signals, so that threads which it starts never
/// are: a program that has closed its own threads to a signal, to wait for it, does not know of ours.
pub fn without<T>(f: impl FnOnce() -> T) -> T {
    /// Restores the mask, also when `f` panics.
    struct Before(libc::sigset_t);
    impl Drop for Before {
        fn drop(&mut self) {
            // SAFETY: the set is one that the system has filled in.
            unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
            };
        }
    }
    // SAFETY: sets of zeroes are places for sets; the first call fills in the one that is read, the
    // second the other, unless it fails, and an empty mask is valid then.
    let _before = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        Before(before)
    };
    f()
}

/// Calls a function that writes the tool's own files, without SIGXFSZ for the calling thread: the limit on file sizes is
/// the program's, and the signal would end it. The write still fails.
pub fn without_size_signal<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: a set of zeroes is a place for one, which the calls fill in.
    let only = unsafe {
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, libc::SIGXFSZ);
        only
    };
    let is_pending = || {
        // SAFETY: as above.
        unsafe {
            let mut pending: libc::sigset_t = std::mem::zeroed();
            libc::sigpending(&raw mut pending);
            libc::sigismember(&raw const pending, libc::SIGXFSZ) == 1
        }
    };
    let already = is_pending();
    // SAFETY: as above; the second set takes what was blocked before.
    let before = unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const only, &raw mut before);
        before
    };
    let result = f();
    if !already && is_pending() {
        let now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the call takes the signal away, and nothing waits.
        unsafe { libc::sigtimedwait(&raw const only, std::ptr::null_mut(), &raw const now) };
    }
    // SAFETY: the set is one that the system has filled in.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_signals_are_noted_and_do_not_end_the_process() {
        hold();
        assert_eq!(take(), None);
        // SIGTERM, because CI systems start their jobs with SIGHUP or SIGINT ignored.
        send(std::process::id(), libc::SIGTERM);
        // Another thread may be the one that gets it.
        let noted = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            take()
        });
        let by_kill = Caught {
            signal: libc::SIGTERM,
            from_terminal: false,
        };
        assert_eq!(noted, Some(by_kill));
    }

    /// What the system says about the calling thread's mask.
    fn mask() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    }

    #[test]
    fn threads_started_without_signals_get_none() {
        let before = mask();
        let thread = without(|| std::thread::spawn(mask));
        assert_eq!(mask(), before);
        let blocked = thread.join().unwrap();
        for signal in [libc::SIGINT, libc::SIGUSR1, libc::SIGALRM, libc::SIGCHLD] {
            assert_ne!(blocked >> (signal - 1) & 1, 0, "{signal}: {blocked:x}");
        }
        // A panic restores it, too.
        assert!(std::panic::catch_unwind(|| without(|| panic!("on purpose"))).is_err());
        assert_eq!(mask(), before);
    }
}
