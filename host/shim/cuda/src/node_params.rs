//! What nodes of graphs other than kernels were given, and memory that graphs allocate.
//!
//! Departures: memory of a graph has its place from the time its node is added until neither a graph
//! nor an executable one has that node, and a launch only says whether the program has it; so it
//! is never where other memory of a graph is.

use std::ffi::{c_int, c_void};

use driver::sys::{
    CUDA_HOST_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUctx_st, CUdevice, CUdeviceptr, CUevent, CUevent_st, CUgraphExec_st, CUgraphMem_attribute,
    CUgraphNode_st, CUgraphNodeParams, CUresult,
};

use crate::Answer;
use crate::copy::{Copy, Fill};
use crate::device::check;
use crate::graph_exec;
use crate::memory::MemoryKind;
use crate::missing::{ignored, missing};
use crate::node::{Task, kernel_node};
use crate::pointer::Ptr;
use crate::state::{State, with, with_context};
use crate::table::set;
use crate::work::{Call, Work};

/// What a node of any kind but a child graph or an allocation does.
pub(crate) fn work_of(params: &CUgraphNodeParams) -> Result<Work, CUresult> {
    use CUgraphNodeParams as P;
    if let Some(kernel) = params.kernel() {
        return kernel_node(&kernel);
    }
    if let Some(copy) = params.copy() {
        return Ok(Work::Copy(Copy::from_3d(&copy)?));
    }
    if let Some(fill) = params.fill() {
        return Ok(Work::Fill(Fill::of_node(&fill)?));
    }
    if let Some(host) = params.host() {
        return host_node(&host);
    }
    let first = params.value[0];
    match params.kind {
        P::EMPTY => Ok(Work::Empty),
        P::WAIT => event(first).map(Work::Wait),
        P::RECORD => event(first).map(Work::Record),
        P::FREE => free_node(first),
        P::SIGNAL_SEMAPHORE | P::WAIT_SEMAPHORE => Err(missing("external semaphores")),
        P::BATCH => Err(missing("nodes with batched memory operations")),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

fn event(event: u64) -> Result<u64, CUresult> {
    with(|state| state.events.get(event).map(|_| event))
}

pub(crate) fn host_node(p: &CUDA_HOST_NODE_PARAMS) -> Result<Work, CUresult> {
    let callback = p.callback.ok_or(CUresult::INVALID_VALUE)?;
    let data = p.user_data.expose_provenance() as u64;
    Ok(Work::Host(Call::Plain(callback, data)))
}

/// Only memory that a node of a graph allocates can be freed by another one.
pub(crate) fn free_node(address: u64) -> Result<Work, CUresult> {
    with(|state| match state.memory.get(&address) {
        Some(allocation) if allocation.graph.is_some() => Ok(Work::Free(address)),
        _ => Err(CUresult::INVALID_VALUE),
    })
}

/// Adds a node that allocates memory, and tells its address.
pub(crate) fn add_alloc(
    graph: u64,
    params: &mut CUDA_MEM_ALLOC_NODE_PARAMS,
    before: Vec<u64>,
) -> Result<u64, CUresult> {
    with_context(|state, context| {
        state.graphs.get(graph)?;
        let address = state.allocate_for_graph(context, params.bytes)?;
        let node = state.add_node(graph, Task::Work(Work::Alloc(address)), before);
        if node.is_err() {
            state.release(address)?;
        }
        params.address = address;
        node
    })
}

impl State {
    /// Memory of a graph, which the program does not have yet.
    pub(crate) fn allocate_for_graph(
        &mut self,
        context: u64,
        bytes: usize,
    ) -> Result<u64, CUresult> {
        let address = self.allocate(context, MemoryKind::Device, bytes, 0)?;
        if let Some(allocation) = self.memory.get_mut(&address) {
            allocation.graph = Some(false);
        }
        Ok(address)
    }

    fn graph_memory(&mut self, address: u64) -> Result<&mut bool, CUresult> {
        let found = self.memory.get_mut(&address);
        let found = found.and_then(|allocation| allocation.graph.as_mut());
        found.ok_or(CUresult::INVALID_VALUE)
    }

    /// The node that allocates memory of a graph is done.
    pub(crate) fn hold_graph_memory(&mut self, address: u64) -> Answer {
        // Nothing else frees what an earlier launch has allocated.
        match std::mem::replace(self.graph_memory(address)?, true) {
            true => Err(CUresult::INVALID_VALUE),
            false => {
                let bytes = self.memory.get(&address).map_or(0, |of| of.bytes);
                self.engine.got_again(address, bytes);
                Ok(())
            }
        }
    }

    /// Takes memory of a graph from the program.
    pub(crate) fn drop_graph_memory(&mut self, address: u64) -> Answer {
        match std::mem::replace(self.graph_memory(address)?, false) {
            true => Ok(()),
            false => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Frees memory of graphs that are gone, unless the program has it.
    pub(crate) fn collect_graph_memory(&mut self) {
        let of_graphs = self.memory.iter().filter(|(_, a)| a.graph == Some(false));
        let unused: Vec<u64> = of_graphs.map(|(&address, _)| address).collect();
        for address in unused {
            let is = |task: &Task| matches!(task, Task::Work(Work::Alloc(at)) if *at == address);
            let needed = self.nodes.iter().any(|(_, node)| is(&node.task))
                || self.execs.iter().any(|(_, exec)| exec.allocates(address));
            if !needed {
                let _ = self.release(address);
            }
        }
    }
}

/// Gives a node other work of the same kind.
pub(crate) fn set_work(
    node: Ptr<CUgraphNode_st>,
    work: Work,
    given: Option<CUDA_MEMCPY3D>,
) -> Answer {
    with(|state| {
        let node = state.nodes.get_mut(node.address())?;
        match &mut node.task {
            Task::Work(old) if std::mem::discriminant(old) == std::mem::discriminant(&work) => {
                *old = work;
                node.given = given.map(Box::new);
                Ok(())
            }
            _ => Err(CUresult::INVALID_VALUE),
        }
    })
}

/// What `pick` finds in the work of a node.
fn look<T>(
    node: Ptr<CUgraphNode_st>,
    pick: impl FnOnce(&Work) -> Option<T>,
) -> Result<T, CUresult> {
    with(|state| match &state.nodes.get(node.address())?.task {
        Task::Work(work) => pick(work).ok_or(CUresult::INVALID_VALUE),
        Task::Child(_) | Task::Conditional(_) => Err(CUresult::INVALID_VALUE),
    })
}

pub(crate) fn cuGraphMemcpyNodeGetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_MEMCPY3D>,
) -> Answer {
    let captured = look(node, |work| match work {
        Work::Copy(copy) => Some(copy.to_3d()),
        _ => None,
    })?;
    let given = with(|state| Ok(state.nodes.get(node.address())?.given.as_deref().copied()))?;
    params.set(given.unwrap_or(captured))
}

pub(crate) fn cuGraphMemcpyNodeSetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_MEMCPY3D>,
) -> Answer {
    let given = params.get()?;
    set_work(node, Work::Copy(Copy::from_3d(&given)?), Some(given))
}

pub(crate) fn cuGraphExecMemcpyNodeSetParams(
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_MEMCPY3D>,
    _context: Ptr<CUctx_st>,
) -> Answer {
    let work = Work::Copy(Copy::from_3d(&params.get()?)?);
    graph_exec::set_work(exec, node, work)
}

pub(crate) fn cuGraphMemsetNodeGetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_MEMSET_NODE_PARAMS>,
) -> Answer {
    params.set(look(node, |work| match work {
        Work::Fill(fill) => Some(fill.to_node()),
        _ => None,
    })?)
}

pub(crate) fn cuGraphMemsetNodeSetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_MEMSET_NODE_PARAMS>,
) -> Answer {
    set_work(node, Work::Fill(Fill::of_node(&params.get()?)?), None)
}

pub(crate) fn cuGraphExecMemsetNodeSetParams(
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_MEMSET_NODE_PARAMS>,
    _context: Ptr<CUctx_st>,
) -> Answer {
    let work = Work::Fill(Fill::of_node(&params.get()?)?);
    graph_exec::set_work(exec, node, work)
}

pub(crate) fn cuGraphHostNodeGetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    params.set(look(node, |work| match *work {
        Work::Host(Call::Plain(callback, data)) => Some(CUDA_HOST_NODE_PARAMS {
            callback: Some(callback),
            user_data: std::ptr::with_exposed_provenance_mut::<c_void>(data as usize),
        }),
        _ => None,
    })?)
}

pub(crate) fn cuGraphHostNodeSetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    set_work(node, host_node(&params.get()?)?, None)
}

pub(crate) fn cuGraphExecHostNodeSetParams(
    exec: Ptr<CUgraphExec_st>,
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_HOST_NODE_PARAMS>,
) -> Answer {
    graph_exec::set_work(exec, node, host_node(&params.get()?)?)
}

macro_rules! event_nodes {
    ($($work:ident: $get:ident $set:ident $set_exec:ident;)*) => { $(
        pub(crate) fn $get(node: Ptr<CUgraphNode_st>, out: Ptr<CUevent>) -> Answer {
            let event = look(node, |work| match work {
                Work::$work(event) => Some(*event),
                _ => None,
            })?;
            set(out, event)
        }

        pub(crate) fn $set(node: Ptr<CUgraphNode_st>, to: Ptr<CUevent_st>) -> Answer {
            set_work(node, Work::$work(event(to.address())?), None)
        }

        pub(crate) fn $set_exec(
            exec: Ptr<CUgraphExec_st>,
            node: Ptr<CUgraphNode_st>,
            to: Ptr<CUevent_st>,
        ) -> Answer {
            graph_exec::set_work(exec, node, Work::$work(event(to.address())?))
        }
    )* };
}

event_nodes! {
    Record: cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent cuGraphExecEventRecordNodeSetEvent;
    Wait: cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent cuGraphExecEventWaitNodeSetEvent;
}

pub(crate) fn cuGraphMemAllocNodeGetParams(
    node: Ptr<CUgraphNode_st>,
    params: Ptr<CUDA_MEM_ALLOC_NODE_PARAMS>,
) -> Answer {
    let address = look(node, |work| match work {
        Work::Alloc(address) => Some(*address),
        _ => None,
    })?;
    let bytes = with(|state| {
        let found = state.memory.get(&address).ok_or(CUresult::INVALID_VALUE)?;
        Ok(found.bytes as usize)
    })?;
    let mut found = CUDA_MEM_ALLOC_NODE_PARAMS {
        bytes,
        address,
        ..CUDA_MEM_ALLOC_NODE_PARAMS::default()
    };
    // Pinned memory of the device.
    (found.pool.alloc_type, found.pool.location.kind) = (1, 1);
    params.set(found)
}

pub(crate) fn cuGraphMemFreeNodeGetParams(
    node: Ptr<CUgraphNode_st>,
    out: Ptr<CUdeviceptr>,
) -> Answer {
    out.set(look(node, |work| match work {
        Work::Free(address) => Some(*address),
        _ => None,
    })?)
}

/// Memory of graphs is reserved as soon as its node is there; there is nothing to trim.
pub(crate) fn cuDeviceGraphMemTrim(device: CUdevice) -> Answer {
    ignored("nothing is kept back");
    check(device)
}

/// `CU_GRAPH_MEM_ATTR_…`: in use, its high mark, reserved, its high mark.
const ATTRIBUTES: std::ops::RangeInclusive<c_int> = 0..=3;

pub(crate) fn cuDeviceGetGraphMemAttribute(
    device: CUdevice,
    attribute: CUgraphMem_attribute,
    value: Ptr<c_void>,
) -> Answer {
    check(device)?;
    if !ATTRIBUTES.contains(&attribute) {
        return Err(CUresult::INVALID_VALUE);
    }
    let bytes: u64 = with(|state| {
        let of_graphs = state.memory.values().filter(|a| match attribute {
            0 => a.graph == Some(true),
            _ => a.graph.is_some(),
        });
        Ok(of_graphs.map(|allocation| allocation.bytes).sum())
    })?;
    value.cast::<u64>().set(bytes)
}

/// High marks can be set back, which changes nothing: they are what is there.
pub(crate) fn cuDeviceSetGraphMemAttribute(
    device: CUdevice,
    attribute: CUgraphMem_attribute,
    value: Ptr<c_void>,
) -> Answer {
    ignored("high marks are what is there");
    check(device)?;
    match attribute {
        1 | 3 if !value.is_null() => Ok(()),
        _ => Err(CUresult::INVALID_VALUE),
    }
}
