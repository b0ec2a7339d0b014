//! What is known of the calling thread: its current context, and whether captures forbid it something.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::{Api, CUresult};

/// `CU_STREAM_CAPTURE_MODE_RELAXED`
const RELAXED: c_int = 2;

thread_local! {
    /// The thread's current context if that is known, else 0, and whether it is in the relaxed mode.
    /// Constant and without destructor, for calls at exit.
    pub(super) static HERE: Cell<(usize, bool)> = const { Cell::new((0, false)) };
}

/// A stream of this process has been captured.
static CAPTURES: AtomicBool = AtomicBool::new(false);

/// A stream is going to be captured: from now on the capture mode is seen to.
pub fn captures() {
    CAPTURES.store(true, Ordering::Relaxed);
}

/// Calls are allowed that a capture elsewhere would forbid while this lives; nothing changes where no
/// stream has been captured yet.
#[derive(Debug)]
pub struct Relaxed(Option<(&'static Api, c_int)>);

/// Allows the calling thread such calls.
pub fn relaxed(api: &'static Api) -> Relaxed {
    let mut mode = RELAXED;
    if !CAPTURES.load(Ordering::Relaxed) || HERE.get().1 {
        return Relaxed(None);
    }
    // SAFETY: there is room for the old mode. Drivers that know no captures need no mode.
    let result = unsafe { api.cuThreadExchangeStreamCaptureMode(&mut mode) };
    let before = (result == CUresult::SUCCESS).then_some((api, mode));
    Relaxed(before)
}

impl Relaxed {
    /// Whether the mode was another before.
    pub(super) fn is_new(&self) -> bool {
        self.0.is_some()
    }

    /// Puts the mode back.
    pub(super) fn end(&mut self) {
        if let Some((api, mut mode)) = self.0.take() {
            // SAFETY: there is room for the mode.
            let _ = unsafe { api.cuThreadExchangeStreamCaptureMode(&mut mode) };
        }
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        self.end();
    }
}

/// The calling thread's current context is known while this lives.
#[derive(Debug)]
pub struct Here((usize, bool));

/// The calling thread's current context is this one, by its number.
pub fn here(context: u64) -> Here {
    Here(HERE.replace((context as usize, false)))
}

/// The calling thread has another current context now, in spite of [`here`].
pub fn elsewhere() {
    HERE.set((0, false));
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}
