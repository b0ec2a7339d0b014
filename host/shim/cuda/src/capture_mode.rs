//! What captures forbid: while one is going on, calls that may disturb it fail and end it.
//!
//! Source: `cuThreadExchangeStreamCaptureMode` in the documentation of the driver API. It does not list these
//! calls; here they are those that allocate, free, load, unload, wait or ask whether something has ended.

use std::cell::Cell;
use std::ffi::c_int;

use driver::sys::CUresult;

use crate::Answer;
use crate::order;
use crate::pointer::Ptr;
use crate::state::{self, State};
use crate::stream::Capture;

/// `CU_STREAM_CAPTURE_MODE_GLOBAL`: captures of all threads forbid calls.
const GLOBAL: c_int = 0;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`: none does.
const RELAXED: c_int = 2;

/// Calls that captures forbid, without the variants for a default stream per thread.
const UNSAFE: [&str; 31] = [
    "cuArray3DCreate_v2",
    "cuArrayCreate_v2",
    "cuArrayDestroy",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuLibraryLoadData",
    "cuLibraryLoadFromFile",
    "cuLibraryUnload",
    "cuMemAllocHost_v2",
    "cuMemAllocManaged",
    "cuMemAllocPitch_v2",
    "cuMemAlloc_v2",
    "cuMemCreate",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemMap",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMemcpyDtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD_v2",
    "cuModuleLoad",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleLoadFatBinary",
    "cuModuleUnload",
    "cuStreamQuery",
    "cuStreamSynchronize",
];

thread_local! {
    // Constant and without destructor: the program may call us while its thread ends.
    static MODE: Cell<c_int> = const { Cell::new(GLOBAL) };
}

/// Refuses a call that may disturb a capture, which is of no use any more then.
pub(crate) fn check(symbol: &str) -> Answer {
    let plain = symbol
        .strip_suffix("_ptsz")
        .or_else(|| symbol.strip_suffix("_ptds"));
    if MODE.get() == RELAXED || !UNSAFE.contains(&plain.unwrap_or(symbol)) {
        return Ok(());
    }
    // What is wrong with the state, the call itself finds.
    let forbidden = state::with(|state| Ok(state.invalidate()));
    match forbidden {
        Ok(true) => Err(CUresult::STREAM_CAPTURE_UNSUPPORTED),
        _ => Ok(()),
    }
}

impl State {
    /// Ends the captures that forbid the calling thread what it wants to do; whether there are any.
    fn invalidate(&mut self) -> bool {
        let mode = MODE.get();
        let own = order::thread();
        let forbids = |capture: &Capture| match capture.thread == own {
            true => capture.mode != RELAXED,
            false => mode == GLOBAL && capture.mode == GLOBAL,
        };
        let mut any = false;
        for (_, capture) in self.captures.iter_mut() {
            let hit = forbids(capture);
            capture.invalid |= hit;
            any |= hit;
        }
        any
    }
}

/// Sets the calling thread's mode, and gives the one before.
pub(crate) fn cuThreadExchangeStreamCaptureMode(mode: Ptr<c_int>) -> Answer {
    match mode.get()? {
        new @ GLOBAL..=RELAXED => mode.set(MODE.replace(new)),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

#[cfg(test)]
mod tests {
    use driver::sys::SYMBOLS;

    use super::UNSAFE;

    #[test]
    fn what_captures_forbid_is_exported() {
        assert!(UNSAFE.is_sorted());
        for symbol in UNSAFE {
            assert!(SYMBOLS.contains(&symbol), "{symbol}");
        }
    }
}
