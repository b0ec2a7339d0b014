//! Nodes of graphs: their parameters, child graphs, and copies of graphs.

use std::collections::BTreeMap;
use std::ffi::c_int;

use driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUgraph, CUgraph_st,
    CUgraphEdgeData, CUgraphNode, CUgraphNode_st, CUgraphNodeParams, CUlaunchAttributeID, CUresult,
    CUstreamAttrValue, launch_attribute,
};
use simt::Launch;

use crate::Answer;
use crate::conditional::{Conditional, add_conditional};
use crate::graph::{Graph, listed};
use crate::launch::{Shape, prepare};
use crate::node_params::{add_alloc, set_work, work_of};
use crate::pointer::Ptr;
use crate::state::{State, with};
use crate::table::{pointer, set};
use crate::user_object::settle;
use crate::work::Work;

/// A node of a graph.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) graph: u64,
    pub(crate) task: Task,
    /// The node that it is a copy of, by handle; itself if it is none.
    original: u64,
    /// Addresses of a kernel's parameters, once the program has asked for them.
    shown: Vec<u64>,
    /// The nodes that come before it, without repetition.
    pub(crate) dependencies: Vec<u64>,
    /// A copy as the program described it.
    pub(crate) given: Option<Box<CUDA_MEMCPY3D>>,
    /// What a kernel has been given that changes nothing here, such as a priority.
    attributes: BTreeMap<CUlaunchAttributeID, CUstreamAttrValue>,
}

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Work(Work),
    /// The nodes of a graph that belongs to this one.
    Child(u64),
    /// Those of one of several such graphs, or of none.
    Conditional(Conditional),
}

impl Task {
    /// The graphs that belong to it.
    pub(crate) fn inside(&self) -> &[u64] {
        match self {
            Task::Work(_) => &[],
            Task::Child(child) => std::slice::from_ref(child),
            Task::Conditional(of) => &of.bodies,
        }
    }

    /// The number of its kind in `cuda.h`.
    pub(crate) fn kind(&self) -> c_int {
        match self {
            Task::Child(_) => CUgraphNodeParams::GRAPH,
            Task::Conditional(_) => CUgraphNodeParams::CONDITIONAL,
            Task::Work(Work::Launch(..)) => CUgraphNodeParams::KERNEL,
            Task::Work(Work::Copy(_)) => CUgraphNodeParams::COPY,
            Task::Work(Work::Fill(_)) => CUgraphNodeParams::FILL,
            Task::Work(Work::Host(_)) => CUgraphNodeParams::HOST,
            Task::Work(Work::Empty) => CUgraphNodeParams::EMPTY,
            Task::Work(Work::Wait(_)) => CUgraphNodeParams::WAIT,
            Task::Work(Work::Record(_)) => CUgraphNodeParams::RECORD,
            Task::Work(Work::Alloc(_)) => CUgraphNodeParams::ALLOC,
            Task::Work(Work::Free(_)) => CUgraphNodeParams::FREE,
        }
    }
}

impl Node {
    pub(crate) fn new(graph: u64, task: Task, dependencies: Vec<u64>) -> Node {
        Node {
            graph,
            task,
            original: 0,
            shown: Vec::new(),
            dependencies,
            given: None,
            attributes: BTreeMap::new(),
        }
    }

    fn kernel(&self) -> Result<(u64, &Launch), CUresult> {
        match &self.task {
            Task::Work(Work::Launch(function, launch)) => Ok((*function, launch)),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }
}

impl State {
    /// A copy of a graph with all that is in it.
    fn clone_graph(&mut self, graph: u64, embedded: bool) -> Result<u64, CUresult> {
        let from = self.graphs.get(graph)?;
        let (nodes, objects) = (from.nodes.clone(), from.objects.clone());
        self.hold(&objects)?;
        let copy = self.graphs.insert(Graph {
            nodes: Vec::new(),
            embedded,
            objects,
        });
        let mut copies = BTreeMap::new();
        for &original in &nodes {
            let task = match self.nodes.get(original)?.task.clone() {
                Task::Child(child) => Task::Child(self.clone_graph(child, true)?),
                Task::Conditional(of) => {
                    let bodies = of.bodies.iter();
                    let bodies = bodies.map(|&body| self.clone_graph(body, true));
                    let bodies = bodies.collect::<Result<_, _>>()?;
                    Task::Conditional(Conditional { bodies, ..of })
                }
                work @ Task::Work(_) => work,
            };
            let old = self.nodes.get(original)?;
            let (given, attributes) = (old.given.clone(), old.attributes.clone());
            let node = self.add_node(copy, task, Vec::new())?;
            copies.insert(original, node);
            let node = self.nodes.get_mut(node)?;
            (node.original, node.given, node.attributes) = (original, given, attributes);
        }
        // An edge may lead to a node that was added before its source.
        for (original, &copy) in &copies {
            let old = &self.nodes.get(*original)?.dependencies;
            let new = old.iter().filter_map(|node| copies.get(node).copied());
            let new = new.collect();
            self.nodes.get_mut(copy)?.dependencies = new;
        }
        Ok(copy)
    }

    /// Removes a graph with all that is in it.
    pub(crate) fn destroy_graph(&mut self, graph: u64) -> Answer {
        let gone = self.graphs.remove(graph)?;
        self.let_go(&gone.objects)?;
        for node in gone.nodes {
            for &inside in self.nodes.remove(node)?.task.inside() {
                self.destroy_graph(inside)?;
            }
        }
        self.collect_graph_memory();
        self.collect_conditions();
        Ok(())
    }

    /// Whether `graph` is `inner` or has it inside.
    fn contains(&self, graph: u64, inner: u64) -> Result<bool, CUresult> {
        if graph == inner {
            return Ok(true);
        }
        for &node in &self.graphs.get(graph)?.nodes {
            for &inside in self.nodes.get(node)?.task.inside() {
                if self.contains(inside, inner)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn set_kernel(&mut self, node: u64, work: Work) -> Answer {
        let node = self.nodes.get_mut(node)?;
        let work = with_attributes_of(node.kernel()?.1, work);
        node.task = Task::Work(work);
        node.shown.clear();
        Ok(())
    }
}

/// Work with what the attributes of a kernel's node say; new parameters leave them as they are.
pub(crate) fn with_attributes_of(old: &Launch, mut work: Work) -> Work {
    if let Work::Launch(_, launch) = &mut work {
        (launch.cluster, launch.cooperative) = (old.cluster, old.cooperative);
    }
    work
}

/// The launch that a kernel node stands for.
pub(crate) fn kernel_node(p: &CUDA_KERNEL_NODE_PARAMS) -> Result<Work, CUresult> {
    // Newer runtimes set only the kernel.
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
        programmatic: false,
    };
    // SAFETY: both arrays are part of what the caller of the entry point promises.
    let (params, extra) = unsafe { (Ptr::new(p.kernel_params), Ptr::new(p.extra)) };
    prepare(function as u64, &shape, params, extra)
}

pub(crate) fn cuGraphAddNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    _dependency_data: Ptr<CUgraphEdgeData>,
    count: usize,
    params: Ptr<CUgraphNodeParams>,
) -> Answer {
    cuGraphAddNode_v1(out, graph, dependencies, count, params)
}

pub(crate) fn cuGraphAddNode_v1(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    params: Ptr<CUgraphNodeParams>,
) -> Answer {
    let mut given = params.get()?;
    let before = listed(dependencies, count)?;
    if let Some(child) = given.child() {
        // The program gets the embedded graph back, as it would from a node that it asks.
        let node = add_child(graph.address(), child, before)?;
        given.value[0] = with(|state| child_of(state, node))?;
        params.set(given)?;
        return set(out, node);
    }
    if let Some(mut alloc) = given.alloc() {
        let node = add_alloc(graph.address(), &mut alloc, before)?;
        params.set(given.with_alloc(alloc))?;
        return set(out, node);
    }
    if given.kind == CUgraphNodeParams::CONDITIONAL {
        let node = add_conditional(graph.address(), &mut given, before)?;
        params.set(given)?;
        return set(out, node);
    }
    let work = work_of(&given)?;
    let copy = given.copy().map(Box::new);
    let node = with(|state| {
        let node = state.add_node(graph.address(), Task::Work(work), before)?;
        state.nodes.get_mut(node)?.given = copy;
        Ok(node)
    })?;
    set(out, node)
}

fn add_child(graph: u64, child: u64, before: Vec<u64>) -> Result<u64, CUresult> {
    with(|state| {
        state.graphs.get(graph)?;
        if state.contains(child, graph)? {
            return Err(CUresult::INVALID_VALUE);
        }
        let embedded = state.clone_graph(child, true)?;
        state.add_node(graph, Task::Child(embedded), before)
    })
}

fn child_of(state: &State, node: u64) -> Result<u64, CUresult> {
    match state.nodes.get(node)?.task {
        Task::Child(graph) => Ok(graph),
        Task::Work(_) | Task::Conditional(_) => Err(CUresult::INVALID_VALUE),
    }
}

pub(crate) fn cuGraphAddChildGraphNode(
    out: Ptr<CUgraphNode>,
    graph: Ptr<CUgraph_st>,
    dependencies: Ptr<CUgraphNode>,
    count: usize,
    child: Ptr<CUgraph_st>,
) -> Answer {
    let before = listed(dependencies, count)?;
    set(out, add_child(graph.address(), child.address(), before)?)
}

pub(crate) fn cuGraphChildGraphNodeGetGraph(
    node: Ptr<CUgraphNode_st>,
    out: Ptr<CUgraph>,
) -> Answer {
    set(out, with(|state| child_of(state, node.address()))?)
}

pub(crate) fn cuGraphClone(out: Ptr<CUgraph>, original: Ptr<CUgraph_st>) -> Answer {
    set(
        out,
        with(|state| state.clone_graph(original.address(), false))?,
    )
}

pub(crate) fn cuGraphNodeFindInClone(
    out: Ptr<CUgraphNode>,
    original: Ptr<CUgraphNode_st>,
    clone: Ptr<CUgraph_st>,
) -> Answer {
    let found = with(|state| {
        let nodes = &state.graphs.get(clone.address())?.nodes;
        let mut nodes = nodes.iter().copied();
        let is = |node: &u64| {
            let node = state.nodes.get(*node);
            node.is_ok_and(|node| node.original == original.address())
        };
        nodes.find(is).ok_or(CUresult::INVALID_VALUE)
    })?;
    set(out, found)
}

pub(crate) fn cuGraphDestroyNode(node: Ptr<CUgraphNode_st>) -> Answer {
    with(|state| {
        let gone = state.nodes.remove(node.address())?;
        let nodes = &mut state.graphs.get_mut(gone.graph)?.nodes;
        nodes.retain(|&other| other != node.address());
        for other in nodes.clone() {
            let other = state.nodes.get_mut(other)?;
            other.dependencies.retain(|&on| on != node.address());
        }
        for &inside in gone.task.inside() {
            state.destroy_graph(inside)?;
        }
        state.collect_graph_memory();
        Ok(())
    })?;
    settle()
}

pub(crate) fn cuGraphNodeSetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUgraphNodeParams>,
) -> Answer {
    let params = params.get()?;
    match work_of(&params)? {
        kernel @ Work::Launch(..) => with(|state| state.set_kernel(node.address(), kernel)),
        work => set_work(node, work, params.copy()),
    }
}

pub(crate) fn cuGraphKernelNodeSetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS>,
) -> Answer {
    let work = kernel_node(&params.get()?)?;
    with(|state| state.set_kernel(node.address(), work))
}

pub(crate) fn cuGraphKernelNodeSetParams_v1(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Answer {
    let work = kernel_node(&params.get()?.into())?;
    with(|state| state.set_kernel(node.address(), work))
}

/// What a kernel's node was given. The parameters belong to the node, until it is changed.
fn shown(node: u64) -> Result<CUDA_KERNEL_NODE_PARAMS, CUresult> {
    with(|state| {
        let (function, launch) = state.nodes.get(node)?.kernel()?;
        let start = launch.params.as_ptr().expose_provenance() as u64;
        let info = &state.functions.get(function)?.info;
        let offsets = info.params.iter().map(|param| u64::from(param.offset));
        let pointers: Vec<u64> = offsets.map(|offset| start + offset).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let shared = launch.dynamic_shared;
        // The node has got a context, and what that has of the kernel.
        let reported = state.function_of(function)?;
        let node = state.nodes.get_mut(node)?;
        // What was told before stays where it is.
        if node.shown.is_empty() {
            node.shown = pointers;
        }
        Ok(CUDA_KERNEL_NODE_PARAMS {
            func: pointer(reported),
            grid_dim_x: gx,
            grid_dim_y: gy,
            grid_dim_z: gz,
            block_dim_x: bx,
            block_dim_y: by,
            block_dim_z: bz,
            shared_mem_bytes: shared,
            kernel_params: node.shown.as_mut_ptr().cast(),
            ..CUDA_KERNEL_NODE_PARAMS::default()
        })
    })
}

pub(crate) fn cuGraphKernelNodeGetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS>,
) -> Answer {
    params.set(shown(node.address())?)
}

pub(crate) fn cuGraphKernelNodeGetParams_v1(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> Answer {
    let new = shown(node.address())?;
    params.set(CUDA_KERNEL_NODE_PARAMS_v1 {
        func: new.func,
        grid_dim_x: new.grid_dim_x,
        grid_dim_y: new.grid_dim_y,
        grid_dim_z: new.grid_dim_z,
        block_dim_x: new.block_dim_x,
        block_dim_y: new.block_dim_y,
        block_dim_z: new.block_dim_z,
        shared_mem_bytes: new.shared_mem_bytes,
        kernel_params: new.kernel_params,
        extra: new.extra,
    })
}

/// Attributes that are about speed read as zeroes.
pub(crate) fn cuGraphKernelNodeGetAttribute(
    node: Ptr<CUgraphNode_st>,
    attribute: CUlaunchAttributeID,
    out: Ptr<CUstreamAttrValue>,
) -> Answer {
    let mut value = CUstreamAttrValue::default();
    with(|state| {
        let node = state.nodes.get(node.address())?;
        let (_, launch) = node.kernel()?;
        match (attribute, launch.cluster.map(u64::from)) {
            (launch_attribute::COOPERATIVE, _) => value.value[0] = u64::from(launch.cooperative),
            (launch_attribute::CLUSTER_DIMENSION, [1, 1, 1]) => {}
            (launch_attribute::CLUSTER_DIMENSION, [x, y, z]) => {
                (value.value[0], value.value[1]) = (x | y << 32, z);
            }
            _ => value = node.attributes.get(&attribute).copied().unwrap_or_default(),
        }
        Ok(())
    })?;
    out.set(value)
}

/// Copies what the attributes of a kernel's node say to another one.
pub(crate) fn cuGraphKernelNodeCopyAttributes(
    to: Ptr<CUgraphNode_st>,
    from: Ptr<CUgraphNode_st>,
) -> Answer {
    with(|state| {
        let from = state.nodes.get(from.address())?;
        let (_, launch) = from.kernel()?;
        let (cluster, cooperative) = (launch.cluster, launch.cooperative);
        let attributes = from.attributes.clone();
        let to = state.nodes.get_mut(to.address())?;
        match &mut to.task {
            Task::Work(Work::Launch(_, launch)) => {
                (launch.cluster, launch.cooperative) = (cluster, cooperative);
                to.attributes = attributes;
                Ok(())
            }
            _ => Err(CUresult::INVALID_VALUE),
        }
    })
}

pub(crate) fn cuGraphKernelNodeSetAttribute(
    node: Ptr<CUgraphNode_st>,
    attribute: CUlaunchAttributeID,
    value: Ptr<CUstreamAttrValue>,
) -> Answer {
    let given = value.get()?;
    let [first, second, ..] = given.value;
    with(|state| {
        let node = state.nodes.get_mut(node.address())?;
        let Task::Work(Work::Launch(_, launch)) = &mut node.task else {
            return Err(CUresult::INVALID_VALUE);
        };
        match attribute {
            launch_attribute::COOPERATIVE => launch.cooperative = first as u32 != 0,
            launch_attribute::CLUSTER_DIMENSION => {
                let sizes = [first as u32, (first >> 32) as u32, second as u32];
                launch.cluster = sizes.map(|size| size.max(1));
            }
            _ => {
                node.attributes.insert(attribute, given);
            }
        }
        Ok(())
    })
}
