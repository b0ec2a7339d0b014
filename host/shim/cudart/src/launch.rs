//! Launches.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use driver::sys::{CUfunction, CUkernel, CUlaunchAttribute, CUlaunchConfig, CUstream};

use crate::context::context;
use crate::entry::entry;
use crate::error::{Error, check};
use crate::registration;

/// `dim3`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// `cudaLaunchConfig_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    dynamic_shared: usize,
    stream: CUstream,
    attributes: *mut CUlaunchAttribute,
    attribute_count: c_uint,
}

/// What `<<<…>>>` says of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pushed {
    grid: Dim3,
    block: Dim3,
    dynamic_shared: usize,
    stream: CUstream,
}

/// How many launches may be nested in each other's arguments.
const DEPTH: usize = 16;

/// Configurations that no host stub has taken yet, innermost first.
///
/// `f<<<…>>>(g())` pushes before `g` runs, so a launch inside `g` pushes a second one.
#[derive(Clone, Copy)]
struct Stack([Option<Pushed>; DEPTH]);

impl Stack {
    const EMPTY: Stack = Stack([None; DEPTH]);

    /// Where there is no room the outermost goes: an argument that threw left it behind.
    fn push(mut self, pushed: Pushed) -> Stack {
        self.0.rotate_right(1);
        self.0[0] = Some(pushed);
        self
    }

    fn pop(mut self) -> (Stack, Option<Pushed>) {
        let top = self.0[0].take();
        self.0.rotate_left(1);
        (self, top)
    }
}

thread_local! {
    /// What `<<<…>>>` says, until the host stub takes it. No destructor: programs launch while
    /// they exit.
    static PUSHED: Cell<Stack> = const { Cell::new(Stack::EMPTY) };
}

/// Keeps a launch configuration for the host stub; 0 is success.
///
/// # Safety
/// Takes values only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    dynamic_shared: usize,
    stream: CUstream,
) -> c_uint {
    let pushed = Pushed {
        grid,
        block,
        dynamic_shared,
        stream,
    };
    PUSHED.set(PUSHED.get().push(pushed));
    0
}

entry! {
    fn __cudaPopCallConfiguration(
        grid: *mut Dim3, block: *mut Dim3, dynamic_shared: *mut usize, stream: *mut CUstream
    ) {
        let (rest, pushed) = PUSHED.get().pop();
        PUSHED.set(rest);
        let pushed = pushed.ok_or(Error::MISSING_CONFIGURATION)?;
        (*grid, *block) = (pushed.grid, pushed.block);
        (*dynamic_shared, *stream) = (pushed.dynamic_shared, pushed.stream);
        Ok(())
    }

    fn __cudaGetKernel(kernel: *mut CUkernel, host: *const c_void) {
        *kernel = registration::kernel(host)?;
        Ok(())
    }

    fn cudaGetKernel(kernel: *mut CUkernel, host: *const c_void) {
        *kernel = registration::kernel(host)?;
        Ok(())
    }

    fn cudaGetFuncBySymbol(function: *mut CUfunction, host: *const c_void) {
        check(context()?.cuKernelGetFunction(function, registration::kernel(host)?))
    }

    fn __cudaLaunchKernel(
        kernel: CUkernel, grid: Dim3, block: Dim3, arguments: *mut *mut c_void,
        dynamic_shared: usize, stream: CUstream
    ) as __cudaLaunchKernel_ptsz {
        launch(kernel, grid, block, arguments, dynamic_shared, stream, false)
    }

    fn cudaLaunchKernel(
        host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut *mut c_void,
        dynamic_shared: usize, stream: CUstream
    ) as cudaLaunchKernel_ptsz {
        launch(registration::kernel(host)?, grid, block, arguments, dynamic_shared, stream, false)
    }

    fn cudaLaunchCooperativeKernel(
        host: *const c_void, grid: Dim3, block: Dim3, arguments: *mut *mut c_void,
        dynamic_shared: usize, stream: CUstream
    ) as cudaLaunchCooperativeKernel_ptsz {
        launch(registration::kernel(host)?, grid, block, arguments, dynamic_shared, stream, true)
    }

    fn cudaLaunchKernelExC(
        config: *const LaunchConfig, host: *const c_void, arguments: *mut *mut c_void
    ) as cudaLaunchKernelExC_ptsz {
        let config = config.as_ref().ok_or(Error::INVALID_VALUE)?;
        let (grid, block) = (config.grid, config.block);
        let config = of_config(config)?;
        let function = registration::kernel(host)? as CUfunction;
        let launched = check(context()?.cuLaunchKernelEx(&config, function, arguments, null_mut()));
        launched.map_err(|error| refusal(grid, block, error))
    }

    fn cudaLaunchHostFunc(
        stream: CUstream, function: driver::sys::CUhostFn, data: *mut c_void
    ) as cudaLaunchHostFunc_ptsz {
        check(context()?.cuLaunchHostFunc(stream, function, data))
    }
}

/// The driver's description of a launch.
pub(crate) fn of_config(config: &LaunchConfig) -> Result<CUlaunchConfig, Error> {
    Ok(CUlaunchConfig {
        grid_dim_x: config.grid.x,
        grid_dim_y: config.grid.y,
        grid_dim_z: config.grid.z,
        block_dim_x: config.block.x,
        block_dim_y: config.block.y,
        block_dim_z: config.block.z,
        shared_mem_bytes: shared(config.dynamic_shared)?,
        stream: config.stream,
        attrs: config.attributes,
        num_attrs: config.attribute_count,
    })
}

unsafe fn launch(
    kernel: CUkernel,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    dynamic_shared: usize,
    stream: CUstream,
    cooperative: bool,
) -> Result<(), Error> {
    let api = context()?;
    // A driver takes a kernel where it takes a function.
    let function = kernel as CUfunction;
    let shared = shared(dynamic_shared)?;
    // SAFETY: the kernel is loaded; the caller's arguments fit its parameters.
    let launched = check(unsafe {
        if cooperative {
            api.cuLaunchCooperativeKernel(
                function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream,
                arguments,
            )
        } else {
            api.cuLaunchKernel(
                function,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                shared,
                stream,
                arguments,
                null_mut(),
            )
        }
    });
    launched.map_err(|error| refusal(grid, block, error))
}

/// The error of a launch that the driver has refused: sizes that no device accepts are a configuration error in the
/// runtime API.
fn refusal(grid: Dim3, block: Dim3, error: Error) -> Error {
    let zero = [grid.x, grid.y, grid.z, block.x, block.y, block.z].contains(&0);
    let threads = u64::from(block.x) * u64::from(block.y) * u64::from(block.z);
    let large = threads > 1024 || block.z > 64 || grid.y > 65535 || grid.z > 65535;
    match zero || large || grid.x > c_int::MAX as c_uint {
        true => Error::INVALID_CONFIGURATION,
        false => error,
    }
}

fn shared(bytes: usize) -> Result<c_uint, Error> {
    c_uint::try_from(bytes).map_err(|_| Error::INVALID_VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(x: c_uint) -> Pushed {
        let size = Dim3 { x, y: 1, z: 1 };
        Pushed {
            grid: size,
            block: size,
            dynamic_shared: 0,
            stream: null_mut(),
        }
    }

    #[test]
    fn a_launch_inside_an_argument_leaves_the_outer_one_alone() {
        let stack = Stack::EMPTY.push(of(1)).push(of(2));
        let (stack, inner) = stack.pop();
        let (stack, outer) = stack.pop();
        assert_eq!((inner, outer), (Some(of(2)), Some(of(1))));
        assert_eq!(stack.pop().1, None);
    }

    #[test]
    fn a_full_stack_loses_the_outermost() {
        let full = (0..=DEPTH as c_uint).fold(Stack::EMPTY, |stack, x| stack.push(of(x)));
        let mut stack = full;
        for x in (1..=DEPTH as c_uint).rev() {
            let (rest, top) = stack.pop();
            assert_eq!(top, Some(of(x)));
            stack = rest;
        }
        assert_eq!(stack.pop().1, None);
    }
}
