//! Waiting for the device, and the end of contexts.

use std::ffi::{c_int, c_uint, c_void};

use driver::sys::*;
use runtime::progress;
use runtime::session::TIMEOUT;

use crate::state::{current, stack_with_checks, with, with_started};

/// Drains what has ended, after the program has waited for it.
fn waited(result: CUresult) -> CUresult {
    with_started(|state| state.session.poll());
    progress::erase();
    result
}

pub(crate) unsafe fn cuCtxSynchronize(real: &'static Api) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    waited(unsafe { real.cuCtxSynchronize() })
}

pub(crate) unsafe fn cuCtxSynchronize_v2(real: &'static Api, ctx: CUcontext) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    waited(unsafe { real.cuCtxSynchronize_v2(ctx) })
}

pub(crate) unsafe fn cuStreamSynchronize(real: &'static Api, stream: CUstream) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    waited(unsafe { real.cuStreamSynchronize(stream) })
}

pub(crate) unsafe fn cuEventSynchronize(real: &'static Api, event: CUevent) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    waited(unsafe { real.cuEventSynchronize(event) })
}

pub(crate) unsafe fn cuMemcpyDtoH(
    real: &'static Api,
    dst_host: *mut c_void,
    src_device: CUdeviceptr,
    bytes: usize,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    waited(unsafe { real.cuMemcpyDtoH(dst_host, src_device, bytes) })
}

pub(crate) unsafe fn cuCtxDestroy(real: &'static Api, ctx: CUcontext) -> CUresult {
    let number = ctx.expose_provenance() as u64;
    with_started(|state| state.leave(number));
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuCtxDestroy(ctx) }
}

pub(crate) unsafe fn cuCtxAttach(
    real: &'static Api,
    ctx_out: *mut CUcontext,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuCtxAttach(ctx_out, flags) };
    if result == CUresult::SUCCESS {
        // SAFETY: the driver has written the handle.
        let number = unsafe { *ctx_out }.expose_provenance() as u64;
        with(|state| *state.attached.entry(number).or_insert(0) += 1);
    }
    result
}

pub(crate) unsafe fn cuCtxDetach(real: &'static Api, ctx: CUcontext) -> CUresult {
    let number = ctx.expose_provenance() as u64;
    with_started(|state| match state.attached.get_mut(&number) {
        Some(times) if *times > 0 => *times -= 1,
        // The program that has made it detaches from it: it is destroyed.
        _ => state.leave(number),
    });
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuCtxDetach(ctx) }
}

pub(crate) unsafe fn cuDevicePrimaryCtxRetain(
    real: &'static Api,
    ctx_out: *mut CUcontext,
    dev: CUdevice,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuDevicePrimaryCtxRetain(ctx_out, dev) };
    if result == CUresult::SUCCESS {
        // SAFETY: the driver has written the handle.
        let number = unsafe { *ctx_out }.expose_provenance() as u64;
        with(|state| state.primary.insert(dev, number));
    }
    result
}

pub(crate) unsafe fn cuDevicePrimaryCtxRelease(real: &'static Api, dev: CUdevice) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let release = || unsafe { real.cuDevicePrimaryCtxRelease(dev) };
    end_primary(dev, release, |_| !is_active(real, dev))
}

pub(crate) unsafe fn cuDevicePrimaryCtxReset(real: &'static Api, dev: CUdevice) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let reset = || unsafe { real.cuDevicePrimaryCtxReset(dev) };
    // Even if it is still held, nothing of what was in it is left.
    end_primary(dev, reset, |result| {
        result == CUresult::SUCCESS || !is_active(real, dev)
    })
}

/// Drains what is in a device's primary context before a call that may end it; `ended` says whether it has.
fn end_primary(
    dev: CUdevice,
    end: impl FnOnce() -> CUresult,
    ended: impl FnOnce(CUresult) -> bool,
) -> CUresult {
    let context = with_started(|state| {
        let context = state.primary.get(&dev).copied();
        // Whether it ends here, only the driver knows, and afterwards nothing can be read.
        if context.is_some() {
            state.session.settle(TIMEOUT);
        }
        context
    });
    let result = end();
    if let Some(Some(context)) = context
        && ended(result)
    {
        with_started(|state| state.leave(context));
    }
    result
}

fn is_active(real: &Api, dev: CUdevice) -> bool {
    let (mut flags, mut active): (_, c_int) = (0, 0);
    // SAFETY: there is room for both results.
    let known = unsafe { real.cuDevicePrimaryCtxGetState(dev, &mut flags, &mut active) };
    known == CUresult::SUCCESS && active != 0
}

/// The current context and what the program knows of its stack, where that has more.
fn raised_stack_limit(real: &Api) -> Option<(u64, usize)> {
    with_started(|state| {
        if state.stacks.is_empty() {
            return None;
        }
        let context = current(real)?.expose_provenance() as u64;
        let shown = state.stacks.get(&context)?;
        Some((context, *shown))
    })?
}

pub(crate) unsafe fn cuCtxSetLimit(real: &'static Api, limit: CUlimit, value: usize) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let set = |value| unsafe { real.cuCtxSetLimit(limit, value) };
    let raised = match limit == limit::STACK_SIZE {
        true => raised_stack_limit(real),
        false => None,
    };
    let Some((context, _)) = raised else {
        return set(value);
    };
    let mut result = set(stack_with_checks(value));
    if result != CUresult::SUCCESS {
        // It may be more than there can be.
        result = set(value);
    }
    if result == CUresult::SUCCESS {
        with_started(|state| state.stacks.insert(context, value));
    }
    result
}

pub(crate) unsafe fn cuCtxGetLimit(
    real: &'static Api,
    value_out: *mut usize,
    limit: CUlimit,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuCtxGetLimit(value_out, limit) };
    if result == CUresult::SUCCESS
        && limit == limit::STACK_SIZE
        && let Some((_, shown)) = raised_stack_limit(real)
    {
        // SAFETY: the driver has written there.
        unsafe { *value_out = shown };
    }
    result
}
