//! Functions and kernels: two handles for one thing, because the device has one context's worth of them.

use std::ffi::{CString, c_char, c_int};

use driver::steps::Steps;
use driver::sys::function_attribute as f;
use driver::sys::{
    CUdevice, CUfunc_cache, CUfunc_st, CUfunction, CUfunction_attribute, CUkern_st, CUlibrary,
    CUmodule, CUresult, CUsharedconfig,
};
use simt::KernelInfo;

use crate::Answer;
use crate::device::ARCHITECTURE;
use crate::missing::ignored;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::{SECOND, set};

/// Dynamic shared memory a kernel may have unless it asks for more.
const DYNAMIC_SHARED: i32 = 48 << 10;
/// Shared memory a kernel may have at most, static and dynamic.
const SHARED: u32 = 232_448;

/// A kernel that can be launched.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) module: u64,
    pub(crate) image: u64,
    pub(crate) name: CString,
    pub(crate) info: KernelInfo,
    /// Dynamic shared memory a launch may ask for, in bytes.
    pub(crate) max_dynamic: i32,
    carveout: i32,
    non_portable_cluster: i32,
    cluster_policy: i32,
    /// What is set for launches in steps.
    pub(crate) steps: Steps,
}

impl Function {
    pub(crate) fn new(module: u64, image: u64, name: &str, info: KernelInfo) -> Function {
        Function {
            module,
            image,
            name: CString::new(name).unwrap_or_default(),
            max_dynamic: DYNAMIC_SHARED
                .saturating_sub_unsigned(info.static_shared)
                .max(0),
            info,
            carveout: -1,
            non_portable_cluster: 0,
            cluster_policy: 0,
            steps: Steps::default(),
        }
    }

    fn attribute(&self, id: CUfunction_attribute) -> Result<c_int, CUresult> {
        let info = &self.info;
        let cluster = |axis: usize| info.cluster.map_or(0, |cluster| cluster[axis] as c_int);
        Ok(match id {
            f::MAX_THREADS_PER_BLOCK => info.max_threads as c_int,
            f::SHARED_SIZE_BYTES => info.static_shared as c_int,
            f::CONST_SIZE_BYTES => info.const_bytes as c_int,
            f::LOCAL_SIZE_BYTES => info.local_bytes as c_int,
            f::NUM_REGS => info.registers as c_int,
            // CUB chooses its kernels by this number.
            f::PTX_VERSION => info.architecture as c_int,
            f::BINARY_VERSION => ARCHITECTURE as c_int,
            f::CACHE_MODE_CA => 0,
            f::MAX_DYNAMIC_SHARED_SIZE_BYTES => self.max_dynamic,
            f::PREFERRED_SHARED_MEMORY_CARVEOUT => self.carveout,
            f::CLUSTER_SIZE_MUST_BE_SET => c_int::from(info.cluster.is_some()),
            f::REQUIRED_CLUSTER_WIDTH => cluster(0),
            f::REQUIRED_CLUSTER_HEIGHT => cluster(1),
            f::REQUIRED_CLUSTER_DEPTH => cluster(2),
            f::NON_PORTABLE_CLUSTER_SIZE_ALLOWED => self.non_portable_cluster,
            f::CLUSTER_SCHEDULING_POLICY_PREFERENCE => self.cluster_policy,
            _ => return Err(CUresult::INVALID_VALUE),
        })
    }

    fn set_attribute(&mut self, id: CUfunction_attribute, value: c_int) -> Answer {
        let room = SHARED.saturating_sub(self.info.static_shared) as c_int;
        match id {
            f::MAX_DYNAMIC_SHARED_SIZE_BYTES if (0..=room).contains(&value) => {
                self.max_dynamic = value;
            }
            f::PREFERRED_SHARED_MEMORY_CARVEOUT if (-1..=100).contains(&value) => {
                self.carveout = value;
            }
            f::NON_PORTABLE_CLUSTER_SIZE_ALLOWED => self.non_portable_cluster = value,
            f::CLUSTER_SCHEDULING_POLICY_PREFERENCE => self.cluster_policy = value,
            f::REQUIRED_CLUSTER_WIDTH | f::REQUIRED_CLUSTER_HEIGHT | f::REQUIRED_CLUSTER_DEPTH => {
                return Err(CUresult::NOT_SUPPORTED);
            }
            _ => return Err(CUresult::INVALID_VALUE),
        }
        Ok(())
    }

    /// Whether launches of it may have up to 16 CTAs in a cluster instead of 8.
    pub(crate) fn large_clusters(&self) -> bool {
        self.non_portable_cluster != 0
    }

    fn param(&self, index: usize) -> Result<(usize, usize), CUresult> {
        let param = self.info.params.get(index).ok_or(CUresult::INVALID_VALUE)?;
        Ok((param.offset as usize, param.bytes as usize))
    }
}

impl State {
    /// The function that a context has of a kernel; a function that is no library's is its own.
    pub(crate) fn function_of(&self, kernel: u64) -> Result<u64, CUresult> {
        let module = self.functions.get(kernel)?.module;
        Ok(match self.modules.get(module)?.library {
            Some(_) => kernel | SECOND,
            None => kernel,
        })
    }
}

fn name(state: &State, function: u64, name: Ptr<*const c_char>) -> Answer {
    name.set(state.functions.get(function)?.name.as_ptr())
}

fn param_info(function: u64, index: usize, offset: Ptr<usize>, size: Ptr<usize>) -> Answer {
    let (at, bytes) = with(|state| state.functions.get(function)?.param(index))?;
    offset.set(at)?;
    size.set_if(bytes);
    Ok(())
}

pub(crate) fn cuKernelGetFunction(out: Ptr<CUfunction>, kernel: Ptr<CUkern_st>) -> Answer {
    let kernel = kernel.address();
    set(out, with_context(|state, _| state.function_of(kernel))?)
}

pub(crate) fn cuKernelGetLibrary(out: Ptr<CUlibrary>, kernel: Ptr<CUkern_st>) -> Answer {
    let library = with(|state| {
        let module = state.functions.get(kernel.address())?.module;
        state
            .modules
            .get(module)?
            .library
            .ok_or(CUresult::INVALID_HANDLE)
    })?;
    set(out, library)
}

pub(crate) fn cuKernelGetAttribute(
    value: Ptr<c_int>,
    attrib: CUfunction_attribute,
    kernel: Ptr<CUkern_st>,
    dev: CUdevice,
) -> Answer {
    crate::device::check(dev)?;
    cuFuncGetAttribute(value, attrib, kernel.cast())
}

pub(crate) fn cuKernelSetAttribute(
    attrib: CUfunction_attribute,
    value: c_int,
    kernel: Ptr<CUkern_st>,
    dev: CUdevice,
) -> Answer {
    crate::device::check(dev)?;
    cuFuncSetAttribute(kernel.cast(), attrib, value)
}

pub(crate) fn cuKernelSetCacheConfig(
    kernel: Ptr<CUkern_st>,
    config: CUfunc_cache,
    dev: CUdevice,
) -> Answer {
    ignored("there is no cache");
    crate::device::check(dev)?;
    cuFuncSetCacheConfig(kernel.cast(), config)
}

pub(crate) fn cuKernelGetName(out: Ptr<*const c_char>, kernel: Ptr<CUkern_st>) -> Answer {
    with(|state| name(state, kernel.address(), out))
}

pub(crate) fn cuKernelGetParamInfo(
    kernel: Ptr<CUkern_st>,
    index: usize,
    offset: Ptr<usize>,
    size: Ptr<usize>,
) -> Answer {
    param_info(kernel.address(), index, offset, size)
}

pub(crate) fn cuFuncGetAttribute(
    value: Ptr<c_int>,
    attrib: CUfunction_attribute,
    func: Ptr<CUfunc_st>,
) -> Answer {
    value.set(with(|state| {
        state.functions.get(func.address())?.attribute(attrib)
    })?)
}

pub(crate) fn cuFuncSetAttribute(
    func: Ptr<CUfunc_st>,
    attrib: CUfunction_attribute,
    value: c_int,
) -> Answer {
    with(|state| {
        state
            .functions
            .get_mut(func.address())?
            .set_attribute(attrib, value)
    })
}

pub(crate) fn cuFuncSetCacheConfig(func: Ptr<CUfunc_st>, _config: CUfunc_cache) -> Answer {
    ignored("there is no cache");
    with(|state| state.functions.get(func.address()).map(drop))
}

pub(crate) fn cuFuncSetSharedMemConfig(func: Ptr<CUfunc_st>, _config: CUsharedconfig) -> Answer {
    ignored("banks cost nothing");
    with(|state| state.functions.get(func.address()).map(drop))
}

pub(crate) fn cuFuncGetModule(out: Ptr<CUmodule>, func: Ptr<CUfunc_st>) -> Answer {
    set(
        out,
        with(|state| Ok(state.functions.get(func.address())?.module))?,
    )
}

pub(crate) fn cuFuncGetName(out: Ptr<*const c_char>, func: Ptr<CUfunc_st>) -> Answer {
    with(|state| name(state, func.address(), out))
}

pub(crate) fn cuFuncGetParamInfo(
    func: Ptr<CUfunc_st>,
    index: usize,
    offset: Ptr<usize>,
    size: Ptr<usize>,
) -> Answer {
    param_info(func.address(), index, offset, size)
}

pub(crate) fn cuFuncIsLoaded(loaded: Ptr<c_int>, func: Ptr<CUfunc_st>) -> Answer {
    with(|state| state.functions.get(func.address()).map(drop))?;
    loaded.set(1)
}

pub(crate) fn cuFuncLoad(func: Ptr<CUfunc_st>) -> Answer {
    with(|state| state.functions.get(func.address()).map(drop))
}
