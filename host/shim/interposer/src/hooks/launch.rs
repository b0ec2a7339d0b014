//! Launches in every form: each gets the hidden parameter, and is followed by the session.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use driver::gpu;
use driver::pointer::Ptr;
use driver::steps::Block;
use driver::sys::*;
use runtime::Extent;
use runtime::backend::{Backend, with_hidden};
use runtime::progress;
use runtime::session::{ArmedLaunch, Kernel};

use super::backend::Driver;
use crate::resolve;
use crate::state::{Function, State, current, with_started};

/// A launch as the program asks for it.
#[derive(Clone, Copy)]
pub(super) struct RequestedLaunch {
    /// Handle of the function or kernel.
    pub(super) function: u64,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    /// Zeroes unless the call says.
    pub(super) cluster: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub(super) shared: u32,
    /// It may start before what is ahead of it in its stream has ended.
    pub(super) early: bool,
    /// Handle of the context that the call says; 0 for the current one.
    pub(super) context: u64,
}

/// The parameters of a launch with the hidden one behind them. The driver reads them during the call.
pub(super) struct Params {
    hidden: Box<u64>,
    pointers: Vec<*mut c_void>,
    block: Option<Box<Block>>,
}

impl Params {
    /// Puts `hidden` behind the program's parameters.
    ///
    /// # Safety
    /// `given` is what a launch of the function takes.
    ///
    /// # Errors
    /// When they make no sense: the driver will say so too.
    pub(super) unsafe fn new(
        function: &Function,
        hidden: u64,
        Given { params, extra }: Given,
    ) -> Result<Box<Params>, CUresult> {
        let mut made = Box::new(Params {
            hidden: Box::new(hidden),
            pointers: Vec::new(),
            block: None,
        });
        if !params.is_null() || extra.is_null() {
            if params.is_null() && !function.params.is_empty() {
                return Err(CUresult::INVALID_VALUE);
            }
            for index in 0..function.params.len() {
                // SAFETY: there is a pointer for every parameter.
                made.pointers.push(unsafe { params.add(index).read() });
            }
            let hidden: *mut u64 = &mut *made.hidden;
            made.pointers.push(hidden.cast());
            return Ok(made);
        }
        // SAFETY: by the contract.
        let block = unsafe { Ptr::new(extra) }.launch_buffer()?;
        let offset = function.hidden.unwrap_or(0);
        made.block = Some(Block::new(with_hidden(block, offset, hidden)));
        Ok(made)
    }

    /// The two arguments of the driver's call.
    pub(super) fn arguments(&mut self) -> Given {
        match &mut self.block {
            Some(block) => Given::of_block(block),
            None => Given {
                params: self.pointers.as_mut_ptr(),
                extra: std::ptr::null_mut(),
            },
        }
    }
}

/// The arguments of a launch that say its parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Given {
    /// One pointer for each parameter.
    pub(super) params: *mut *mut c_void,
    /// A block of all parameters.
    pub(super) extra: *mut *mut c_void,
}

impl Given {
    /// As a node of a graph has them.
    pub(super) fn of_node(node: &CUDA_KERNEL_NODE_PARAMS) -> Given {
        Given {
            params: node.kernel_params,
            extra: node.extra,
        }
    }

    /// All parameters in a block, for as long as it lives.
    pub(super) fn of_block(block: &mut Block) -> Given {
        Given {
            params: std::ptr::null_mut(),
            extra: block.extra(),
        }
    }
}

/// Parameters that are not known.
pub(super) const UNKNOWN: Given = Given {
    params: std::ptr::null_mut(),
    extra: std::ptr::null_mut(),
};

/// The parameters as the kernel gets them, without the hidden one; none where they cannot be read.
///
/// # Safety
/// `given` is what a launch of the function takes.
pub(super) unsafe fn values(function: &Function, given: Given) -> Vec<u8> {
    // SAFETY: by the contract.
    let (params, extra) = unsafe { (Ptr::new(given.params), Ptr::new(given.extra)) };
    if params.is_null() && !extra.is_null() {
        return extra.launch_buffer().unwrap_or_default();
    }
    let mut block = Vec::new();
    for (index, &(offset, bytes)) in function.params.iter().enumerate() {
        let from = params.at(index).follow().map(Ptr::cast::<u8>);
        let from = from.and_then(|from| from.bytes(bytes as usize));
        let Ok(given) = from else {
            return Vec::new();
        };
        block.resize(offset as usize, 0);
        block.extend(given);
    }
    block
}

/// The handle of a stream for calls that know no default stream per thread.
pub(super) fn number(real: &Api, stream: CUstream) -> usize {
    let per_thread = resolve::real().is_some_and(|of| std::ptr::eq(real, &of.per_thread));
    match stream.is_null() && per_thread {
        true => STREAM_PER_THREAD.addr(),
        false => stream.expose_provenance(),
    }
}

/// The context that a kernel of a library runs in when it is launched into a stream; none where that is the
/// current one's.
pub(super) fn context_of(real: &Api, stream: usize) -> Option<u64> {
    if stream <= STREAM_PER_THREAD.addr() {
        return None;
    }
    let (stream, mut context) = (
        std::ptr::with_exposed_provenance_mut(stream),
        std::ptr::null_mut(),
    );
    // SAFETY: the program is about to use the stream; there is room for the result.
    let found = unsafe { real.cuStreamGetCtx(stream, &mut context) };
    (found == CUresult::SUCCESS && !context.is_null()).then(|| context.expose_provenance() as u64)
}

/// Attributes of a function that its launches depend on: its own shared memory, and its cluster.
pub(super) const ATTRIBUTES: [CUfunction_attribute; 4] = [
    function_attribute::SHARED_SIZE_BYTES,
    function_attribute::REQUIRED_CLUSTER_WIDTH,
    function_attribute::REQUIRED_CLUSTER_HEIGHT,
    function_attribute::REQUIRED_CLUSTER_DEPTH,
];

impl State {
    /// The kernel, the size and the parameters of a launch, and the current context.
    ///
    /// # Safety
    /// `given` is what a launch of the function takes; null where its parameters are not known.
    pub(super) unsafe fn kernel(
        &mut self,
        real: &Api,
        asked: &RequestedLaunch,
        given: Given,
    ) -> Option<(u64, Function, Kernel)> {
        let function = self.functions.get(&asked.function)?.clone();
        let context = match asked.context {
            0 => self.context().or(function.context)?,
            context => self.attach(std::ptr::with_exposed_provenance_mut(context as usize))?,
        };
        self.register_variables(real, function.module, context);
        let attributes = *self
            .attributes
            .entry((asked.function, context))
            .or_insert_with(|| {
                let _entered = self.session.enter(context);
                ATTRIBUTES.map(|id| attribute(real, asked.function, function.kernel, id))
            });
        let [fixed, cluster @ ..] = attributes;
        let cluster = match asked.cluster {
            [0, 0, 0] => cluster,
            asked => asked,
        };
        // SAFETY: by the contract.
        let parameters = unsafe { values(&function, given) };
        self.register_memory(real, context, &parameters);
        let extent = Extent {
            cluster,
            grid: asked.grid,
            block: asked.block,
            dynamic_shared: asked.shared,
            shared: 0,
        };
        let kernel = Kernel {
            key: function.key,
            name: function.name.clone(),
            extent: extent.with_static_shared(fixed),
            parameters,
        };
        Some((context, function, kernel))
    }

    /// Asks the driver about addresses among the parameters of a launch that lie in no memory which is known:
    /// graphs, other processes and other programming interfaces allocate too.
    fn register_memory(&mut self, real: &Api, context: u64, parameters: &[u8]) {
        let (values, _) = parameters.as_chunks::<8>();
        let values = values.iter().map(|value| u64::from_le_bytes(*value));
        let checker = self.session.checker();
        let unknown = values.filter(|value| ADDRESSES.contains(value) && !checker.knows(*value));
        let unknown: Vec<u64> = unknown.take(MOST_UNKNOWN).collect();
        if unknown.is_empty() {
            return;
        }
        let _entered = self.session.enter(context);
        for address in unknown {
            let (mut base, mut bytes) = (0, 0);
            // SAFETY: there is room for both results, and the driver finds out what is no address.
            let found = unsafe { real.cuMemGetAddressRange(&mut base, &mut bytes, address) };
            if found == CUresult::SUCCESS {
                self.session.checker().found(base, bytes as u64);
            }
        }
    }
}

/// What may be an address of memory that a kernel accesses, and not a number or two.
const ADDRESSES: std::ops::Range<u64> = 1 << 32..1 << 57;
/// Unknown addresses that the driver is asked about per launch.
const MOST_UNKNOWN: usize = 16;

/// An attribute of a function or kernel; 0 where the driver does not know it.
pub(super) fn attribute(real: &Api, handle: u64, kernel: bool, id: CUfunction_attribute) -> u32 {
    let (mut value, mut device): (c_int, _) = (0, 0);
    let handle = std::ptr::with_exposed_provenance_mut::<c_void>(handle as usize);
    // SAFETY: the program is about to launch the function; there is room for the results.
    let known = unsafe {
        match kernel {
            true => {
                let _ = real.cuCtxGetDevice(&mut device);
                real.cuKernelGetAttribute(&mut value, id, handle.cast(), device)
            }
            false => real.cuFuncGetAttribute(&mut value, id, handle.cast()),
        }
    };
    match known {
        CUresult::SUCCESS => u32::try_from(value).unwrap_or(0),
        _ => 0,
    }
}

/// How a driver refuses a launch for which there is too little of something on the device.
const TOO_LARGE: [CUresult; 2] = [
    CUresult::LAUNCH_OUT_OF_RESOURCES,
    CUresult::COOPERATIVE_LAUNCH_TOO_LARGE,
];

/// What is to be done about a launch.
enum Plan {
    /// It runs between two events: the program's own code, if the launch is armed so and that has been found.
    Launch(Function, ArmedLaunch, Option<u64>),
    /// It becomes part of a graph.
    Node(Function, Option<u64>),
}

/// A launch between two steps.
pub(super) struct Pending {
    /// None where the function is not known.
    plan: Option<Plan>,
    /// The function, if it has no checks and is not captured into a graph.
    unchecked: Option<u64>,
    /// What the driver has said.
    result: CUresult,
    _here: Option<gpu::Here>,
}

/// The driver's call for a launch, with function, parameters and extra options.
type Call<'a> = &'a mut dyn FnMut(CUfunction, *mut *mut c_void, *mut *mut c_void) -> CUresult;

/// A launch that the program asks for. Only [`launch`] makes one, by its contract.
pub(super) struct Launching<'a> {
    asked: &'a RequestedLaunch,
    stream: CUstream,
    given: Given,
    go: Call<'a>,
}

impl Launching<'_> {
    pub(super) fn arm(&self, real: &'static Api) -> Pending {
        let (asked, given) = (self.asked, self.given);
        let stream = number(real, self.stream);
        let mut here = None;
        runtime::host_calls::ask_python();
        let mut unchecked = None;
        let plan = with_started(|state| {
            let Some(function) = state.functions.get(&asked.function) else {
                unchecked = match super::graph::capture(real, stream) {
                    Some(_) => None,
                    None => Some(asked.function),
                };
                return None;
            };
            let now = current(real).map_or(0, |context| context.expose_provenance() as u64);
            let context = match function.kernel {
                true => context_of(real, stream).unwrap_or(now),
                false => now,
            };
            here = Some(gpu::here(now));
            let asked = RequestedLaunch { context, ..*asked };
            // SAFETY: by the contract of the launch.
            let (context, function, kernel) = unsafe { state.kernel(real, &asked, given) }?;
            Some(match super::graph::capture(real, stream) {
                Some(capture) => {
                    let parameter = state.new_slot(context, capture);
                    Plan::Node(function, parameter)
                }
                None => {
                    // Asked for first: without it, the launch runs the code with checks.
                    let own = state.own(real, asked.function);
                    let armed = state.session.begin(context, stream, kernel, asked.early);
                    state.wake();
                    Plan::Launch(function, armed, own)
                }
            })
        });
        Pending {
            plan: plan.flatten(),
            unchecked,
            result: CUresult::SUCCESS,
            _here: here,
        }
    }

    pub(super) fn start(&mut self, real: &'static Api, pending: &mut Pending) {
        let given @ Given { params, extra } = self.given;
        let named = std::ptr::with_exposed_provenance_mut(self.asked.function as usize);
        let (function, parameter, runs_own, own) = match &pending.plan {
            Some(Plan::Node(function, parameter)) => (function, *parameter, false, None),
            Some(Plan::Launch(function, armed, own)) => {
                (function, armed.parameter, armed.own, *own)
            }
            None => {
                pending.result = match is_hidden(self.asked.function) {
                    // The driver would take for the hidden parameter what lies behind the program's.
                    true => nowhere(real),
                    false => (self.go)(named, params, extra),
                };
                return;
            }
        };
        pending.result = match (function.hidden, parameter) {
            _ if runs_own => match own {
                Some(own) => (self.go)(
                    std::ptr::with_exposed_provenance_mut(own as usize),
                    params,
                    extra,
                ),
                None => CUresult::NOT_FOUND,
            },
            (Some(_), Some(hidden)) => {
                // SAFETY: by the contract of the launch.
                match unsafe { Params::new(function, hidden, given) } {
                    Ok(mut with) => {
                        let Given { params, extra } = with.arguments();
                        (self.go)(named, params, extra)
                    }
                    Err(code) => code,
                }
            }
            // The device has no memory left, not even for a launch that is not checked.
            (Some(_), None) => CUresult::OUT_OF_MEMORY,
            (None, _) => (self.go)(named, params, extra),
        };
    }
}

impl Pending {
    /// Lets the session follow the launch; what it finds is read when it has ended.
    pub(super) fn drain(self) -> CUresult {
        let result = self.result;
        let (function, armed) = match self.plan {
            None => {
                if let (CUresult::SUCCESS, Some(function)) = (result, self.unchecked) {
                    with_started(|state| {
                        let launches = state.without_ptx.launched(function);
                        state.log_without_ptx(launches);
                    });
                }
                return result;
            }
            Some(Plan::Node(function, _)) => (function, None),
            Some(Plan::Launch(function, armed, _)) => (function, Some(armed)),
        };
        let runs_own = armed.as_ref().is_some_and(|armed| armed.own);
        if function.hidden.is_some() && !runs_own && TOO_LARGE.contains(&result) {
            with_started(|state| {
                let text = format!(
                    "the driver refuses a launch of {}: {result}; with checks a kernel takes more registers, and fewer blocks of it fit a multiprocessor",
                    function.name
                );
                state.session.checker().note(text);
            });
        }
        if let Some(armed) = armed {
            let error = (result != CUresult::SUCCESS).then_some(result);
            with_started(|state| {
                state.session.launched(armed, error);
                state.wake();
            });
            progress::erase();
        }
        result
    }
}

/// Whether a function takes the hidden parameter.
pub(super) fn is_hidden(function: u64) -> bool {
    let known = with_started(|state| state.functions.get(&function)?.hidden);
    known.flatten().is_some()
}

/// Why nothing can be launched: there is no context, or it has no memory left.
pub(super) fn nowhere(real: &Api) -> CUresult {
    match current(real) {
        Some(_) => CUresult::OUT_OF_MEMORY,
        None => CUresult::INVALID_CONTEXT,
    }
}

/// Asks the driver for a launch with the hidden parameter, if its kernel has one.
///
/// # Safety
/// `given` is what a launch of the function takes.
pub(super) unsafe fn launch(
    real: &'static Api,
    asked: &RequestedLaunch,
    stream: CUstream,
    given: Given,
    mut go: impl FnMut(CUfunction, *mut *mut c_void, *mut *mut c_void) -> CUresult,
) -> CUresult {
    let launching = Launching {
        asked,
        stream,
        given,
        go: &mut go,
    };
    Backend::launch(&mut Driver(real), launching)
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) unsafe fn cuLaunchKernel(
    real: &'static Api,
    func: CUfunction,
    grid_dim_x: c_uint,
    grid_dim_y: c_uint,
    grid_dim_z: c_uint,
    block_dim_x: c_uint,
    block_dim_y: c_uint,
    block_dim_z: c_uint,
    shared_mem_bytes: c_uint,
    stream: CUstream,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    let asked = RequestedLaunch {
        function: func.expose_provenance() as u64,
        grid: [grid_dim_x, grid_dim_y, grid_dim_z],
        block: [block_dim_x, block_dim_y, block_dim_z],
        cluster: [0; 3],
        shared: shared_mem_bytes,
        early: false,
        context: 0,
    };
    let ([gx, gy, gz], [bx, by, bz]) = (asked.grid, asked.block);
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        launch(
            real,
            &asked,
            stream,
            Given {
                params: kernel_params,
                extra,
            },
            |func, params, extra| {
                let shared = shared_mem_bytes;
                real.cuLaunchKernel(func, gx, gy, gz, bx, by, bz, shared, stream, params, extra)
            },
        )
    }
}

#[allow(clippy::too_many_arguments, reason = "the signature is NVIDIA's")]
pub(crate) unsafe fn cuLaunchCooperativeKernel(
    real: &'static Api,
    func: CUfunction,
    grid_dim_x: c_uint,
    grid_dim_y: c_uint,
    grid_dim_z: c_uint,
    block_dim_x: c_uint,
    block_dim_y: c_uint,
    block_dim_z: c_uint,
    shared_mem_bytes: c_uint,
    stream: CUstream,
    kernel_params: *mut *mut c_void,
) -> CUresult {
    let asked = RequestedLaunch {
        function: func.expose_provenance() as u64,
        grid: [grid_dim_x, grid_dim_y, grid_dim_z],
        block: [block_dim_x, block_dim_y, block_dim_z],
        cluster: [0; 3],
        shared: shared_mem_bytes,
        early: false,
        context: 0,
    };
    let ([gx, gy, gz], [bx, by, bz]) = (asked.grid, asked.block);
    let given = Given {
        params: kernel_params,
        extra: std::ptr::null_mut(),
    };
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        launch(real, &asked, stream, given, |func, params, _| {
            let shared = shared_mem_bytes;
            real.cuLaunchCooperativeKernel(func, gx, gy, gz, bx, by, bz, shared, stream, params)
        })
    }
}

pub(crate) unsafe fn cuLaunchKernelEx(
    real: &'static Api,
    config: *const CUlaunchConfig,
    func: CUfunction,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let Ok(given) = unsafe { Ptr::new(config) }.get() else {
        // SAFETY: as above.
        return unsafe { real.cuLaunchKernelEx(config, func, kernel_params, extra) };
    };
    let mut asked = RequestedLaunch {
        function: func.expose_provenance() as u64,
        grid: [given.grid_dim_x, given.grid_dim_y, given.grid_dim_z],
        block: [given.block_dim_x, given.block_dim_y, given.block_dim_z],
        cluster: [0; 3],
        shared: given.shared_mem_bytes,
        early: false,
        context: 0,
    };
    // SAFETY: as above.
    let attributes = unsafe { Ptr::new(given.attrs) };
    for index in 0..given.num_attrs as usize {
        let Ok(attribute) = attributes.at(index).get() else {
            break;
        };
        let [first, second, ..] = attribute.value;
        match attribute.id {
            launch_attribute::CLUSTER_DIMENSION => {
                asked.cluster = [first as u32, (first >> 32) as u32, second as u32];
            }
            launch_attribute::PROGRAMMATIC_STREAM_SERIALIZATION => {
                asked.early = first as u32 != 0;
            }
            launch_attribute::PROGRAMMATIC_EVENT => asked.early = true,
            _ => {}
        }
    }
    // SAFETY: as above.
    unsafe {
        let given = Given {
            params: kernel_params,
            extra,
        };
        launch(
            real,
            &asked,
            (*config).stream,
            given,
            |func, params, extra| real.cuLaunchKernelEx(config, func, params, extra),
        )
    }
}

pub(crate) unsafe fn cuLaunchCooperativeKernelMultiDevice(
    real: &'static Api,
    list: *mut CUDA_LAUNCH_PARAMS,
    num_devices: c_uint,
    flags: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let given = unsafe { Ptr::new(list) };
    let copied = (0..num_devices as usize).map(|index| given.at(index).get());
    let copied: Result<Vec<CUDA_LAUNCH_PARAMS>, _> = copied.collect();
    // SAFETY: as above.
    unsafe {
        match copied {
            Ok(mut copied) => on_devices(real, &mut copied, 0, &mut |list| {
                let list = list.as_mut_ptr();
                real.cuLaunchCooperativeKernelMultiDevice(list, num_devices, flags)
            }),
            Err(_) => real.cuLaunchCooperativeKernelMultiDevice(list, num_devices, flags),
        }
    }
}

/// Gives the launches from `index` on the hidden parameter, each in the context of its stream, and
/// asks the driver for all of them.
///
/// # Safety
/// The list is what the driver takes.
unsafe fn on_devices(
    real: &'static Api,
    list: &mut Vec<CUDA_LAUNCH_PARAMS>,
    index: usize,
    go: &mut dyn FnMut(&mut Vec<CUDA_LAUNCH_PARAMS>) -> CUresult,
) -> CUresult {
    let Some(&one) = list.get(index) else {
        return go(list);
    };
    let asked = RequestedLaunch {
        function: one.function.expose_provenance() as u64,
        grid: [one.grid_dim_x, one.grid_dim_y, one.grid_dim_z],
        block: [one.block_dim_x, one.block_dim_y, one.block_dim_z],
        cluster: [0; 3],
        shared: one.shared_mem_bytes,
        early: false,
        context: 0,
    };
    let mut context = std::ptr::null_mut();
    // SAFETY: the program is about to use the stream; what is pushed is popped below.
    let entered = unsafe {
        real.cuStreamGetCtx(one.stream, &mut context) == CUresult::SUCCESS
            && real.cuCtxPushCurrent(context) == CUresult::SUCCESS
    };
    let inside = Cell::new(entered);
    let leave = || {
        if inside.replace(false) {
            let mut popped = std::ptr::null_mut();
            // SAFETY: this thread has pushed it.
            let _ = unsafe { real.cuCtxPopCurrent(&mut popped) };
            gpu::elsewhere();
        }
    };
    let given = Given {
        params: one.kernel_params,
        extra: std::ptr::null_mut(),
    };
    // SAFETY: by the contract.
    let result = unsafe {
        launch(real, &asked, one.stream, given, |function, params, _| {
            leave();
            (list[index].function, list[index].kernel_params) = (function, params);
            on_devices(real, list, index + 1, go)
        })
    };
    leave();
    result
}
