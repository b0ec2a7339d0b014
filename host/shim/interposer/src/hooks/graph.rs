//! Graphs: kernels that are captured or added by hand.
//!
//! Each gets the hidden parameter when its node is made or changed. What a graph has in the end is
//! found out when it is made executable ([`super::graph_exec`]).

use std::ffi::c_int;

use driver::gpu;
use driver::pointer::Ptr;
use driver::sys::*;

use super::launch::{Given, Params, UNKNOWN};
use super::nodes::{self, SlotUse};
use crate::state::{State, with_started};

/// The capture that a stream is in, if any: the graph that it ends in.
pub(super) fn capture(real: &Api, stream: usize) -> Option<u64> {
    let (mut status, mut id): (c_int, u64) = (0, 0);
    let (mut graph, mut nodes, mut count) = (std::ptr::null_mut(), std::ptr::null(), 0);
    let stream = std::ptr::with_exposed_provenance_mut(stream);
    // SAFETY: the program is about to use the stream; there is room for all results.
    let result = unsafe {
        let (status, id) = (&mut status, &mut id);
        real.cuStreamGetCaptureInfo_v2(stream, status, id, &mut graph, &mut nodes, &mut count)
    };
    let graph = graph.expose_provenance() as u64;
    (result == CUresult::SUCCESS && status != 0).then_some(graph)
}

pub(crate) unsafe fn cuStreamBeginCapture_v1(real: &'static Api, stream: CUstream) -> CUresult {
    gpu::captures();
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuStreamBeginCapture_v1(stream) }
}

pub(crate) unsafe fn cuStreamBeginCapture(
    real: &'static Api,
    stream: CUstream,
    mode: CUstreamCaptureMode,
) -> CUresult {
    gpu::captures();
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuStreamBeginCapture(stream, mode) }
}

pub(crate) unsafe fn cuStreamBeginCaptureToGraph(
    real: &'static Api,
    stream: CUstream,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    dependency_data: *const CUgraphEdgeData,
    num_dependencies: usize,
    mode: CUstreamCaptureMode,
) -> CUresult {
    gpu::captures();
    let (from, data, count) = (dependencies, dependency_data, num_dependencies);
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuStreamBeginCaptureToGraph(stream, graph, from, data, count, mode) }
}

impl State {
    /// The hidden parameter of a new node of a graph. A capture that has failed has none, and gets no node.
    pub(super) fn new_slot(&mut self, context: u64, graph: u64) -> Option<u64> {
        match graph == 0 || self.bodies.contains(&graph) {
            true => self.session.idle(context),
            false => self.session.keep_slot(context),
        }
    }
}

/// Hands the parameters of a kernel's node to the driver, with the hidden one if it has one, which
/// `choose_slot` chooses for a context.
///
/// # Safety
/// `node` is what the driver takes for a kernel node.
pub(super) unsafe fn with_hidden(
    real: &'static Api,
    node: &CUDA_KERNEL_NODE_PARAMS,
    choose_slot: impl FnOnce(&mut State, u64) -> Option<u64>,
    go: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS) -> CUresult,
) -> CUresult {
    let asked = nodes::asked(node, [0; 3]);
    let found = with_started(|state| {
        // What the kernel is given is looked at when its graph is made executable.
        // SAFETY: no parameters are named.
        let (context, function, _) = unsafe { state.kernel(real, &asked, UNKNOWN) }?;
        function.hidden?;
        Some((function, choose_slot(state, context)))
    });
    match found.flatten() {
        Some((function, Some(hidden))) => {
            // SAFETY: by the contract.
            match unsafe { Params::new(&function, hidden, Given::of_node(node)) } {
                Ok(mut params) => {
                    let mut node = *node;
                    let given = params.arguments();
                    (node.kernel_params, node.extra) = (given.params, given.extra);
                    go(&node)
                }
                Err(code) => code,
            }
        }
        Some((_, None)) => CUresult::OUT_OF_MEMORY,
        None if super::launch::is_hidden(asked.function) => super::launch::nowhere(real),
        None => go(node),
    }
}

/// The same for the structure before CUDA 12.
///
/// # Safety
/// As for [`with_hidden`].
pub(super) unsafe fn with_hidden_v1(
    real: &'static Api,
    old: CUDA_KERNEL_NODE_PARAMS_v1,
    choose_slot: impl FnOnce(&mut State, u64) -> Option<u64>,
    go: impl FnOnce(*const CUDA_KERNEL_NODE_PARAMS_v1) -> CUresult,
) -> CUresult {
    // SAFETY: by the contract.
    unsafe {
        with_hidden(real, &old.into(), choose_slot, |node| {
            go(&CUDA_KERNEL_NODE_PARAMS_v1 {
                kernel_params: node.kernel_params,
                extra: node.extra,
                ..old
            })
        })
    }
}

/// The same for the structure of nodes of any kind, whose results the program gets.
///
/// # Safety
/// As for [`with_hidden`], for `given`.
pub(super) unsafe fn with_hidden_any(
    real: &'static Api,
    given: *mut CUgraphNodeParams,
    choose_slot: impl FnOnce(&mut State, u64) -> Option<u64>,
    go: impl FnOnce(*mut CUgraphNodeParams) -> CUresult,
) -> CUresult {
    // SAFETY: by the contract.
    let Ok(any) = (unsafe { Ptr::new(given) }).get() else {
        return go(given);
    };
    match any.kernel() {
        // SAFETY: by the contract.
        Some(kernel) => unsafe {
            with_hidden(real, &kernel, choose_slot, |node| {
                go(&mut any.with_kernel(*node))
            })
        },
        None => go(given),
    }
}

pub(crate) unsafe fn cuGraphAddKernelNode(
    real: &'static Api,
    node_out: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    num_dependencies: usize,
    node_params: *const CUDA_KERNEL_NODE_PARAMS,
) -> CUresult {
    let number = graph.expose_provenance() as u64;
    let choose_slot = |state: &mut State, context| state.new_slot(context, number);
    let go = |node: *const CUDA_KERNEL_NODE_PARAMS| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe { real.cuGraphAddKernelNode(node_out, graph, dependencies, num_dependencies, node) }
    };
    // SAFETY: as above.
    match unsafe { Ptr::new(node_params) }.get() {
        // SAFETY: as above.
        Ok(node) => unsafe { with_hidden(real, &node, choose_slot, |node| go(node)) },
        Err(_) => go(node_params),
    }
}

pub(crate) unsafe fn cuGraphAddKernelNode_v1(
    real: &'static Api,
    node_out: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    num_dependencies: usize,
    node_params: *const CUDA_KERNEL_NODE_PARAMS_v1,
) -> CUresult {
    let number = graph.expose_provenance() as u64;
    let choose_slot = |state: &mut State, context| state.new_slot(context, number);
    let go = |node: *const CUDA_KERNEL_NODE_PARAMS_v1| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe {
            real.cuGraphAddKernelNode_v1(node_out, graph, dependencies, num_dependencies, node)
        }
    };
    // SAFETY: as above.
    match unsafe { Ptr::new(node_params) }.get() {
        // SAFETY: as above.
        Ok(old) => unsafe { with_hidden_v1(real, old, choose_slot, go) },
        Err(_) => go(node_params),
    }
}

/// Adds a node of any kind.
///
/// # Safety
/// `node_params` is what the driver takes, and `node_out` has the node after success.
unsafe fn add_any(
    real: &'static Api,
    node_out: *mut CUgraphNode,
    graph: CUgraph,
    node_params: *mut CUgraphNodeParams,
    go: impl FnOnce(*mut CUgraphNodeParams) -> CUresult,
) -> CUresult {
    let number = graph.expose_provenance() as u64;
    let choose_slot = |state: &mut State, context| state.new_slot(context, number);
    // SAFETY: by the contract.
    unsafe {
        let result = with_hidden_any(real, node_params, choose_slot, go);
        if result == CUresult::SUCCESS
            && let Ok(any) = Ptr::new(node_params).get()
        {
            match any.kind {
                CUgraphNodeParams::CONDITIONAL => has_bodies(&any),
                CUgraphNodeParams::GRAPH => nested(real, number, node_out),
                _ => {
                    if let Some(made) = any.alloc() {
                        super::memory::of_graph(&made);
                    }
                }
            }
        }
        result
    }
}

/// Remembers the graphs of a conditional node, which may run many times in one launch, or not at all.
fn has_bodies(node: &CUgraphNodeParams) {
    // The union: a handle, the kind and the number of graphs, where they are.
    let [_, sizes, bodies, ..] = node.value;
    let bodies = std::ptr::with_exposed_provenance::<CUgraph>(bodies as usize);
    // SAFETY: the driver has filled in its array of so many graphs.
    let bodies = unsafe { Ptr::new(bodies) };
    with_started(|state| {
        for index in 0..(sizes >> 32) as usize {
            if let Ok(body) = bodies.at(index).get() {
                state.bodies.insert(body.expose_provenance() as u64);
            }
        }
        let text = "kernels in conditional nodes of graphs are not checked";
        state.session.checker().missed(text);
    });
}

/// The child graph in the body of a conditional node is not checked either.
///
/// # Safety
/// `node_out` has the node.
unsafe fn nested(real: &'static Api, graph: u64, node_out: *mut CUgraphNode) {
    // SAFETY: by the contract.
    let node = unsafe { *node_out }.expose_provenance() as u64;
    with_started(|state| {
        if state.bodies.contains(&graph)
            && let Some(child) = nodes::child(real, node)
        {
            state.nodes_of(real, child, SlotUse::Idle, &[], &mut Vec::new());
            state.bodies.insert(child);
        }
    });
}

pub(crate) unsafe fn cuGraphAddNode(
    real: &'static Api,
    node_out: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    dependency_data: *const CUgraphEdgeData,
    num_dependencies: usize,
    node_params: *mut CUgraphNodeParams,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        add_any(real, node_out, graph, node_params, |params| {
            let (from, data) = (dependencies, dependency_data);
            real.cuGraphAddNode(node_out, graph, from, data, num_dependencies, params)
        })
    }
}

pub(crate) unsafe fn cuGraphAddNode_v1(
    real: &'static Api,
    node_out: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    num_dependencies: usize,
    node_params: *mut CUgraphNodeParams,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        add_any(real, node_out, graph, node_params, |params| {
            real.cuGraphAddNode_v1(node_out, graph, dependencies, num_dependencies, params)
        })
    }
}

pub(crate) unsafe fn cuGraphAddChildGraphNode(
    real: &'static Api,
    node_out: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    num_dependencies: usize,
    child: CUgraph,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let (from, count) = (dependencies, num_dependencies);
        let result = real.cuGraphAddChildGraphNode(node_out, graph, from, count, child);
        if result == CUresult::SUCCESS {
            nested(real, graph.expose_provenance() as u64, node_out);
        }
        result
    }
}

/// Chooses the record slot of a node whose parameters are set anew: the one it has, if any.
fn slot_of(real: &'static Api, node: CUgraphNode) -> impl FnOnce(&mut State, u64) -> Option<u64> {
    let node = node.expose_provenance() as u64;
    move |state, context| {
        let now = nodes::params(real, node).and_then(|params| {
            let asked = nodes::asked(&params, [0; 3]);
            let function = state.functions.get(&asked.function)?;
            nodes::hidden(function, &params)
        });
        match now {
            Some(now) => Some(now),
            // Whether its graph may have a record slot is not known here: it gets one when it is made
            // executable.
            None => state.session.idle(context),
        }
    }
}

pub(crate) unsafe fn cuGraphKernelNodeSetParams(
    real: &'static Api,
    node: CUgraphNode,
    node_params: *const CUDA_KERNEL_NODE_PARAMS,
) -> CUresult {
    let go = |params: *const CUDA_KERNEL_NODE_PARAMS| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe { real.cuGraphKernelNodeSetParams(node, params) }
    };
    // SAFETY: as above.
    match unsafe { Ptr::new(node_params) }.get() {
        // SAFETY: as above.
        Ok(given) => unsafe { with_hidden(real, &given, slot_of(real, node), |node| go(node)) },
        Err(_) => go(node_params),
    }
}

pub(crate) unsafe fn cuGraphKernelNodeSetParams_v1(
    real: &'static Api,
    node: CUgraphNode,
    node_params: *const CUDA_KERNEL_NODE_PARAMS_v1,
) -> CUresult {
    let go = |params: *const CUDA_KERNEL_NODE_PARAMS_v1| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe { real.cuGraphKernelNodeSetParams_v1(node, params) }
    };
    // SAFETY: as above.
    match unsafe { Ptr::new(node_params) }.get() {
        // SAFETY: as above.
        Ok(old) => unsafe { with_hidden_v1(real, old, slot_of(real, node), go) },
        Err(_) => go(node_params),
    }
}

pub(crate) unsafe fn cuGraphNodeSetParams(
    real: &'static Api,
    node: CUgraphNode,
    node_params: *mut CUgraphNodeParams,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        with_hidden_any(real, node_params, slot_of(real, node), |params| {
            real.cuGraphNodeSetParams(node, params)
        })
    }
}
