//! Graphs: work that is captured or put together by hand, and run later.
//!
//! A graph runs in the order in which its nodes were added, as far as its edges allow.
//! Edges are in `edges`, what is inside a node is in `node` and `node_params`, executable graphs are
//! in `graph_exec`.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint};

use driver::sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1,
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUctx_st, CUdeviceptr,
    CUevent_st, CUgraph, CUgraph_st, CUgraphEdgeData, CUgraphNode, CUgraphNode_st, CUresult,
    CUstream_st,
};

use crate::Answer;
use crate::copy::{Copy, Fill};
use crate::node::{Node, Task, kernel_node};
use crate::node_params::{add_alloc, free_node, host_node};
use crate::order;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::stream::Capture;
use crate::table::{pointer, set};
use crate::user_object::{Held, settle};
use crate::work::Work;

/// A graph under construction: its nodes in the order they were added.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<u64>,
    /// It belongs to a node of another graph, and goes with it.
    pub(crate) embedded: bool,
    /// What it keeps alive.
    pub(crate) objects: Held,
}

impl State {
    pub(crate) fn add_node(
        &mut self,
        graph: u64,
        task: Task,
        before: Vec<u64>,
    ) -> Result<u64, CUresult> {
        let nodes = &self.graphs.get(graph)?.nodes;
        if !before.iter().all(|node| nodes.contains(node)) {
            return Err(CUresult::INVALID_VALUE);
        }
        let node = self.nodes.insert(Node::new(graph, task, before));
        self.graphs.get_mut(graph)?.nodes.push(node);
        Ok(node)
    }

    /// Adds work of a stream to the graph of its capture.
    pub(crate) fn captured(&mut self, stream: u64, capture: u64, work: Work) -> Answer {
        let found = self.captures.get(capture)?;
        if found.invalid {
            return Err(CUresult::STREAM_CAPTURE_INVALIDATED);
        }
        let graph = found.graph;
        let tail = self.streams.get(stream)?.tail.clone();
        let node = self.add_node(graph, Task::Work(work), tail)?;
        self.streams.get_mut(stream)?.tail = vec![node];
        Ok(())
    }

    /// Lets go of all streams of a capture.
    fn end_capture(&mut self, capture: u64) -> Result<Capture, CUresult> {
        for (_, stream) in self.streams.iter_mut() {
            if stream.capture == Some(capture) {
                stream.capture = None;
                stream.tail.clear();
            }
        }
        self.captures.remove(capture)
    }

    /// Ends a capture that has failed.
    pub(crate) fn drop_capture(&mut self, capture: u64) -> Answer {
        let gone = self.end_capture(capture)?;
        if gone.own {
            self.destroy_graph(gone.graph)?;
        }
        Ok(())
    }

    /// Whether all streams of a capture have come together in the one that began it.
    fn joined(&self, capture: u64) -> Result<bool, CUresult> {
        let found = self.captures.get(capture)?;
        let origin = found.origin;
        let mut seen = BTreeSet::new();
        let mut next = self.streams.get(origin)?.tail.clone();
        while let Some(node) = next.pop() {
            // A node that the program has destroyed is nobody's dependency.
            if seen.insert(node)
                && let Ok(node) = self.nodes.get(node)
            {
                next.extend(&node.dependencies);
            }
        }
        let streams = self.streams.iter().map(|(_, stream)| stream);
        let streams = streams.filter(|stream| stream.capture == Some(capture));
        let mut tails = streams
            .map(|stream| &stream.tail)
            .chain([&found.left])
            .flatten();
        Ok(tails.all(|node| seen.contains(node)))
    }
}

/// The nodes that an array of a program lists, each once.
pub(crate) fn listed(nodes: Ptr<CUgraphNode>, count: usize) -> Result<Vec<u64>, CUresult> {
    let mut found = Vec::new();
    for index in 0..count {
        let node = nodes.at(index).follow()?.address();
        if !found.contains(&node) {
            found.push(node);
        }
    }
    Ok(found)
}

/// Before CUDA 10.1 every capture was `CU_STREAM_CAPTURE_MODE_GLOBAL`.
pub(crate) fn cuStreamBeginCapture_v1(stream: Ptr<CUstream_st>) -> Answer {
    begin_capture(stream, 0, None, Vec::new())
}

pub(crate) fn cuStreamBeginCapture(stream: Ptr<CUstream_st>, mode: c_int) -> Answer {
    begin_capture(stream, mode, None, Vec::new())
}

pub(crate) fn cuStreamBeginCaptureToGraph(
    stream: Ptr<CUstream_st>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    _dependency_data: Ptr<CUgraphEdgeData>,
    count: usize,
    mode: c_int,
) -> Answer {
    let before = listed(dependencies, count)?;
    begin_capture(stream, mode, Some(graph.address()), before)
}

/// Begins a capture into a graph, or into a new one.
fn begin_capture(
    stream: Ptr<CUstream_st>,
    mode: c_int,
    graph: Option<u64>,
    before: Vec<u64>,
) -> Answer {
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
        let own = graph.is_none();
        let graph = match graph {
            Some(graph) => graph,
            None => state.graphs.insert(Graph::default()),
        };
        let nodes = &state.graphs.get(graph)?.nodes;
        if !before.iter().all(|node| nodes.contains(node)) {
            return Err(CUresult::INVALID_VALUE);
        }
        state.allocations += 1;
        let identity = state.allocations;
        let capture = Capture {
            context,
            origin,
            graph,
            own,
            identity,
            shown: Vec::new(),
            thread: order::thread(),
            mode,
            invalid: false,
            left: Vec::new(),
        };
        let capture = state.captures.insert(capture);
        let stream = state.streams.get_mut(origin)?;
        (stream.capture, stream.tail) = (Some(capture), before);
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
        if found.invalid {
            state.drop_capture(capture)?;
            return Err(CUresult::STREAM_CAPTURE_INVALIDATED);
        }
        if !state.joined(capture)? {
            state.drop_capture(capture)?;
            return Err(CUresult::STREAM_CAPTURE_UNJOINED);
        }
        Ok(state.end_capture(capture)?.graph)
    })?;
    set(out, graph)
}

/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`
const ACTIVE: c_int = 1;
/// `CU_STREAM_CAPTURE_STATUS_INVALIDATED`
const INVALIDATED: c_int = 2;

pub(crate) fn cuStreamIsCapturing(stream: Ptr<CUstream_st>, status: Ptr<c_int>) -> Answer {
    status.set(with_context(|state, _| {
        Ok(match state.capture_of(stream.address())? {
            Some(capture) if state.captures.get(capture)?.invalid => INVALIDATED,
            Some(_) => ACTIVE,
            None => 0,
        })
    })?)
}

/// Tells whether and in which capture a stream is, and what its next work depends on.
pub(crate) fn cuStreamGetCaptureInfo_v2(
    stream: Ptr<CUstream_st>,
    status: Ptr<c_int>,
    id: Ptr<u64>,
    graph: Ptr<CUgraph>,
    dependencies: Ptr<*const CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let found = with_context(|state, _| {
        let Some(capture) = state.capture_of(stream.address())? else {
            return Ok(None);
        };
        let tail = state.streams.get(stream.address())?.tail.clone();
        let capture = state.captures.get_mut(capture)?;
        if capture.invalid {
            return Ok(Some((INVALIDATED, capture.identity, 0, 0, 0)));
        }
        let room = tail.len();
        capture.shown = tail;
        let shown = capture.shown.as_ptr().expose_provenance();
        Ok(Some((ACTIVE, capture.identity, capture.graph, shown, room)))
    })?;
    let (now, identity, into, shown, room) = found.unwrap_or_default();
    status.set(now)?;
    id.set_if(identity);
    graph.set_if(pointer(into));
    dependencies.set_if(std::ptr::with_exposed_provenance(shown));
    count.set_if(room);
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
    })?;
    settle()
}

/// Where a node is added, and what before it.
struct NewNode {
    out: Ptr<CUgraphNode>,
    graph: u64,
    before: Vec<u64>,
}

impl NewNode {
    fn new(
        out: Ptr<CUgraphNode>,
        graph: Ptr<CUgraph_st>,
        dependencies: Ptr<CUgraphNode>,
        count: usize,
    ) -> Result<NewNode, CUresult> {
        Ok(NewNode {
            out,
            graph: graph.address(),
            before: listed(dependencies, count)?,
        })
    }

    fn add(self, work: Work) -> Answer {
        let NewNode { out, graph, before } = self;
        set(
            out,
            with(|state| state.add_node(graph, Task::Work(work), before))?,
        )
    }
}

pub(crate) fn cuGraphAddKernelNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS>,
) -> Answer {
    NewNode::new(out, graph, dependencies, count)?.add(kernel_node(&params.get()?)?)
}

pub(crate) fn cuGraphAddKernelNode_v1(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Answer {
    NewNode::new(out, graph, dependencies, count)?.add(kernel_node(&params.get()?.into())?)
}

pub(crate) fn cuGraphAddMemcpyNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    params: Ptr<CUDA_MEMCPY3D>,
    _ctx: Ptr<CUctx_st>,
) -> Answer {
    let params = params.get()?;
    let before = listed(dependencies, count)?;
    let work = Work::Copy(Copy::from_3d(&params)?);
    let node = with(|state| {
        let node = state.add_node(graph.address(), Task::Work(work), before)?;
        state.nodes.get_mut(node)?.given = Some(Box::new(params));
        Ok(node)
    })?;
    set(out, node)
}

pub(crate) fn cuGraphAddMemsetNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    params: Ptr<CUDA_MEMSET_NODE_PARAMS>,
    _ctx: Ptr<CUctx_st>,
) -> Answer {
    let fill = Fill::of_node(&params.get()?)?;
    NewNode::new(out, graph, dependencies, count)?.add(Work::Fill(fill))
}

pub(crate) fn cuGraphAddHostNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    params: Ptr<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    let work = host_node(&params.get()?)?;
    NewNode::new(out, graph, dependencies, count)?.add(work)
}

pub(crate) fn cuGraphAddEventRecordNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    event: Ptr<CUevent_st>,
) -> Answer {
    with(|state| state.events.get(event.address()).map(drop))?;
    NewNode::new(out, graph, dependencies, count)?.add(Work::Record(event.address()))
}

pub(crate) fn cuGraphAddEventWaitNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    event: Ptr<CUevent_st>,
) -> Answer {
    with(|state| state.events.get(event.address()).map(drop))?;
    NewNode::new(out, graph, dependencies, count)?.add(Work::Wait(event.address()))
}

pub(crate) fn cuGraphAddMemAllocNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    params: Ptr<CUDA_MEM_ALLOC_NODE_PARAMS>,
) -> Answer {
    let mut given = params.get()?;
    let before = listed(dependencies, count)?;
    let node = add_alloc(graph.address(), &mut given, before)?;
    params.set(given)?;
    set(out, node)
}

pub(crate) fn cuGraphAddMemFreeNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    address: CUdeviceptr,
) -> Answer {
    let work = free_node(address)?;
    NewNode::new(out, graph, dependencies, count)?.add(work)
}

pub(crate) fn cuGraphAddEmptyNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
) -> Answer {
    NewNode::new(out, graph, dependencies, count)?.add(Work::Empty)
}

pub(crate) fn cuGraphNodeGetType(node: Ptr<CUgraphNode_st>, kind: Ptr<c_int>) -> Answer {
    kind.set(with(|state| {
        Ok(state.nodes.get(node.address())?.task.kind())
    })?)
}
