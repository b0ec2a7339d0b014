//! Edges of graphs, and lists of nodes.
//!
//! Departure: an edge is always a plain one, which waits for all of a node; what edge data asks for
//! is less, so an order that keeps the plain one keeps that too.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_uint};
use std::fmt::Write;

use driver::sys::{
    CUgraph_st, CUgraphEdgeData, CUgraphNode, CUgraphNode_st, CUresult, CUstream_st,
};

use crate::Answer;
use crate::graph::listed;
use crate::node::Task;
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::pointer;
use crate::work::Work;

impl State {
    /// The nodes of a graph in an order that its edges allow, else in that of adding.
    pub(crate) fn ordered(&self, graph: u64) -> Result<Vec<u64>, CUresult> {
        let nodes = &self.graphs.get(graph)?.nodes;
        let place: BTreeMap<u64, usize> = nodes.iter().zip(0..).map(|(&n, at)| (n, at)).collect();
        let mut after: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut waiting: BTreeMap<u64, usize> = BTreeMap::new();
        let mut ready = BTreeSet::new();
        for (&node, &at) in &place {
            let before = &self.nodes.get(node)?.dependencies;
            for &other in before {
                after.entry(other).or_default().push(node);
            }
            match before.len() {
                0 => drop(ready.insert(at)),
                count => drop(waiting.insert(node, count)),
            }
        }
        let mut order = Vec::with_capacity(nodes.len());
        while let Some(at) = ready.pop_first() {
            let Some(&node) = nodes.get(at) else { break };
            order.push(node);
            for next in after.remove(&node).unwrap_or_default() {
                let left = waiting.get_mut(&next).ok_or(CUresult::INVALID_VALUE)?;
                *left -= 1;
                if *left == 0 {
                    ready.insert(place[&next]);
                }
            }
        }
        // What is left waits for itself.
        match order.len() == nodes.len() {
            true => Ok(order),
            false => Err(CUresult::INVALID_VALUE),
        }
    }

    /// All edges, from and to.
    fn edges(&self, graph: u64) -> Result<Vec<(u64, u64)>, CUresult> {
        let mut edges = Vec::new();
        for &to in &self.graphs.get(graph)?.nodes {
            let from = &self.nodes.get(to)?.dependencies;
            edges.extend(from.iter().map(|&from| (from, to)));
        }
        Ok(edges)
    }

    /// A graph as Graphviz reads it; `detail` adds what kernels are started with.
    fn drawn(&self, graph: u64, detail: bool, text: &mut String) -> Result<(), CUresult> {
        // Writing to a text cannot fail.
        for &node in &self.graphs.get(graph)?.nodes {
            let mut label = String::new();
            match &self.nodes.get(node)?.task {
                Task::Work(Work::Launch(function, launch)) => {
                    let name = &self.functions.get(*function)?.name;
                    let _ = write!(label, "KERNEL\\n{}", name.to_string_lossy());
                    if detail {
                        let (grid, block) = (launch.grid, launch.block);
                        let _ = write!(label, "\\n<<<{grid:?}, {block:?}>>>");
                    }
                }
                Task::Work(work) => label.push_str(word(work)),
                Task::Child(_) => label.push_str("GRAPH"),
                Task::Conditional(_) => label.push_str("CONDITIONAL"),
            }
            let _ = writeln!(text, "  \"node_{node:x}\" [label=\"{label}\"];");
        }
        for (from, to) in self.edges(graph)? {
            let _ = writeln!(text, "  \"node_{from:x}\" -> \"node_{to:x}\";");
        }
        for &node in &self.graphs.get(graph)?.nodes {
            for &child in self.nodes.get(node)?.task.inside() {
                let _ = writeln!(text, "  subgraph \"cluster_{node:x}\" {{");
                self.drawn(child, detail, text)?;
                let _ = writeln!(text, "  }}");
            }
        }
        Ok(())
    }
}

fn word(work: &Work) -> &'static str {
    match work {
        Work::Launch(..) => "KERNEL",
        Work::Copy(_) => "MEMCPY",
        Work::Fill(_) => "MEMSET",
        Work::Host(_) => "HOST",
        Work::Record(_) => "EVENT_RECORD",
        Work::Wait(_) => "EVENT_WAIT",
        Work::Alloc(_) => "MEM_ALLOC",
        Work::Free(_) => "MEM_FREE",
        Work::Empty => "EMPTY",
    }
}

/// Gives a list out as these functions do: its length alone, or as many as there is room for, the
/// places that are left over being cleared.
fn give(found: &[u64], nodes: Ptr<CUgraphNode>, count: Ptr<usize>) -> Answer {
    if nodes.is_null() {
        return count.set(found.len());
    }
    let room = count.get()?;
    for index in 0..room {
        let node = found.get(index).copied().unwrap_or(0);
        nodes.at(index).set(pointer(node))?;
    }
    count.set(found.len().min(room))
}

/// Tells that all edges are plain ones.
fn plain(edges: Ptr<CUgraphEdgeData>, count: Ptr<usize>) -> Answer {
    if edges.is_null() {
        return Ok(());
    }
    for index in 0..count.get()? {
        edges.at(index).set(CUgraphEdgeData::default())?;
    }
    Ok(())
}

pub(crate) fn cuGraphGetNodes(
    graph: Ptr<CUgraph_st>,
    nodes: Ptr<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let found = with(|state| Ok(state.graphs.get(graph.address())?.nodes.clone()))?;
    give(&found, nodes, count)
}

pub(crate) fn cuGraphGetRootNodes(
    graph: Ptr<CUgraph_st>,
    nodes: Ptr<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let found = with(|state| {
        let mut roots = Vec::new();
        for &node in &state.graphs.get(graph.address())?.nodes {
            if state.nodes.get(node)?.dependencies.is_empty() {
                roots.push(node);
            }
        }
        Ok(roots)
    })?;
    give(&found, nodes, count)
}

pub(crate) fn cuGraphGetEdges_v1(
    graph: Ptr<CUgraph_st>,
    from: Ptr<CUgraphNode>,
    to: Ptr<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    if from.is_null() != to.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    let edges = with(|state| state.edges(graph.address()))?;
    let (sources, targets): (Vec<u64>, Vec<u64>) = edges.into_iter().unzip();
    if !from.is_null() {
        let room = count.get()?;
        give(&sources, from, count)?;
        count.set(room)?;
    }
    give(&targets, to, count)
}

pub(crate) fn cuGraphGetEdges(
    graph: Ptr<CUgraph_st>,
    from: Ptr<CUgraphNode>,
    to: Ptr<CUgraphNode>,
    data: Ptr<CUgraphEdgeData>,
    count: Ptr<usize>,
) -> Answer {
    cuGraphGetEdges_v1(graph, from, to, count)?;
    if from.is_null() {
        return Ok(());
    }
    plain(data, count)
}

pub(crate) fn cuGraphNodeGetDependencies_v1(
    node: Ptr<CUgraphNode_st>,
    nodes: Ptr<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let found = with(|state| Ok(state.nodes.get(node.address())?.dependencies.clone()))?;
    give(&found, nodes, count)
}

pub(crate) fn cuGraphNodeGetDependencies(
    node: Ptr<CUgraphNode_st>,
    nodes: Ptr<CUgraphNode>,
    data: Ptr<CUgraphEdgeData>,
    count: Ptr<usize>,
) -> Answer {
    cuGraphNodeGetDependencies_v1(node, nodes, count)?;
    if nodes.is_null() {
        return Ok(());
    }
    plain(data, count)
}

pub(crate) fn cuGraphNodeGetDependentNodes_v1(
    node: Ptr<CUgraphNode_st>,
    nodes: Ptr<CUgraphNode>,
    count: Ptr<usize>,
) -> Answer {
    let found = with(|state| {
        let graph = state.nodes.get(node.address())?.graph;
        let edges = state.edges(graph)?.into_iter();
        let after = edges.filter(|&(from, _)| from == node.address());
        Ok(after.map(|(_, to)| to).collect::<Vec<_>>())
    })?;
    give(&found, nodes, count)
}

pub(crate) fn cuGraphNodeGetDependentNodes(
    node: Ptr<CUgraphNode_st>,
    nodes: Ptr<CUgraphNode>,
    data: Ptr<CUgraphEdgeData>,
    count: Ptr<usize>,
) -> Answer {
    cuGraphNodeGetDependentNodes_v1(node, nodes, count)?;
    if nodes.is_null() {
        return Ok(());
    }
    plain(data, count)
}

/// Pairs of nodes from two arrays.
fn pairs(
    from: Ptr<CUgraphNode>,
    to: Ptr<CUgraphNode>,
    count: usize,
) -> Result<Vec<(u64, u64)>, CUresult> {
    let pair = |index| {
        let (from, to) = (from.at(index).follow()?, to.at(index).follow()?);
        Ok((from.address(), to.address()))
    };
    (0..count).map(pair).collect()
}

pub(crate) fn cuGraphAddDependencies_v1(
    graph: Ptr<CUgraph_st>,
    from: Ptr<CUgraphNode>,
    to: Ptr<CUgraphNode>,
    count: usize,
) -> Answer {
    let pairs = pairs(from, to, count)?;
    with(|state| {
        let nodes = &state.graphs.get(graph.address())?.nodes;
        for (from, to) in &pairs {
            let there = nodes.contains(from) && nodes.contains(to) && from != to;
            // An edge that is there already is an error.
            if !there || state.nodes.get(*to)?.dependencies.contains(from) {
                return Err(CUresult::INVALID_VALUE);
            }
        }
        for (from, to) in pairs {
            let before = &mut state.nodes.get_mut(to)?.dependencies;
            if !before.contains(&from) {
                before.push(from);
            }
        }
        Ok(())
    })
}

pub(crate) fn cuGraphAddDependencies(
    graph: Ptr<CUgraph_st>,
    from: Ptr<CUgraphNode>,
    to: Ptr<CUgraphNode>,
    _data: Ptr<CUgraphEdgeData>,
    count: usize,
) -> Answer {
    cuGraphAddDependencies_v1(graph, from, to, count)
}

pub(crate) fn cuGraphRemoveDependencies_v1(
    graph: Ptr<CUgraph_st>,
    from: Ptr<CUgraphNode>,
    to: Ptr<CUgraphNode>,
    count: usize,
) -> Answer {
    let pairs = pairs(from, to, count)?;
    with(|state| {
        let nodes = &state.graphs.get(graph.address())?.nodes;
        for (from, to) in &pairs {
            if !nodes.contains(to) || !state.nodes.get(*to)?.dependencies.contains(from) {
                return Err(CUresult::INVALID_VALUE);
            }
        }
        for (from, to) in pairs {
            let before = &mut state.nodes.get_mut(to)?.dependencies;
            before.retain(|&node| node != from);
        }
        Ok(())
    })
}

pub(crate) fn cuGraphRemoveDependencies(
    graph: Ptr<CUgraph_st>,
    from: Ptr<CUgraphNode>,
    to: Ptr<CUgraphNode>,
    _data: Ptr<CUgraphEdgeData>,
    count: usize,
) -> Answer {
    cuGraphRemoveDependencies_v1(graph, from, to, count)
}

/// `CU_STREAM_SET_CAPTURE_DEPENDENCIES`; without it, dependencies are added.
const REPLACE: c_uint = 1;

pub(crate) fn cuStreamUpdateCaptureDependencies_v1(
    stream: Ptr<CUstream_st>,
    nodes: Ptr<CUgraphNode>,
    count: usize,
    flags: c_uint,
) -> Answer {
    let given = listed(nodes, count)?;
    with_context(|state, _| {
        let capture = state.capture_of(stream.address())?;
        let capture = capture.ok_or(CUresult::ILLEGAL_STATE)?;
        let graph = state.captures.get(capture)?.graph;
        let nodes = &state.graphs.get(graph)?.nodes;
        if flags & !REPLACE != 0 || !given.iter().all(|node| nodes.contains(node)) {
            return Err(CUresult::INVALID_VALUE);
        }
        let tail = &mut state.streams.get_mut(stream.address())?.tail;
        match flags & REPLACE != 0 {
            true => tail.clear(),
            false => tail.retain(|node| !given.contains(node)),
        }
        tail.extend(given);
        Ok(())
    })
}

pub(crate) fn cuStreamUpdateCaptureDependencies(
    stream: Ptr<CUstream_st>,
    nodes: Ptr<CUgraphNode>,
    _data: Ptr<CUgraphEdgeData>,
    count: usize,
    flags: c_uint,
) -> Answer {
    cuStreamUpdateCaptureDependencies_v1(stream, nodes, count, flags)
}

/// Flags that ask for more than names: all of `CUgraphDebugDot_flags`.
pub(crate) fn cuGraphDebugDotPrint(
    graph: Ptr<CUgraph_st>,
    path: Ptr<c_char>,
    flags: c_uint,
) -> Answer {
    let mut text = String::from("digraph dot {\n");
    with(|state| state.drawn(graph.address(), flags != 0, &mut text))?;
    text.push_str("}\n");
    std::fs::write(path.text()?, text).map_err(|_| CUresult::OPERATING_SYSTEM)
}
