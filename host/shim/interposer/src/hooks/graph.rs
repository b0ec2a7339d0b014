//! Graphs: kernels that are captured or added by hand, and launched later.

use std::ffi::{c_char, c_int};

use driver::pointer::Ptr;
use driver::sys::*;
use runtime::session::Holder;

use super::launch::{Asked, Params};
use crate::watch::with_begun;

/// The capture that a stream is in, if any.
pub(super) fn capture(real: &Api, stream: usize) -> Option<Holder> {
    let (mut status, mut id): (c_int, u64) = (0, 0);
    let (mut graph, mut nodes, mut count) = (std::ptr::null_mut(), std::ptr::null(), 0);
    let stream = std::ptr::with_exposed_provenance_mut(stream);
    // SAFETY: the program is about to use the stream; there is room for all results.
    let result = unsafe {
        let (status, id) = (&mut status, &mut id);
        real.cuStreamGetCaptureInfo_v2(stream, status, id, &mut graph, &mut nodes, &mut count)
    };
    (result == CUresult::SUCCESS && status != 0).then_some(Holder::Capture(id))
}

pub(crate) unsafe fn cuStreamEndCapture(
    real: &'static Api,
    stream: CUstream,
    graph_out: *mut CUgraph,
) -> CUresult {
    let captured = with_begun(|_| capture(real, stream.expose_provenance())).flatten();
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuStreamEndCapture(stream, graph_out) };
    if let Some(capture) = captured {
        with_begun(|watch| {
            if result == CUresult::SUCCESS {
                // SAFETY: the driver has written the handle.
                let graph = unsafe { *graph_out }.expose_provenance() as u64;
                // A capture can go on with a graph that has nodes already.
                let graph = Holder::Graph(graph);
                watch.session.share_nodes(capture, graph, true);
            }
            watch.session.forget_nodes(capture);
        });
    }
    result
}

/// Adds a kernel to a graph, with the hidden parameter if it has one.
///
/// # Safety
/// `node` is what the driver takes for a kernel node.
unsafe fn add(
    real: &'static Api,
    graph: CUgraph,
    node: &CUDA_KERNEL_NODE_PARAMS,
    go: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS) -> CUresult,
) -> CUresult {
    let handle = match node.func.is_null() {
        true => node.kern.expose_provenance(),
        false => node.func.expose_provenance(),
    };
    let asked = Asked {
        function: handle as u64,
        grid: [node.grid_dim_x, node.grid_dim_y, node.grid_dim_z],
        block: [node.block_dim_x, node.block_dim_y, node.block_dim_z],
        cluster: [0; 3],
        shared: node.shared_mem_bytes,
        early: false,
    };
    let graph = Holder::Graph(graph.expose_provenance() as u64);
    let added = with_begun(|watch| {
        let (context, function, kernel) = watch.kernel(real, &asked)?;
        let parameter = watch.session.add_node(context, graph, kernel);
        Some((function, parameter))
    });
    match added.flatten() {
        Some((function, Some(hidden))) if function.hidden.is_some() => {
            // SAFETY: by the contract.
            match unsafe { Params::new(&function, hidden, node.kernel_params, node.extra) } {
                Ok(mut params) => {
                    let mut node = *node;
                    (node.kernel_params, node.extra) = params.arguments();
                    go(&node)
                }
                Err(code) => code,
            }
        }
        _ if super::launch::is_hidden(asked.function) => CUresult::OUT_OF_MEMORY,
        _ => go(node),
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
    let go = |node: *const CUDA_KERNEL_NODE_PARAMS| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe { real.cuGraphAddKernelNode(node_out, graph, dependencies, num_dependencies, node) }
    };
    // SAFETY: as above.
    match unsafe { Ptr::new(node_params) }.get() {
        // SAFETY: as above.
        Ok(node) => unsafe { add(real, graph, &node, |node| go(node)) },
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
    let go = |node: *const CUDA_KERNEL_NODE_PARAMS_v1| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe {
            real.cuGraphAddKernelNode_v1(node_out, graph, dependencies, num_dependencies, node)
        }
    };
    // SAFETY: as above.
    let Ok(old) = unsafe { Ptr::new(node_params) }.get() else {
        return go(node_params);
    };
    let node = CUDA_KERNEL_NODE_PARAMS {
        func: old.func,
        grid_dim_x: old.grid_dim_x,
        grid_dim_y: old.grid_dim_y,
        grid_dim_z: old.grid_dim_z,
        block_dim_x: old.block_dim_x,
        block_dim_y: old.block_dim_y,
        block_dim_z: old.block_dim_z,
        shared_mem_bytes: old.shared_mem_bytes,
        kernel_params: old.kernel_params,
        extra: old.extra,
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    };
    // SAFETY: as above.
    unsafe {
        add(real, graph, &node, |node| {
            go(&CUDA_KERNEL_NODE_PARAMS_v1 {
                kernel_params: node.kernel_params,
                extra: node.extra,
                ..old
            })
        })
    }
}

pub(crate) unsafe fn cuGraphDestroy(real: &'static Api, graph: CUgraph) -> CUresult {
    let handle = graph.expose_provenance() as u64;
    with_begun(|watch| watch.session.forget_nodes(Holder::Graph(handle)));
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuGraphDestroy(graph) }
}

/// An executable graph has the nodes of its graph.
///
/// # Safety
/// After success `exec` points to a handle.
unsafe fn instantiated(result: CUresult, graph: CUgraph, exec: *mut CUgraphExec) -> CUresult {
    if result == CUresult::SUCCESS {
        // SAFETY: by the contract.
        let exec = unsafe { *exec }.expose_provenance() as u64;
        let graph = Holder::Graph(graph.expose_provenance() as u64);
        with_begun(|watch| watch.session.share_nodes(graph, Holder::Exec(exec), false));
    }
    result
}

pub(crate) unsafe fn cuGraphInstantiate_v2(
    real: &'static Api,
    exec_out: *mut CUgraphExec,
    graph: CUgraph,
    error_node: *mut CUgraphNode,
    log_buffer: *mut c_char,
    buffer_size: usize,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let result =
            real.cuGraphInstantiate_v2(exec_out, graph, error_node, log_buffer, buffer_size);
        instantiated(result, graph, exec_out)
    }
}

pub(crate) unsafe fn cuGraphInstantiateWithFlags(
    real: &'static Api,
    exec_out: *mut CUgraphExec,
    graph: CUgraph,
    flags: u64,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let result = real.cuGraphInstantiateWithFlags(exec_out, graph, flags);
        instantiated(result, graph, exec_out)
    }
}

pub(crate) unsafe fn cuGraphLaunch(
    real: &'static Api,
    exec: CUgraphExec,
    stream: CUstream,
) -> CUresult {
    let number = super::launch::number(real, stream);
    let ticket = with_begun(|watch| {
        let context = watch.context()?;
        let exec = exec.expose_provenance() as u64;
        // Within a capture it becomes part of another graph, whose launches are not followed.
        match capture(real, number) {
            Some(_) => None,
            None => Some(watch.session.begin_graph(context, number, exec)),
        }
    });
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuGraphLaunch(exec, stream) };
    if let Some(Some(ticket)) = ticket {
        let error = (result != CUresult::SUCCESS).then(|| result.to_string());
        with_begun(|watch| {
            watch.session.launched(ticket, error);
            watch.wake();
        });
    }
    result
}

pub(crate) unsafe fn cuGraphExecDestroy(real: &'static Api, exec: CUgraphExec) -> CUresult {
    let handle = exec.expose_provenance() as u64;
    with_begun(|watch| watch.session.forget_nodes(Holder::Exec(handle)));
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuGraphExecDestroy(exec) }
}
