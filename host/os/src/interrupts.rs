//! Signals that would end a process which has something to write down first.
//!
//! While somebody [holds](hold) them, SIGINT, SIGTERM and SIGHUP are noted where the program has left
//! them at their default; whoever holds them looks at [`caught`], or [waits](wait), and [ends](end) the
//! process as it would have ended. A signal that the program handles or ignores is left alone, and so is
//! one that it begins to handle in the meantime.
//!
//! A second signal ends the process at once. What comes within [`SAME`] of the first one counts as the
//! same: Ctrl-C reaches whoever started the process as well, who may pass it on.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is held.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// How long after the first a signal is not a second one, in nanoseconds.
pub const SAME: u64 = 500_000_000;

/// The signal that was noted; 0 when there was none.
static CAUGHT: AtomicI32 = AtomicI32::new(0);
/// When, in nanoseconds of the monotonic clock; 0 when there was none.
static SINCE: AtomicU64 = AtomicU64::new(0);
/// How many hold the signals.
static HOLDERS: Mutex<u32> = Mutex::new(0);
/// Whether anybody does, for the handler.
static IS_HELD: AtomicBool = AtomicBool::new(false);
/// The process whose signals are held; a forked child inherits the handler, and is none of ours.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The bell can be rung.
static LISTENING: AtomicBool = AtomicBool::new(false);
static BELL: Bell = Bell(UnsafeCell::new(
    // SAFETY: a semaphore of zeroes is a place for one; it is used once it is initialised.
    unsafe { std::mem::zeroed() },
));

/// Wakes the thread that waits for a signal.
struct Bell(UnsafeCell<libc::sem_t>);

// SAFETY: a semaphore is made for several threads.
unsafe impl Sync for Bell {}

/// The signals are held while this lives.
#[derive(Debug)]
pub struct Held(());

/// Holds the signals.
pub fn hold() -> Held {
    let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if *holders == 0 {
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        IS_HELD.store(true, Ordering::Relaxed);
        SIGNALS.into_iter().for_each(take_over);
    }
    *holders += 1;
    Held(())
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        *holders -= 1;
        // If one has come, the process is about to end by it, and the next one ends it at once.
        if *holders == 0 && caught().is_none() {
            IS_HELD.store(false, Ordering::Relaxed);
            let ours = SIGNALS.into_iter().filter(|&signal| is_ours(signal));
            ours.for_each(default);
        }
    }
}

/// The signal that has come while they were held, if one has.
pub fn caught() -> Option<i32> {
    Some(CAUGHT.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// Waits until a signal has come. For one thread of the process; false if the system cannot do this.
pub fn wait() -> bool {
    let bell = BELL.0.get();
    // SAFETY: one thread initialises it, before anybody rings it.
    if unsafe { libc::sem_init(bell, 0, 0) } != 0 {
        return false;
    }
    LISTENING.store(true, Ordering::SeqCst);
    while CAUGHT.load(Ordering::SeqCst) == 0 {
        // SAFETY: it was initialised above.
        unsafe { libc::sem_wait(bell) };
    }
    true
}

/// Ends the process by a signal, as if nobody had held it.
pub fn end(signal: i32) -> ! {
    default(signal);
    // SAFETY: the set is initialised by the first call; `raise` and `_exit` touch no memory of ours.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
        // The first process of a container is not ended by signals.
        libc::_exit(128 + signal)
    }
}

extern "C" fn note(signal: libc::c_int) {
    // SAFETY: the place is the thread's own, and lives as long as it.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: it has no conditions.
    let process = unsafe { libc::getpid() };
    // One that is left over, in a child or because the program has put back what it found, is no holder.
    let held = PROCESS.load(Ordering::Relaxed) == process as u32 && IS_HELD.load(Ordering::Relaxed);
    let now = now();
    match SINCE.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) if held => {
            // Whoever listens from now on sees it without the bell.
            CAUGHT.store(signal, Ordering::SeqCst);
            if LISTENING.load(Ordering::SeqCst) {
                // SAFETY: it is initialised, and this is allowed in a handler.
                unsafe { libc::sem_post(BELL.0.get()) };
            }
        }
        Err(first) if held && now.saturating_sub(first) < SAME => {}
        _ => {
            default(signal);
            // SAFETY: it has no conditions; the signal comes when this handler returns.
            unsafe { libc::raise(signal) };
        }
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Now, in nanoseconds of a clock that a handler may read; never 0.
fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: there is room for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).max(1)
}

/// What happens at a signal.
fn action(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: an action of zeroes is valid; this only reads the current one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action);
        action
    }
}

fn handler() -> libc::sighandler_t {
    note as extern "C" fn(libc::c_int) as libc::sighandler_t
}

fn is_ours(signal: libc::c_int) -> bool {
    action(signal).sa_sigaction == handler()
}

/// Whether nobody but us minds a signal.
fn is_free(action: &libc::sigaction) -> bool {
    [libc::SIG_DFL, handler()].contains(&action.sa_sigaction)
}

/// Lets a signal be noted, if it has its default.
fn take_over(signal: libc::c_int) {
    if !is_free(&action(signal)) {
        return;
    }
    // SAFETY: actions of zeroes are valid, and filled in; the handler does what a handler may.
    unsafe {
        let (mut ours, mut before): (libc::sigaction, libc::sigaction) =
            (std::mem::zeroed(), std::mem::zeroed());
        ours.sa_sigaction = handler();
        ours.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(signal, &raw const ours, &raw mut before);
        // Another thread of the program was faster.
        if !is_free(&before) {
            libc::sigaction(signal, &raw const before, std::ptr::null_mut());
        }
    }
}

/// Gives a signal its default. Allowed in a handler.
fn default(signal: libc::c_int) {
    // SAFETY: an action of zeroes is valid, and is the default.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}
