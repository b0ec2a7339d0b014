//! Executable graphs: what they are made of, what is changed in them, and their launches.

use std::ffi::{c_char, c_int, c_uint};

use driver::gpu;
use driver::pointer::Ptr;
use driver::sys::*;
use runtime::session::Node;

use super::graph::{capture, with_hidden, with_hidden_any, with_hidden_v1};
use super::launch::{self, Given};
use super::nodes::{self, SlotUse};
use crate::state::{State, current, with_started};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`
const DEVICE_LAUNCH: u64 = 4;

/// Makes a graph executable, after a look at what is in it.
///
/// # Safety
/// After success `exec` points to a handle.
unsafe fn instantiate(
    real: &'static Api,
    exec: *mut CUgraphExec,
    graph: CUgraph,
    flags: u64,
    go: impl FnOnce() -> CUresult,
) -> CUresult {
    let graph = graph.expose_provenance() as u64;
    // The driver does not report launches that the device makes.
    let slot_use = match flags & DEVICE_LAUNCH {
        0 => SlotUse::Own,
        _ => SlotUse::Idle,
    };
    let nodes = with_started(|state| state.nodes_of(real, graph, slot_use, &[], &mut Vec::new()));
    let result = go();
    if let (CUresult::SUCCESS, Some(mut nodes)) = (result, nodes) {
        // SAFETY: by the contract.
        let exec = unsafe { *exec }.expose_provenance() as u64;
        with_started(|state| {
            state.make_own(real, exec, &mut nodes);
            state.session.change_exec(exec, |all| *all = nodes);
            let others = state.kernels_without_ptx(real, graph);
            state.without_ptx.in_graph(exec, others);
        });
    }
    result
}

pub(crate) unsafe fn cuGraphInstantiate_v1(
    real: &'static Api,
    exec_out: *mut CUgraphExec,
    graph: CUgraph,
    error_node: *mut CUgraphNode,
    log_buffer: *mut c_char,
    buffer_size: usize,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        instantiate(real, exec_out, graph, 0, || {
            real.cuGraphInstantiate_v1(exec_out, graph, error_node, log_buffer, buffer_size)
        })
    }
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
        instantiate(real, exec_out, graph, 0, || {
            real.cuGraphInstantiate_v2(exec_out, graph, error_node, log_buffer, buffer_size)
        })
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
        instantiate(real, exec_out, graph, flags, || {
            real.cuGraphInstantiateWithFlags(exec_out, graph, flags)
        })
    }
}

pub(crate) unsafe fn cuGraphInstantiateWithParams(
    real: &'static Api,
    exec_out: *mut CUgraphExec,
    graph: CUgraph,
    params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe {
        let flags = Ptr::new(params).get().map_or(0, |params| params.flags);
        instantiate(real, exec_out, graph, flags, || {
            real.cuGraphInstantiateWithParams(exec_out, graph, params)
        })
    }
}

/// Gives the nodes of an executable graph what those of another graph have. They are paired in the
/// order in which they were added; where this does not fit, none is known by its node any more.
fn replace(old: &mut [&mut Node], new: Vec<Node>) -> Option<Vec<Node>> {
    if old.len() != new.len() {
        let checked = new.into_iter().map(|node| Node { own: false, ..node });
        return Some(checked.collect());
    }
    for (old, new) in old.iter_mut().zip(new) {
        (old.context, old.kernel, old.parameter) = (new.context, new.kernel, new.parameter);
        // It may be that the graph of which it was made is gone, and its nodes with it.
        old.own = false;
    }
    None
}

/// Updates an executable graph from another graph.
fn update(
    real: &'static Api,
    exec: CUgraphExec,
    graph: CUgraph,
    go: impl FnOnce() -> CUresult,
) -> CUresult {
    let graph = graph.expose_provenance() as u64;
    let exec = exec.expose_provenance() as u64;
    let nodes =
        with_started(|state| state.nodes_of(real, graph, SlotUse::Own, &[], &mut Vec::new()));
    let result = go();
    if let (CUresult::SUCCESS, Some(new)) = (result, nodes) {
        with_started(|state| {
            state.session.change_exec(exec, |nodes| {
                let mut old: Vec<&mut Node> = nodes.iter_mut().collect();
                if let Some(others) = replace(&mut old, new) {
                    *nodes = others;
                }
            });
            let others = state.kernels_without_ptx(real, graph);
            state.without_ptx.in_graph(exec, others);
        });
    }
    result
}

pub(crate) unsafe fn cuGraphExecUpdate(
    real: &'static Api,
    exec: CUgraphExec,
    graph: CUgraph,
    info: *mut CUgraphExecUpdateResultInfo,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    update(real, exec, graph, || unsafe {
        real.cuGraphExecUpdate(exec, graph, info)
    })
}

pub(crate) unsafe fn cuGraphExecUpdate_v1(
    real: &'static Api,
    exec: CUgraphExec,
    graph: CUgraph,
    error_node_out: *mut CUgraphNode,
    result_out: *mut c_int,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    update(real, exec, graph, || unsafe {
        real.cuGraphExecUpdate_v1(exec, graph, error_node_out, result_out)
    })
}

/// The node of an executable graph by its handle.
fn known(nodes: &mut [Node], node: u64) -> Option<&mut Node> {
    nodes.iter_mut().find(|of| is(of, node))
}

/// Whether it is the node with this handle.
fn is(node: &Node, handle: u64) -> bool {
    node.path.last() == Some(&handle)
}

/// Lets a kernel in an executable graph run the program's own code, if what it is set to proves that it has no races.
/// It keeps its record slot.
fn set_own(
    real: &'static Api,
    exec: CUgraphExec,
    node: CUgraphNode,
    params: &CUDA_KERNEL_NODE_PARAMS,
) -> bool {
    let number = node.expose_provenance() as u64;
    let asked = nodes::asked(params, nodes::cluster(real, number));
    let given = nodes::given(real, number, params);
    let found = with_started(|state| {
        // SAFETY: what the program gives is what the driver takes.
        let (context, function, kernel) = unsafe { state.kernel(real, &asked, given) }?;
        let all = state.session.exec(exec.expose_provenance() as u64);
        all.iter().find(|of| is(of, number))?;
        function.hidden?;
        let own = match nodes::may_be_own(&asked, given) {
            true => state.own_of(real, asked.function, &kernel),
            false => None,
        };
        Some((own?, context, kernel))
    });
    let Some((own, context, kernel)) = found.flatten() else {
        return false;
    };
    let with = nodes::launching(*params, own, Given::of_node(params));
    // SAFETY: as above.
    let result = unsafe { real.cuGraphExecKernelNodeSetParams(exec, node, &with) };
    if result == CUresult::SUCCESS {
        with_started(|state| {
            let exec = exec.expose_provenance() as u64;
            state.session.change_exec(exec, |nodes| {
                if let Some(of) = known(nodes, number) {
                    (of.context, of.kernel, of.own) = (context, kernel, true);
                }
            });
        });
    }
    result == CUresult::SUCCESS
}

/// Sets the parameters of a kernel in an executable graph: it keeps its record slot.
///
/// # Safety
/// `set` hands the driver what it takes for a kernel node, which `params` says.
unsafe fn set_kernel<T>(
    real: &'static Api,
    exec: CUgraphExec,
    node: CUgraphNode,
    params: Option<CUDA_KERNEL_NODE_PARAMS>,
    set: impl FnOnce(&mut dyn FnMut(&mut State, u64) -> Option<u64>, T) -> CUresult,
    given: T,
) -> CUresult {
    if let Some(params) = &params
        && set_own(real, exec, node, params)
    {
        return CUresult::SUCCESS;
    }
    let exec = exec.expose_provenance() as u64;
    let node = node.expose_provenance() as u64;
    let mut chosen = None;
    let mut choose_slot = |state: &mut State, context| {
        let nodes = state.session.exec(exec);
        let now = nodes.iter().find(|of| is(of, node));
        let now = now.and_then(|of| of.parameter);
        chosen = match now {
            Some(now) => Some(now),
            None => state.session.keep_slot(context),
        };
        chosen
    };
    let result = set(&mut choose_slot, given);
    if let (CUresult::SUCCESS, Some(params)) = (result, params) {
        let asked = nodes::asked(&params, nodes::cluster(real, node));
        let given = nodes::given(real, node, &params);
        with_started(|state| {
            // SAFETY: by the contract.
            let kernel = unsafe { state.kernel(real, &asked, given) };
            state.session.change_exec(exec, |nodes| {
                let Some((context, _, kernel)) = kernel else {
                    return nodes.retain(|of| !is(of, node));
                };
                match known(nodes, node) {
                    Some(of) => {
                        (of.context, of.kernel, of.parameter) = (context, kernel, chosen);
                        of.own = false;
                    }
                    None => nodes.push(Node {
                        context,
                        kernel,
                        parameter: chosen,
                        path: vec![node],
                        enabled: true,
                        own: false,
                    }),
                }
            });
        });
    }
    result
}

pub(crate) unsafe fn cuGraphExecKernelNodeSetParams(
    real: &'static Api,
    exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *const CUDA_KERNEL_NODE_PARAMS,
) -> CUresult {
    let go = |params: *const CUDA_KERNEL_NODE_PARAMS| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe { real.cuGraphExecKernelNodeSetParams(exec, node, params) }
    };
    // SAFETY: as above.
    let Ok(given) = unsafe { Ptr::new(node_params) }.get() else {
        return go(node_params);
    };
    // SAFETY: as above.
    unsafe {
        let set = |choose_slot: ChooseSlot<'_>, given| {
            with_hidden(real, &given, choose_slot, |node| go(node))
        };
        set_kernel(real, exec, node, Some(given), set, given)
    }
}

/// Chooses a record slot.
type ChooseSlot<'a> = &'a mut dyn FnMut(&mut State, u64) -> Option<u64>;

pub(crate) unsafe fn cuGraphExecKernelNodeSetParams_v1(
    real: &'static Api,
    exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *const CUDA_KERNEL_NODE_PARAMS_v1,
) -> CUresult {
    let go = |params: *const CUDA_KERNEL_NODE_PARAMS_v1| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe { real.cuGraphExecKernelNodeSetParams_v1(exec, node, params) }
    };
    // SAFETY: as above.
    let Ok(given) = unsafe { Ptr::new(node_params) }.get() else {
        return go(node_params);
    };
    // SAFETY: as above.
    unsafe {
        let set = |choose_slot: ChooseSlot<'_>, given| with_hidden_v1(real, given, choose_slot, go);
        set_kernel(real, exec, node, Some(given.into()), set, given)
    }
}

pub(crate) unsafe fn cuGraphExecNodeSetParams(
    real: &'static Api,
    exec: CUgraphExec,
    node: CUgraphNode,
    node_params: *mut CUgraphNodeParams,
) -> CUresult {
    let go = |params: *mut CUgraphNodeParams| {
        // SAFETY: the caller keeps the conditions of the C function.
        unsafe { real.cuGraphExecNodeSetParams(exec, node, params) }
    };
    // SAFETY: as above.
    let any = unsafe { Ptr::new(node_params) }.get();
    if let Some(child) = any.ok().and_then(|any| any.child()) {
        return set_child(real, exec, node, child, || go(node_params));
    }
    let kernel = any.ok().and_then(|any| any.kernel());
    // SAFETY: as above.
    unsafe {
        let set =
            |choose_slot: ChooseSlot<'_>, given| with_hidden_any(real, given, choose_slot, go);
        set_kernel(real, exec, node, kernel, set, node_params)
    }
}

/// Gives the node of a child graph in an executable graph another one.
fn set_child(
    real: &'static Api,
    exec: CUgraphExec,
    node: CUgraphNode,
    child: u64,
    go: impl FnOnce() -> CUresult,
) -> CUresult {
    let exec = exec.expose_provenance() as u64;
    let node = node.expose_provenance() as u64;
    let within = |of: &Node| of.path.iter().rev().skip(1).any(|&above| above == node);
    let new = with_started(|state| {
        let others = state.session.exec(exec).iter().filter(|of| !within(of));
        let mut taken: Vec<u64> = others.filter_map(|of| of.parameter).collect();
        state.nodes_of(real, child, SlotUse::Own, &[node], &mut taken)
    });
    let result = go();
    if let (CUresult::SUCCESS, Some(new)) = (result, new) {
        with_started(|state| {
            state.session.change_exec(exec, |nodes| {
                let mut old: Vec<&mut Node> = nodes.iter_mut().filter(|of| within(of)).collect();
                if let Some(others) = replace(&mut old, new) {
                    nodes.retain(|of| !within(of));
                    nodes.extend(others);
                }
            });
        });
    }
    result
}

pub(crate) unsafe fn cuGraphExecChildGraphNodeSetParams(
    real: &'static Api,
    exec: CUgraphExec,
    node: CUgraphNode,
    child: CUgraph,
) -> CUresult {
    let number = child.expose_provenance() as u64;
    // SAFETY: the caller keeps the conditions of the C function.
    set_child(real, exec, node, number, || unsafe {
        real.cuGraphExecChildGraphNodeSetParams(exec, node, child)
    })
}

pub(crate) unsafe fn cuGraphNodeSetEnabled(
    real: &'static Api,
    exec: CUgraphExec,
    node: CUgraphNode,
    enabled: c_uint,
) -> CUresult {
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuGraphNodeSetEnabled(exec, node, enabled) };
    if result == CUresult::SUCCESS {
        let exec = exec.expose_provenance() as u64;
        let node = node.expose_provenance() as u64;
        with_started(|state| {
            state.session.change_exec(exec, |nodes| {
                if let Some(of) = known(nodes, node) {
                    of.enabled = enabled != 0;
                }
            });
        });
    }
    result
}

pub(crate) unsafe fn cuGraphLaunch(
    real: &'static Api,
    exec: CUgraphExec,
    stream: CUstream,
) -> CUresult {
    let number = launch::number(real, stream);
    let mut here = None;
    runtime::host_calls::ask_python();
    let armed = with_started(|state| {
        let now = current(real).map_or(0, |context| context.expose_provenance() as u64);
        here = Some(gpu::here(now));
        let context = match launch::context_of(real, number).unwrap_or(now) {
            0 => return None,
            context => std::ptr::with_exposed_provenance_mut(context as usize),
        };
        let context = state.attach(context)?;
        let exec = exec.expose_provenance() as u64;
        // Within a capture it becomes part of another graph.
        match capture(real, number) {
            Some(_) => None,
            None => {
                let armed = state.session.begin_graph(context, number, exec);
                state.wake();
                Some(armed)
            }
        }
    });
    // SAFETY: the caller keeps the conditions of the C function.
    let result = unsafe { real.cuGraphLaunch(exec, stream) };
    if let Some(Some(armed)) = armed {
        let error = (result != CUresult::SUCCESS).then_some(result);
        with_started(|state| {
            if error.is_none() {
                let exec = exec.expose_provenance() as u64;
                let launches = state.without_ptx.graph_launched(exec);
                state.log_without_ptx(launches);
            }
            state.session.launched(armed, error);
            state.wake();
        });
        runtime::progress::erase();
    }
    result
}

pub(crate) unsafe fn cuGraphExecDestroy(real: &'static Api, exec: CUgraphExec) -> CUresult {
    let handle = exec.expose_provenance() as u64;
    with_started(|state| {
        state.without_ptx.in_graph(handle, Vec::new());
        state.session.forget_exec(handle);
    });
    // SAFETY: the caller keeps the conditions of the C function.
    unsafe { real.cuGraphExecDestroy(exec) }
}
