//! The table of hooked functions.
//!
//! To hook a function, add its name in `driver::entry_points!` to the table below, and write
//! `hooks::NAME`: a function with the arguments of that row, after `real`, the driver to call.
//!
//! ```text
//! cuMemAlloc,                                                          // a line of the table
//!
//! pub(crate) unsafe fn cuMemAlloc(real: &'static Api, dptr: *mut CUdeviceptr, bytes: usize) -> CUresult {
//!     unsafe { real.cuMemAlloc(dptr, bytes) }
//! }
//! ```
//! The hook then stands for every symbol of the row, wherever a program gets it from: linked, by
//! `dlsym`, or by `cuGetProcAddress`. `real` calls the same variant as the program did, for the
//! legacy default stream or for one per thread.
//!
//! A hook may panic: if it has not called the driver yet, the program's call is passed on as it
//! is; if it has, nobody knows what has been done, and the program gets `CUDA_ERROR_UNKNOWN`.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use driver::sys::*;

use crate::resolve::{self, Real};
use runtime::progress;

macro_rules! table {
    ($($name:ident,)*) => {
        /// The rows of `driver::entry_points!` that are hooked.
        pub(crate) static NAMES: &[&str] = &[$(stringify!($name)),*];

        /// What a call of each entry point does: a hook hides the function that only passes it on.
        mod chosen {
            #[allow(unused_imports, reason = "a library whose every function is hooked needs none")]
            pub(super) use super::passed_on::*;
            $(pub(super) use crate::hooks::$name;)*
        }
    };
}

table! {
    cuGetProcAddress_v1,
    cuGetProcAddress,
    // loads and look-ups
    cuModuleLoad,
    cuModuleLoadData,
    cuModuleLoadDataEx,
    cuModuleLoadFatBinary,
    cuModuleUnload,
    cuModuleGetFunction,
    cuModuleGetFunctionCount,
    cuModuleEnumerateFunctions,
    cuLibraryLoadData,
    cuLibraryLoadFromFile,
    cuLibraryUnload,
    cuLibraryGetKernel,
    cuLibraryGetKernelCount,
    cuLibraryEnumerateKernels,
    cuLibraryGetModule,
    cuFuncGetModule,
    cuKernelGetFunction,
    cuKernelGetParamInfo,
    cuFuncGetParamInfo,
    cuFuncSetAttribute,
    cuKernelSetAttribute,
    cuFuncSetCacheConfig,
    cuFuncSetSharedMemConfig,
    cuKernelSetCacheConfig,
    cuFuncGetAttribute,
    cuKernelGetAttribute,
    cuOccupancyMaxActiveBlocksPerMultiprocessor,
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    cuOccupancyMaxPotentialBlockSize,
    cuOccupancyMaxPotentialBlockSizeWithFlags,
    cuOccupancyAvailableDynamicSMemPerBlock,
    cuOccupancyMaxPotentialClusterSize,
    cuOccupancyMaxActiveClusters,
    cuLinkAddData,
    cuLinkAddFile,
    cuLinkComplete,
    cuLinkDestroy,
    // launches
    cuLaunchKernel,
    cuLaunchKernelEx,
    cuLaunchCooperativeKernel,
    cuLaunchCooperativeKernelMultiDevice,
    cuFuncSetBlockShape,
    cuFuncSetSharedSize,
    cuParamSetSize,
    cuParamSeti,
    cuParamSetf,
    cuParamSetv,
    cuLaunch,
    cuLaunchGrid,
    cuLaunchGridAsync,
    // graphs
    cuStreamBeginCapture_v1,
    cuStreamBeginCapture,
    cuStreamBeginCaptureToGraph,
    cuGraphAddKernelNode_v1,
    cuGraphAddKernelNode,
    cuGraphAddNode_v1,
    cuGraphAddNode,
    cuGraphAddChildGraphNode,
    cuGraphAddMemAllocNode,
    cuGraphKernelNodeSetParams_v1,
    cuGraphKernelNodeSetParams,
    cuGraphNodeSetParams,
    cuGraphInstantiate_v1,
    cuGraphInstantiate_v2,
    cuGraphInstantiateWithFlags,
    cuGraphInstantiateWithParams,
    cuGraphExecUpdate_v1,
    cuGraphExecUpdate,
    cuGraphExecKernelNodeSetParams_v1,
    cuGraphExecKernelNodeSetParams,
    cuGraphExecNodeSetParams,
    cuGraphExecChildGraphNodeSetParams,
    cuGraphNodeSetEnabled,
    cuGraphLaunch,
    cuGraphExecDestroy,
    // memory
    cuMemAlloc,
    cuMemAllocPitch,
    cuMemAllocManaged,
    cuMemAllocAsync,
    cuMemAllocFromPoolAsync,
    cuMemAllocHost,
    cuMemHostAlloc,
    cuMemHostRegister,
    cuMemFree,
    cuMemFreeAsync,
    cuMemFreeHost,
    cuMemHostUnregister,
    cuMemCreate,
    cuMemRetainAllocationHandle,
    cuMemRelease,
    cuMemMap,
    cuMemUnmap,
    cuArrayCreate,
    cuArray3DCreate,
    cuMipmappedArrayCreate,
    // waiting, and the end of contexts
    cuCtxSynchronize,
    cuCtxSynchronize_v2,
    cuStreamSynchronize,
    cuEventSynchronize,
    cuMemcpyDtoH,
    cuCtxDestroy,
    cuCtxAttach,
    cuCtxDetach,
    cuDevicePrimaryCtxRetain,
    cuDevicePrimaryCtxRelease,
    cuDevicePrimaryCtxReset,
    cuCtxSetLimit,
    cuCtxGetLimit,
}

macro_rules! functions {
    ($($name:ident: $base:ident $since:literal [$first:ident $(, $second:ident)?] $args:tt;)*) => {
        /// Entry points that only call the driver, all of them.
        mod passed_on {
            use super::*;
            $(pass_on! { $name $args })*
        }

        /// What C calls, one function per symbol of the table of entry points.
        mod exported {
            use super::*;
            $(
                export! { $first $name legacy $args }
                $(export! { $second $name per_thread $args })?
            )*
        }

        /// The function that stands for a symbol when its entry point is hooked.
        pub(crate) fn address(symbol: &str) -> Option<*const c_void> {
            match symbol {
                $(
                    stringify!($first) => Some(exported::$first as *const c_void),
                    $(stringify!($second) => Some(exported::$second as *const c_void),)?
                )*
                _ => None,
            }
        }
    };
}

macro_rules! pass_on {
    ($name:ident ($($arg:ident: $ty:ty),*)) => {
        #[allow(dead_code, reason = "a hook may hide it")]
        #[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
        pub(super) unsafe fn $name(real: &'static Api, $($arg: $ty),*) -> CUresult {
            // SAFETY: the caller keeps the conditions of the C function.
            unsafe { real.$name($($arg),*) }
        }
    };
}

macro_rules! export {
    ($symbol:ident $name:ident $streams:ident ($($arg:ident: $ty:ty),*)) => {
        #[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
        pub(super) unsafe extern "C" fn $symbol($($arg: $ty),*) -> CUresult {
            entry(
                stringify!($symbol),
                $streams,
                // SAFETY: the caller keeps the conditions of the C function.
                |real| unsafe { chosen::$name(real, $($arg),*) },
                // SAFETY: as above; the hook has not called it.
                |real| unsafe { real.$name($($arg),*) },
            )
        }
    };
}

driver::entry_points!(functions);

fn legacy(real: &'static Real) -> &'static Api {
    &real.api
}

fn per_thread(real: &'static Real) -> &'static Api {
    &real.per_thread
}

/// Calls a hook, and lets no panic of it cross into C.
fn entry(
    symbol: &str,
    streams: fn(&'static Real) -> &'static Api,
    hook: impl FnOnce(&'static Api) -> CUresult,
    pass_on: impl FnOnce(&'static Api) -> CUresult,
) -> CUresult {
    // A program has our address from a filled slot or from a hook, so the driver is there.
    let Some(real) = resolve::real().map(streams) else {
        return CUresult::SYSTEM_NOT_READY;
    };
    guarded(symbol, real, hook, pass_on)
}

/// The part of [`entry`] that needs no driver of the process.
fn guarded<R: Copy>(
    symbol: &str,
    real: R,
    hook: impl FnOnce(R) -> CUresult,
    pass_on: impl FnOnce(R) -> CUresult,
) -> CUresult {
    let before = calls_of_this_thread();
    match catch_unwind(AssertUnwindSafe(|| hook(real))) {
        Ok(result) => result,
        Err(_) if calls_of_this_thread() == before => {
            progress::say_missed(&format!(
                "a call of {symbol} is not watched: our hook failed"
            ));
            pass_on(real)
        }
        Err(_) => {
            progress::say_missed(&format!(
                "our hook of {symbol} failed while the driver was at work"
            ));
            CUresult::UNKNOWN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hook_is_an_entry_point_with_functions_of_its_own() {
        let mut addresses = Vec::new();
        for name in NAMES {
            let row = ENTRY_POINTS.iter().find(|row| row.name == *name);
            for symbol in row.expect(name).symbols {
                assert!(FUNCTION_NAMES.contains(symbol), "{symbol}");
                addresses.push(address(symbol).expect(symbol));
            }
        }
        let all = addresses.len();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), all);
    }

    #[test]
    fn a_hook_that_panics_is_passed_over_unless_the_driver_was_called() {
        let code = |hook: fn(()) -> CUresult| guarded("cuTest", (), hook, |()| CUresult::NO_DEVICE);
        assert_eq!(code(|()| CUresult::SUCCESS), CUresult::SUCCESS);
        assert_eq!(
            code(|()| panic!("before the driver is called")),
            CUresult::NO_DEVICE
        );
        let late = |()| {
            count_call();
            panic!("after the driver was called")
        };
        assert_eq!(code(late), CUresult::UNKNOWN);
    }
}
