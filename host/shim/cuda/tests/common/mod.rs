//! Calling the entry points from Rust: what the tests of this folder share.
//!
//! The state is the process's, contexts included, so the tests of a file run one at a time.

use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarun_shim_cuda::exports::*;
use driver::sys::*;

/// Calls an entry point of the library.
macro_rules! cu {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        // SAFETY: the tests pass what the documentation of the call asks for.
        unsafe { $name($($arg),*) }
    }};
}
pub(crate) use cu;

pub(crate) fn ok(result: CUresult) {
    assert_eq!(result, CUresult::SUCCESS);
}

/// Initialises the driver and makes the primary context current on this thread.
pub(crate) fn start() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut context = null_mut();
    ok(cu!(cuInit(0)));
    ok(cu!(cuDevicePrimaryCtxRetain(&mut context, 0)));
    ok(cu!(cuCtxSetCurrent(context)));
    turn
}

pub(crate) fn alloc(bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    ok(cu!(cuMemAlloc_v2(&mut address, bytes)));
    address
}

pub(crate) fn read(address: CUdeviceptr, bytes: usize) -> Vec<u8> {
    let mut host = vec![0xeeu8; bytes];
    let to = host.as_mut_ptr().cast();
    ok(cu!(cuMemcpyDtoH_v2(to, address, bytes)));
    host
}
