//! `libcuda.so.1` in front of the real driver.
//!
//! Every function of the driver API is exported ([`trampoline`]) and jumps to the real driver's,
//! or to one of ours ([`hooks`]) that calls the real one ([`resolve`]).
//! How it gets into a process, and what is shown without a GPU: docs/interposer.md.
//!
//! Departures from the real library:
//! 1. It exports what the headers of CUDA 13.0 know. What an older driver lacks returns
//!    `CUDA_ERROR_NOT_FOUND`; what a newer one has besides is reached by `cuGetProcAddress` only.
//! 2. The real driver is loaded by the first call, and not with the program, because a process may
//!    be given this library without using CUDA at all.
//! 3. A child made by `fork` while another thread is in that first call waits for its end, for ever.
//! 4. `cuGetExportTable` is passed on untouched: what the runtime library finds there is not ours.
#![allow(
    non_snake_case,
    reason = "functions keep their C names, so that cuda.h documents them"
)]

mod handles;
mod hooked;
mod hooks;
mod own;
mod resolve;
mod state;
mod trampoline;
mod without_ptx;

use std::ffi::c_int;

/// Says that this is cudarun-check's own library; see [`driver::sys::MARKER`].
#[unsafe(no_mangle)]
pub extern "C" fn cudarun_check_marker() -> c_int {
    1
}

/// Says which of them; see [`driver::sys::INTERPOSER_MARKER`].
#[unsafe(no_mangle)]
pub extern "C" fn cudarun_check_interposer() -> c_int {
    1
}

/// NVTX calls this when `NVTX_INJECTION64_PATH` names this library; see [`driver::nvtx`].
///
/// # Safety
/// `get` is what NVTX gives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    get: Option<driver::nvtx::GetExportTable>,
) -> std::ffi::c_int {
    // SAFETY: by the contract.
    unsafe { driver::nvtx::initialize(get) }
}
