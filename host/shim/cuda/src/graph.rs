//! Graphs: work that is captured or put together by hand, and run later in the order it was added.
//!
//! A node can only depend on nodes that were there before it, so that order satisfies every
//! dependency; which dependencies were given does not matter.
//! What is inside a node is in `node`, executable graphs are in `graph_exec`.

use std::ffi::{c_int, c_uint};

use driver::sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS, CUctx_st, CUgraph, CUgraph_st, CUgraphEdgeData, CUgraphNode,
    CUgraphNode_st, CUresult, CUstream_st,
};

use crate::Answer;
use crate::copy::{Copy, Fill};
use crate::node::{Node, Task, kernel_node};
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::stream::Capture;
use crate::table::{pointer, set};
use crate::work::{Call, Work};

/// A graph under construction: its nodes in the order they were added.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<u64>,
    /// It belongs to a node of another graph, and goes with it.
    pub(crate) embedded: bool,
}

impl State {
    pub(crate) fn add_node(&mut self, graph: u64, task: Task) -> Result<u64, CUresult> {
        self.graphs.get(graph)?;
        let node = self.nodes.insert(Node::new(graph, task));
        self.graphs.get_mut(graph)?.nodes.push(node);
        Ok(node)
    }

    /// Lets go of all streams of a capture and returns its work.
    pub(crate) fn end_capture(&mut self, capture: u64) -> Vec<Work> {
        for (_, stream) in self.streams.iter_mut() {
            if stream.capture == Some(capture) {
                stream.capture = None;
            }
        }
        self.captures
            .remove(capture)
            .map(|capture| capture.work)
            .unwrap_or_default()
    }
}

/// Before CUDA 10.1 every capture was `CU_STREAM_CAPTURE_MODE_GLOBAL`.
pub(crate) fn cuStreamBeginCapture_v1(stream: Ptr<CUstream_st>) -> Answer {
    begin_capture(stream, 0, None)
}

pub(crate) fn cuStreamBeginCapture(stream: Ptr<CUstream_st>, mode: c_int) -> Answer {
    begin_capture(stream, mode, None)
}

pub(crate) fn cuStreamBeginCaptureToGraph(
    stream: Ptr<CUstream_st>,
    graph: Ptr<CUgraph_st>,
    _dependencies: Ptr<CUgraphNode>,
    _dependency_data: Ptr<CUgraphEdgeData>,
    _count: usize,
    mode: c_int,
) -> Answer {
    begin_capture(stream, mode, Some(graph.address()))
}

/// Begins a capture into a graph, or into a new one.
fn begin_capture(stream: Ptr<CUstream_st>, mode: c_int, graph: Option<u64>) -> Answer {
    if !(0..=2).contains(&mode) {
        return Err(CUresult::INVALID_VALUE);
    }
    let origin = stream.address();
    with_context(|state, context| {
        if origin <= 2 {
            return Err(CUresult::STREAM_CAPTURE_UNSUPPORTED);
        }
        if state.streams.get(origin)?.capture.is_some() {
            return Err(CUresult::ILLEGAL_STATE);
        }
        if let Some(graph) = graph {
            state.graphs.get(graph)?;
        }
        state.allocations += 1;
        let identity = state.allocations;
        let capture = Capture {
            context,
            origin,
            work: Vec::new(),
            graph,
            identity,
        };
        let capture = state.captures.insert(capture);
        state.streams.get_mut(origin)?.capture = Some(capture);
        Ok(())
    })
}

pub(crate) fn cuStreamEndCapture(stream: Ptr<CUstream_st>, out: Ptr<CUgraph>) -> Answer {
    let graph = with_context(|state, _| {
        let capture = state
            .capture_of(stream.address())?
            .ok_or(CUresult::ILLEGAL_STATE)?;
        let found = state.captures.get(capture)?;
        if found.origin != stream.address() {
            return Err(CUresult::STREAM_CAPTURE_UNMATCHED);
        }
        let graph = match found.graph {
            Some(graph) => graph,
            None => state.graphs.insert(Graph::default()),
        };
        for work in state.end_capture(capture) {
            state.add_node(graph, Task::Work(work))?;
        }
        Ok(graph)
    })?;
    set(out, graph)
}

pub(crate) fn cuStreamIsCapturing(stream: Ptr<CUstream_st>, status: Ptr<c_int>) -> Answer {
    let capture = with_context(|state, _| state.capture_of(stream.address()))?;
    status.set(c_int::from(capture.is_some()))
}

/// Tells whether and in which capture a stream is. A graph is shown where it was there before.
pub(crate) fn cuStreamGetCaptureInfo_v2(
    stream: Ptr<CUstream_st>,
    status: Ptr<c_int>,
    id: Ptr<u64>,
    graph: Ptr<CUgraph>,
    dependencies: Ptr<*const CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let identity = with_context(|state, _| match state.capture_of(stream.address())? {
        Some(capture) => {
            let capture = state.captures.get(capture)?;
            Ok(Some((capture.identity, capture.graph.unwrap_or(0))))
        }
        None => Ok(None),
    })?;
    status.set(c_int::from(identity.is_some()))?;
    let (identity, into) = identity.unwrap_or((0, 0));
    id.set_if(identity);
    graph.set_if(pointer(into));
    dependencies.set_if(std::ptr::null());
    count.set_if(0);
    Ok(())
}

pub(crate) fn cuStreamGetCaptureInfo_v3(
    stream: Ptr<CUstream_st>,
    status: Ptr<c_int>,
    id: Ptr<u64>,
    graph: Ptr<CUgraph>,
    dependencies: Ptr<*const CUgraphNode>,
    edges: Ptr<*const CUgraphEdgeData>,
    count: Ptr<usize>,
) -> Answer {
    edges.set_if(std::ptr::null());
    cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count)
}

/// Captures never forbid unrelated calls here, so all modes are the relaxed one.
pub(crate) fn cuThreadExchangeStreamCaptureMode(mode: Ptr<c_int>) -> Answer {
    match mode.get()? {
        0..=2 => mode.set(2),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

pub(crate) fn cuGraphCreate(out: Ptr<CUgraph>, flags: c_uint) -> Answer {
    if flags != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    set(
        out,
        with(|state| Ok(state.graphs.insert(Graph::default())))?,
    )
}

pub(crate) fn cuGraphDestroy(graph: Ptr<CUgraph_st>) -> Answer {
    with(|state| match state.graphs.get(graph.address())?.embedded {
        true => Err(CUresult::INVALID_VALUE),
        false => state.destroy_graph(graph.address()),
    })
}

pub(crate) fn add(out: Ptr<CUgraphNode>, graph: Ptr<CUgraph_st>, work: Work) -> Answer {
    let node = with(|state| state.add_node(graph.address(), Task::Work(work)))?;
    set(out, node)
}

pub(crate) fn cuGraphAddKernelNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    _dependencies: Ptr<CUgraphNode>,
    _count: usize,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS>,
) -> Answer {
    add(out, graph, kernel_node(&params.get()?)?)
}

pub(crate) fn cuGraphAddKernelNode_v1(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    _dependencies: Ptr<CUgraphNode>,
    _count: usize,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Answer {
    add(out, graph, kernel_node(&params.get()?.into())?)
}

pub(crate) fn cuGraphAddMemcpyNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    _dependencies: Ptr<CUgraphNode>,
    _count: usize,
    params: Ptr<CUDA_MEMCPY3D>,
    _ctx: Ptr<CUctx_st>,
) -> Answer {
    add(out, graph, Work::Copy(Copy::from_3d(&params.get()?)?))
}

pub(crate) fn cuGraphAddMemsetNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    _dependencies: Ptr<CUgraphNode>,
    _count: usize,
    params: Ptr<CUDA_MEMSET_NODE_PARAMS>,
    _ctx: Ptr<CUctx_st>,
) -> Answer {
    let p = params.get()?;
    let fill = Fill::rows(p.dst, p.pitch, p.value, p.element_size, p.width, p.height)?;
    add(out, graph, Work::Fill(fill))
}

pub(crate) fn cuGraphAddHostNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    _dependencies: Ptr<CUgraphNode>,
    _count: usize,
    params: Ptr<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    let p = params.get()?;
    let callback = p.callback.ok_or(CUresult::INVALID_VALUE)?;
    let data = p.user_data.expose_provenance() as u64;
    add(out, graph, Work::Host(Call::Plain(callback, data)))
}

pub(crate) fn cuGraphAddEmptyNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    _dependencies: Ptr<CUgraphNode>,
    _count: usize,
) -> Answer {
    add(out, graph, Work::Empty)
}

pub(crate) fn cuGraphGetNodes(
    graph: Ptr<CUgraph_st>,
    nodes: Ptr<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let found = with(|state| Ok(state.graphs.get(graph.address())?.nodes.clone()))?;
    if nodes.is_null() {
        return count.set(found.len());
    }
    let room = count.get()?;
    for index in 0..room {
        // Places that are left over are cleared, as the documentation says.
        let node = found
            .get(index)
            .map_or(std::ptr::null_mut(), |&node| pointer(node));
        nodes.at(index).set(node)?;
    }
    count.set(found.len().min(room))
}

pub(crate) fn cuGraphNodeGetType(node: Ptr<CUgraphNode_st>, kind: Ptr<c_int>) -> Answer {
    kind.set(with(|state| {
        Ok(state.nodes.get(node.address())?.task.kind())
    })?)
}
