//! Launches: what a real driver checks before it starts a kernel, and the parameter block.

use std::ffi::{c_uint, c_void};

use driver::sys::{
    CUDA_LAUNCH_PARAMS, CUfunc_st, CUlaunchConfig, CUresult, CUstream_st, launch_attribute,
};
use simt::{KernelInfo, Launch};

use crate::Answer;
use crate::device::attribute;
use crate::function::Function;
use crate::pointer::Ptr;
use crate::state::{self, State, with_context};
use crate::table::SECOND;
use crate::work::{Work, submit};
use driver::sys::device_attribute as d;

/// The sizes of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// `[1, 1, 1]` unless asked for.
    pub(crate) cluster: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
    /// It may begin before what is ahead of it in its stream has ended.
    pub(crate) programmatic: bool,
}

/// Checks a launch and packs its parameters.
pub(crate) fn prepare(
    function: u64,
    shape: &Shape,
    params: Ptr<*mut c_void>,
    extra: Ptr<*mut c_void>,
) -> Result<Work, CUresult> {
    with_context(|state, _| {
        let found = state.functions.get(function).inspect_err(|_| {
            let text = "a launch was refused, as its kernel is not loaded";
            state.engine.missed(text.to_owned());
        })?;
        let packed = check(shape, found).and_then(|()| pack(&found.info, params, extra));
        let (image, name) = (found.image, found.name.to_string_lossy().into_owned());
        let packed = match packed {
            Ok(packed) => packed,
            Err(code) => {
                let module = state.on_device(image)?;
                state
                    .engine
                    .refused(module, &name, &shape.launch(Vec::new()), code);
                return Err(code);
            }
        };
        Ok(Work::Launch(function, Box::new(shape.launch(packed))))
    })
}

impl Shape {
    /// A launch of this shape with the given parameters.
    fn launch(&self, parameters: Vec<u8>) -> Launch {
        let mut launch = Launch::new(self.grid, self.block, parameters);
        launch.cluster = self.cluster;
        launch.dynamic_shared = self.shared;
        launch.cooperative = self.cooperative;
        launch.programmatic = self.programmatic;
        launch
    }
}

fn check(shape: &Shape, function: &Function) -> Answer {
    let bad = Err(CUresult::INVALID_VALUE);
    let within = |sizes: [u32; 3], limits: [i32; 3]| {
        let limits = limits.map(attribute);
        sizes
            .iter()
            .zip(limits)
            .all(|(&size, limit)| (1..=limit as u32).contains(&size))
    };
    let threads: u64 = shape.block.iter().map(|&size| u64::from(size)).product();
    let info = &function.info;
    if !within(
        shape.grid,
        [d::MAX_GRID_DIM_X, d::MAX_GRID_DIM_Y, d::MAX_GRID_DIM_Z],
    ) || !within(
        shape.block,
        [d::MAX_BLOCK_DIM_X, d::MAX_BLOCK_DIM_Y, d::MAX_BLOCK_DIM_Z],
    ) || threads > attribute(d::MAX_THREADS_PER_BLOCK) as u64
        || threads > u64::from(info.max_threads)
        || info
            .required_block
            .is_some_and(|required| required != shape.block)
        || i64::from(shape.shared) > i64::from(function.max_dynamic)
    {
        return bad;
    }
    let cluster = match shape.cluster {
        [1, 1, 1] => info.cluster.unwrap_or([1; 3]),
        asked => asked,
    };
    let most = if function.large_clusters() { 16 } else { 8 };
    let ctas: u64 = cluster.iter().map(|&size| u64::from(size)).product();
    let divides = |(&grid, &cluster): (&u32, &u32)| cluster != 0 && grid % cluster == 0;
    let fits = ctas <= most && shape.grid.iter().zip(&cluster).all(divides);
    let agrees = info.cluster.is_none_or(|required| required == cluster);
    if !fits || !agrees {
        return Err(CUresult::INVALID_CLUSTER_SIZE);
    }
    Ok(())
}

/// Lays the parameters out as the kernel wants them.
fn pack(
    info: &KernelInfo,
    params: Ptr<*mut c_void>,
    extra: Ptr<*mut c_void>,
) -> Result<Vec<u8>, CUresult> {
    let mut block = vec![0; info.param_bytes as usize];
    match (params.is_null(), extra.is_null()) {
        (false, false) => return Err(CUresult::INVALID_VALUE),
        (false, true) => {
            for (index, param) in info.params.iter().enumerate() {
                let start = param.offset as usize;
                let bytes = block.get_mut(start..start + param.bytes as usize);
                params
                    .at(index)
                    .follow()?
                    .read(bytes.ok_or(CUresult::INVALID_VALUE)?)?;
            }
        }
        (true, false) => {
            let given = extra.launch_buffer()?;
            // Programs may leave out the padding behind the last parameter.
            let needed = info
                .params
                .iter()
                .map(|param| param.offset + param.bytes)
                .max();
            if given.len() < needed.unwrap_or(0) as usize {
                return Err(CUresult::INVALID_VALUE);
            }
            let count = given.len().min(block.len());
            block[..count].copy_from_slice(&given[..count]);
        }
        (true, true) if info.params.is_empty() => {}
        (true, true) => return Err(CUresult::INVALID_VALUE),
    }
    Ok(block)
}

/// Launches into a stream. A kernel of a library runs in the stream's context, whichever is current.
fn launch(
    stream: u64,
    function: u64,
    shape: &Shape,
    params: Ptr<*mut c_void>,
    extra: Ptr<*mut c_void>,
) -> Answer {
    runtime::host_calls::ask_python();
    let go = || submit(stream, prepare(function, shape, params, extra)?);
    match state::with(|state| Ok(state.context_of(stream, function)))? {
        None => go(),
        Some(context) => {
            state::push(context)?;
            let result = go();
            state::pop();
            result
        }
    }
}

impl State {
    /// The context that a launch brings with it, where that is not the current one.
    fn context_of(&self, stream: u64, function: u64) -> Option<u64> {
        let module = self.functions.get(function).ok()?.module;
        let library = self.modules.get(module).ok()?.library;
        if library.is_none() || function & SECOND != 0 {
            return None;
        }
        // The default streams are those of the current context.
        let context = self.streams.get(stream).ok()?.context;
        (state::current() != Some(context)).then_some(context)
    }
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) fn cuLaunchKernel(
    func: Ptr<CUfunc_st>,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: Ptr<CUstream_st>,
    params: Ptr<*mut c_void>,
    extra: Ptr<*mut c_void>,
) -> Answer {
    let shape = Shape {
        grid: [grid_x, grid_y, grid_z],
        block: [block_x, block_y, block_z],
        cluster: [1; 3],
        shared,
        cooperative: false,
        programmatic: false,
    };
    launch(stream.address(), func.address(), &shape, params, extra)
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) fn cuLaunchCooperativeKernel(
    func: Ptr<CUfunc_st>,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: Ptr<CUstream_st>,
    params: Ptr<*mut c_void>,
) -> Answer {
    let shape = Shape {
        grid: [grid_x, grid_y, grid_z],
        block: [block_x, block_y, block_z],
        cluster: [1; 3],
        shared,
        cooperative: true,
        programmatic: false,
    };
    let none = Ptr::NULL;
    launch(stream.address(), func.address(), &shape, params, none)
}

/// There is one device, and each launch wants one of its own.
pub(crate) fn cuLaunchCooperativeKernelMultiDevice(
    list: Ptr<CUDA_LAUNCH_PARAMS>,
    count: c_uint,
    flags: c_uint,
) -> Answer {
    let one = list.get()?;
    // Not the legacy default stream, which no name is either.
    if count != 1 || flags > 3 || one.stream.addr() <= 1 {
        return Err(CUresult::INVALID_VALUE);
    }
    let shape = Shape {
        grid: [one.grid_dim_x, one.grid_dim_y, one.grid_dim_z],
        block: [one.block_dim_x, one.block_dim_y, one.block_dim_z],
        cluster: [1; 3],
        shared: one.shared_mem_bytes,
        cooperative: true,
        programmatic: false,
    };
    // SAFETY: the array is part of what the caller of the entry point promises.
    let params = unsafe { Ptr::new(one.kernel_params) };
    let work = prepare(one.function.addr() as u64, &shape, params, Ptr::NULL)?;
    runtime::host_calls::ask_python();
    submit(one.stream.addr() as u64, work)
}

/// The shape that a configuration asks for. Attributes that are about speed do nothing here.
pub(crate) fn shape(config: &CUlaunchConfig) -> Result<Shape, CUresult> {
    let mut shape = Shape {
        grid: [config.grid_dim_x, config.grid_dim_y, config.grid_dim_z],
        block: [config.block_dim_x, config.block_dim_y, config.block_dim_z],
        cluster: [1; 3],
        shared: config.shared_mem_bytes,
        cooperative: false,
        programmatic: false,
    };
    // SAFETY: the attributes are part of what the caller of the entry point promises.
    let attributes = unsafe { Ptr::new(config.attrs) };
    for index in 0..config.num_attrs as usize {
        let attribute = attributes.at(index).get()?;
        let low = attribute.value[0] as u32;
        match attribute.id {
            launch_attribute::COOPERATIVE => shape.cooperative = low != 0,
            launch_attribute::CLUSTER_DIMENSION => {
                let high = (attribute.value[0] >> 32) as u32;
                shape.cluster = [low, high, attribute.value[1] as u32];
            }
            launch_attribute::PROGRAMMATIC_STREAM_SERIALIZATION => shape.programmatic = low != 0,
            launch_attribute::DEVICE_UPDATABLE_KERNEL_NODE if low != 0 => {
                return Err(CUresult::NOT_SUPPORTED);
            }
            _ => {}
        }
    }
    Ok(shape)
}

pub(crate) fn cuLaunchKernelEx(
    config: Ptr<CUlaunchConfig>,
    func: Ptr<CUfunc_st>,
    params: Ptr<*mut c_void>,
    extra: Ptr<*mut c_void>,
) -> Answer {
    let config = config.get()?;
    let stream = config.stream.addr() as u64;
    launch(stream, func.address(), &shape(&config)?, params, extra)
}
