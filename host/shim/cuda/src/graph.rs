//! Graphs: work that is captured or put together by hand, and run later in the order it was added.
//!
//! A node can only depend on nodes that were there before it, so that order satisfies every
//! dependency; which dependencies were given does not matter.

use std::ffi::{c_char, c_int, c_uint};

use driver::sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS, CUctx_st, CUgraph, CUgraph_st, CUgraphEdgeData, CUgraphExec,
    CUgraphExec_st, CUgraphNode, CUgraphNode_st, CUresult, CUstream_st,
};

use crate::Answer;
use crate::copy::{Copy, Fill};
use crate::launch::{Shape, prepare};
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::stream::Capture;
use crate::table::{pointer, set};
use crate::work::{Call, Work, run};

/// A graph under construction: its nodes in the order they were added.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<u64>,
}

impl State {
    fn add_node(&mut self, graph: u64, work: Work) -> Result<u64, CUresult> {
        self.graphs.get(graph)?;
        let node = self.nodes.insert(work);
        self.graphs.get_mut(graph)?.nodes.push(node);
        Ok(node)
    }

    fn work_of(&self, graph: u64) -> Result<Vec<Work>, CUresult> {
        let nodes = &self.graphs.get(graph)?.nodes;
        nodes
            .iter()
            .map(|&node| self.nodes.get(node).cloned())
            .collect()
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

pub(crate) fn cuStreamBeginCapture(stream: Ptr<CUstream_st>, mode: c_int) -> Answer {
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
        state.allocations += 1;
        let identity = state.allocations;
        let capture = Capture {
            context,
            origin,
            work: Vec::new(),
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
        if state.captures.get(capture)?.origin != stream.address() {
            return Err(CUresult::STREAM_CAPTURE_UNMATCHED);
        }
        let graph = state.graphs.insert(Graph::default());
        for work in state.end_capture(capture) {
            state.add_node(graph, work)?;
        }
        Ok(graph)
    })?;
    set(out, graph)
}

pub(crate) fn cuStreamIsCapturing(stream: Ptr<CUstream_st>, status: Ptr<c_int>) -> Answer {
    let capture = with_context(|state, _| state.capture_of(stream.address()))?;
    status.set(c_int::from(capture.is_some()))
}

/// Tells whether and in which capture a stream is; the graph behind it is not shown.
pub(crate) fn cuStreamGetCaptureInfo_v2(
    stream: Ptr<CUstream_st>,
    status: Ptr<c_int>,
    id: Ptr<u64>,
    graph: Ptr<CUgraph>,
    dependencies: Ptr<*const CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let identity = with_context(|state, _| match state.capture_of(stream.address())? {
        Some(capture) => Ok(Some(state.captures.get(capture)?.identity)),
        None => Ok(None),
    })?;
    status.set(c_int::from(identity.is_some()))?;
    id.set_if(identity.unwrap_or(0));
    graph.set_if(std::ptr::null_mut());
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
    with(|state| {
        for node in state.graphs.remove(graph.address())?.nodes {
            let _ = state.nodes.remove(node);
        }
        Ok(())
    })
}

fn add(out: Ptr<CUgraphNode>, graph: Ptr<CUgraph_st>, work: Work) -> Answer {
    set(out, with(|state| state.add_node(graph.address(), work))?)
}

fn kernel_node(p: &CUDA_KERNEL_NODE_PARAMS) -> Result<Work, CUresult> {
    // A kernel and a function have the same handle here; newer runtimes set only the kernel.
    let function = if p.func.is_null() {
        p.kern.addr()
    } else {
        p.func.addr()
    };
    let shape = Shape {
        grid: [p.grid_dim_x, p.grid_dim_y, p.grid_dim_z],
        block: [p.block_dim_x, p.block_dim_y, p.block_dim_z],
        cluster: [1; 3],
        shared: p.shared_mem_bytes,
        cooperative: false,
    };
    // SAFETY: both arrays are part of what the caller of the entry point promises.
    let (params, extra) = unsafe { (Ptr::new(p.kernel_params), Ptr::new(p.extra)) };
    prepare(function as u64, &shape, params, extra)
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
    let p = params.get()?;
    let params = CUDA_KERNEL_NODE_PARAMS {
        func: p.func,
        grid_dim_x: p.grid_dim_x,
        grid_dim_y: p.grid_dim_y,
        grid_dim_z: p.grid_dim_z,
        block_dim_x: p.block_dim_x,
        block_dim_y: p.block_dim_y,
        block_dim_z: p.block_dim_z,
        shared_mem_bytes: p.shared_mem_bytes,
        kernel_params: p.kernel_params,
        extra: p.extra,
        ..CUDA_KERNEL_NODE_PARAMS::default()
    };
    add(out, graph, kernel_node(&params)?)
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
        Ok(match state.nodes.get(node.address())? {
            Work::Launch(..) => 0,
            Work::Copy(_) => 1,
            Work::Fill(_) => 2,
            Work::Host(_) => 3,
            Work::Empty => 5,
            Work::Record(_) => 7,
        })
    })?)
}

pub(crate) fn cuGraphInstantiateWithFlags(
    out: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    _flags: u64,
) -> Answer {
    let exec = with_context(|state, _| {
        let work = state.work_of(graph.address())?;
        Ok(state.execs.insert(work))
    })?;
    set(out, exec)
}

pub(crate) fn cuGraphInstantiate_v2(
    out: Ptr<CUgraphExec>,
    graph: Ptr<CUgraph_st>,
    error_node: Ptr<CUgraphNode>,
    log: Ptr<c_char>,
    room: usize,
) -> Answer {
    error_node.set_if(std::ptr::null_mut());
    if !log.is_null() && room > 0 {
        log.set_text("", room)?;
    }
    cuGraphInstantiateWithFlags(out, graph, 0)
}

pub(crate) fn cuGraphLaunch(exec: Ptr<CUgraphExec_st>, stream: Ptr<CUstream_st>) -> Answer {
    let work = with_context(|state, _| {
        let work = state.execs.get(exec.address())?.clone();
        match state.capture_of(stream.address())? {
            Some(capture) => {
                state.captures.get_mut(capture)?.work.extend(work);
                Ok(Vec::new())
            }
            None => Ok(work),
        }
    })?;
    work.iter().try_for_each(run)
}

pub(crate) fn cuGraphUpload(exec: Ptr<CUgraphExec_st>, stream: Ptr<CUstream_st>) -> Answer {
    with_context(|state, _| {
        state.check_stream(stream.address())?;
        state.execs.get(exec.address()).map(drop)
    })
}

pub(crate) fn cuGraphExecDestroy(exec: Ptr<CUgraphExec_st>) -> Answer {
    with(|state| state.execs.remove(exec.address()).map(drop))
}
