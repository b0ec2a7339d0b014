//! Launches in steps: the driver gets each step, and we keep it too, because a kernel with a
//! hidden parameter is launched by `cuLaunchKernel` in the end.

use std::ffi::{c_int, c_uint, c_void};

use driver::pointer::{Answer, Ptr};
use driver::steps::{Block, Steps};
use driver::sys::*;

use super::launch::{Given, RequestedLaunch, launch};
use crate::state::with_started;

/// Remembers a step that the driver has taken.
fn step(result: CUresult, func: CUfunction, set: impl FnOnce(&mut Steps) -> Answer) -> CUresult {
    if result == CUresult::SUCCESS {
        let handle = func.expose_provenance() as u64;
        with_started(|state| {
            if state.functions.contains_key(&handle) {
                // A place that no kernel has is of no use to a launch.
                let _ = set(state.steps.entry(handle).or_default());
            }
        });
    }
    result
}

pub(crate) unsafe fn cuFuncSetBlockShape(
    real: &'static Api,
    func: CUfunction,
    x: c_int,
    y: c_int,
    z: c_int,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuFuncSetBlockShape(func, x, y, z) };
    step(result, func, |steps| steps.set_block([x, y, z]))
}

pub(crate) unsafe fn cuFuncSetSharedSize(
    real: &'static Api,
    func: CUfunction,
    bytes: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuFuncSetSharedSize(func, bytes) };
    step(result, func, |steps| {
        steps.shared = bytes;
        Ok(())
    })
}

pub(crate) unsafe fn cuParamSetSize(
    real: &'static Api,
    func: CUfunction,
    num_bytes: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuParamSetSize(func, num_bytes) };
    step(result, func, |steps| steps.set_size(num_bytes))
}

pub(crate) unsafe fn cuParamSeti(
    real: &'static Api,
    func: CUfunction,
    offset: c_int,
    value: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuParamSeti(func, offset, value) };
    step(result, func, |steps| {
        steps.set(offset, &value.to_le_bytes())
    })
}

pub(crate) unsafe fn cuParamSetf(
    real: &'static Api,
    func: CUfunction,
    offset: c_int,
    value: f32,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuParamSetf(func, offset, value) };
    step(result, func, |steps| {
        steps.set(offset, &value.to_le_bytes())
    })
}

pub(crate) unsafe fn cuParamSetv(
    real: &'static Api,
    func: CUfunction,
    offset: c_int,
    ptr: *mut c_void,
    num_bytes: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuParamSetv(func, offset, ptr, num_bytes) };
    step(result, func, |steps| {
        // SAFETY: the driver has read so many bytes.
        let given = unsafe { Ptr::new(ptr) }.bytes(num_bytes as usize)?;
        steps.set(offset, &given)
    })
}

/// Launches a function with what has been set for it; `own` is the call of the program.
///
/// # Safety
/// The handles are those of a launch.
unsafe fn launch_set(
    real: &'static Api,
    func: CUfunction,
    [width, height]: [c_int; 2],
    stream: CUstream,
    own: impl Fn() -> CUresult,
) -> CUresult {
    let handle = func.expose_provenance() as u64;
    let steps = with_started(|state| {
        let known = state.functions.contains_key(&handle);
        known.then(|| state.steps.get(&handle).cloned().unwrap_or_default())
    });
    let Some(steps) = steps.flatten() else {
        return own();
    };
    let ([gx, gy], [bx, by, bz]) = ([width as c_uint, height as c_uint], steps.block);
    let asked = RequestedLaunch {
        function: handle,
        grid: [gx, gy, 1],
        block: steps.block,
        cluster: [0; 3],
        shared: steps.shared,
        early: false,
        context: 0,
    };
    let mut block = Block::new(steps.params());
    let given = Given::of_block(&mut block);
    // SAFETY: by the contract; the block lives until the launch has been asked for.
    unsafe {
        launch(real, &asked, stream, given, |function, params, extra| {
            // Without a hidden parameter the driver knows all that it needs.
            if (Given { params, extra }) == given && function == func {
                return own();
            }
            let shared = steps.shared;
            real.cuLaunchKernel(
                function, gx, gy, 1, bx, by, bz, shared, stream, params, extra,
            )
        })
    }
}

pub(crate) unsafe fn cuLaunch(real: &'static Api, func: CUfunction) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let none = std::ptr::null_mut();
        launch_set(real, func, [1, 1], none, || real.cuLaunch(func))
    }
}

pub(crate) unsafe fn cuLaunchGrid(
    real: &'static Api,
    func: CUfunction,
    grid_width: c_int,
    grid_height: c_int,
) -> CUresult {
    let grid = [grid_width, grid_height];
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        launch_set(real, func, grid, std::ptr::null_mut(), || {
            real.cuLaunchGrid(func, grid_width, grid_height)
        })
    }
}

pub(crate) unsafe fn cuLaunchGridAsync(
    real: &'static Api,
    func: CUfunction,
    grid_width: c_int,
    grid_height: c_int,
    stream: CUstream,
) -> CUresult {
    let grid = [grid_width, grid_height];
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        launch_set(real, func, grid, stream, || {
            real.cuLaunchGridAsync(func, grid_width, grid_height, stream)
        })
    }
}
