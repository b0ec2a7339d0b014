//! The kernels of a graph, as the driver returns them.
//!
//! Graphs are captured, put together by hand, cloned and nested; what they are in the end is asked
//! of the driver when an executable graph is made. The hidden parameter that a node holds then says
//! which record slot is its own, and no history has to be followed.

use driver::pointer::Ptr;
use driver::steps::Block;
use driver::sys::*;
use runtime::session::{Kernel, Node};

use super::function::name_of;
use super::launch::{Given, Params, RequestedLaunch, UNKNOWN, values};
use crate::state::{Function, State};
use crate::without_ptx;

/// What becomes of the hidden parameters of a graph's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotUse {
    /// Each node has a record slot of its own.
    Own,
    /// None is checked, because it is not known when, and how often, it runs.
    Idle,
}

/// A launch as the parameters of a node ask for it.
pub(super) fn asked(node: &CUDA_KERNEL_NODE_PARAMS, cluster: [u32; 3]) -> RequestedLaunch {
    let handle = match node.func.is_null() {
        true => node.kern.expose_provenance(),
        false => node.func.expose_provenance(),
    };
    RequestedLaunch {
        function: handle as u64,
        grid: [node.grid_dim_x, node.grid_dim_y, node.grid_dim_z],
        block: [node.block_dim_x, node.block_dim_y, node.block_dim_z],
        cluster,
        shared: node.shared_mem_bytes,
        early: false,
        context: match node.func.is_null() {
            true => node.ctx.expose_provenance() as u64,
            false => 0,
        },
    }
}

/// The parameters of a kernel's node, whose memory belongs to the node.
pub(super) fn params(real: &Api, node: u64) -> Option<CUDA_KERNEL_NODE_PARAMS> {
    let mut params = CUDA_KERNEL_NODE_PARAMS::default();
    // SAFETY: the handle is that of a live node, and there is room for the result.
    let found = unsafe { real.cuGraphKernelNodeGetParams(handle(node), &mut params) };
    (found == CUresult::SUCCESS).then_some(params)
}

/// The hidden parameter that a node has.
pub(super) fn hidden(function: &Function, node: &CUDA_KERNEL_NODE_PARAMS) -> Option<u64> {
    let offset = function.hidden? as usize;
    // SAFETY: the driver has returned its own copies, which have the hidden parameter too.
    unsafe {
        match node.kernel_params.is_null() {
            false => {
                let value = Ptr::new(node.kernel_params)
                    .at(function.params.len())
                    .follow();
                value.ok()?.cast::<u64>().get().ok()
            }
            true => {
                let block = Ptr::new(node.extra).launch_buffer().ok()?;
                let bytes = block.get(offset..offset + 8)?;
                Some(u64::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    }
}

impl State {
    /// The kernels of a graph that is about to be made executable, child graphs included, and their
    /// record slots, none of which is among `taken`.
    pub(super) fn nodes_of(
        &mut self,
        real: &'static Api,
        graph: u64,
        slot_use: SlotUse,
        path: &[u64],
        taken: &mut Vec<u64>,
    ) -> Vec<Node> {
        let mut found = Vec::new();
        for node in all(real, graph) {
            let path = [path, &[node]].concat();
            match kind(real, node) {
                Some(CUgraphNodeParams::KERNEL) => {
                    found.extend(self.node(real, node, slot_use, path, taken));
                }
                Some(CUgraphNodeParams::GRAPH) => {
                    if let Some(child) = child(real, node) {
                        found.extend(self.nodes_of(real, child, slot_use, &path, taken));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The kernels of a graph that have no PTX, child graphs included.
    pub(super) fn kernels_without_ptx(
        &self,
        real: &'static Api,
        graph: u64,
    ) -> Vec<without_ptx::Kernel> {
        let mut found = Vec::new();
        if self.without_ptx.is_empty() {
            return found;
        }
        for node in all(real, graph) {
            match kind(real, node) {
                Some(CUgraphNodeParams::KERNEL) => {
                    let function = params(real, node).map(|of| asked(&of, [0; 3]).function);
                    let unknown = function.filter(|of| !self.functions.contains_key(of));
                    found.extend(unknown.and_then(|function| {
                        let named = || name_of(real, function, false);
                        self.without_ptx.kernel(function, named)
                    }));
                }
                Some(CUgraphNodeParams::GRAPH) => {
                    let child = child(real, node).into_iter();
                    found.extend(child.flat_map(|child| self.kernels_without_ptx(real, child)));
                }
                _ => {}
            }
        }
        found
    }

    /// A kernel's node, after it has got a record slot where it should have one.
    fn node(
        &mut self,
        real: &'static Api,
        node: u64,
        slot_use: SlotUse,
        path: Vec<u64>,
        taken: &mut Vec<u64>,
    ) -> Option<Node> {
        let params = self.params_with_checks(real, node)?;
        let asked = asked(&params, cluster(real, node));
        let given = given(real, node, &params);
        self.adopt(real, asked.function);
        // SAFETY: the driver has returned its own copies.
        let (context, function, kernel) = unsafe { self.kernel(real, &asked, given) }?;
        let mut parameter = hidden(&function, &params);
        if let Some(now) = parameter {
            let kept = self.session.is_kept(context, now);
            let wanted = match slot_use {
                SlotUse::Idle if kept => self.session.idle(context),
                SlotUse::Own if !kept || taken.contains(&now) => self.session.keep_slot(context),
                _ => None,
            };
            if let Some(wanted) = wanted
                && wanted != now
                && set(real, node, &function, params, wanted)
            {
                parameter = Some(wanted);
            }
            taken.extend(parameter);
        }
        let may = slot_use == SlotUse::Own && parameter.is_some() && may_be_own(&asked, given);
        Some(Node {
            own: may && self.own_of(real, asked.function, &kernel).is_some(),
            context,
            kernel,
            parameter,
            path,
            enabled: true,
        })
    }

    /// The parameters of a kernel's node, after it has got its checks back: the launch of an executable graph that runs
    /// the program's own code may have been captured.
    fn params_with_checks(
        &mut self,
        real: &'static Api,
        node: u64,
    ) -> Option<CUDA_KERNEL_NODE_PARAMS> {
        let found = params(real, node)?;
        let named = asked(&found, [0; 3]).function;
        let mut owns = self.owns.iter();
        let Some((&checked, _)) = owns.find(|&(_, own)| *own == named) else {
            return Some(found);
        };
        let function = self.functions.get(&checked)?.clone();
        let context = self.context().or(function.context)?;
        let slot = self.session.idle(context)?;
        let given = Given::of_node(&found);
        let with_checks = launching(found, checked, given);
        match set(real, node, &function, with_checks, slot) {
            true => params(real, node),
            false => Some(found),
        }
    }

    /// The program's own code that a node can launch in place of a function with checks, because its arguments prove
    /// that it has no races.
    pub(super) fn own_of(
        &mut self,
        real: &'static Api,
        function: u64,
        kernel: &Kernel,
    ) -> Option<u64> {
        match self.session.is_provable(kernel) {
            true => self.own(real, function),
            false => None,
        }
    }

    /// Lets the kernels of a new executable graph that are [proved](Self::own_of) run the program's own code. The graph
    /// itself keeps their checks: what the driver has returned to the program about its nodes stays where it is.
    pub(super) fn make_own(&mut self, real: &'static Api, exec: u64, nodes: &mut [Node]) {
        for node in nodes.iter_mut().filter(|node| node.own) {
            node.own = match node.path[..] {
                [of] => self.exec_own(real, exec, of).is_some(),
                // In a child graph.
                _ => false,
            };
        }
    }

    fn exec_own(&mut self, real: &'static Api, exec: u64, node: u64) -> Option<()> {
        let params = params(real, node)?;
        let named = asked(&params, [0; 3]).function;
        let own = self.own(real, named)?;
        let function = self.functions.get(&named)?;
        let given = Given::of_node(&params);
        // SAFETY: the driver has returned its own copies.
        let mut block = Block::new(unsafe { values(function, given) });
        let given = match params.kernel_params.is_null() {
            // The own code does not look at the hidden one behind its parameters.
            false => given,
            true => Given::of_block(&mut block),
        };
        let own = launching(params, own, given);
        // SAFETY: the graph and what has been made of it live, and the driver copies the parameters.
        let set = unsafe { real.cuGraphExecKernelNodeSetParams(handle(exec), handle(node), &own) };
        set.result().ok()
    }
}

/// The parameters of a node that launches another function, or kernel of a library, with other arguments.
pub(super) fn launching(
    mut params: CUDA_KERNEL_NODE_PARAMS,
    function: u64,
    given: Given,
) -> CUDA_KERNEL_NODE_PARAMS {
    match params.func.is_null() {
        true => params.kern = handle(function),
        false => params.func = handle(function),
    }
    (params.kernel_params, params.extra) = (given.params, given.extra);
    params
}

/// Gives a node another hidden parameter.
fn set(
    real: &Api,
    node: u64,
    function: &Function,
    mut params: CUDA_KERNEL_NODE_PARAMS,
    hidden: u64,
) -> bool {
    // SAFETY: the driver has returned the parameters, and copies them.
    unsafe {
        let with = Params::new(function, hidden, Given::of_node(&params));
        let Ok(mut with) = with else {
            return false;
        };
        let given = with.arguments();
        (params.kernel_params, params.extra) = (given.params, given.extra);
        real.cuGraphKernelNodeSetParams(handle(node), &params) == CUresult::SUCCESS
    }
}

fn all(real: &Api, graph: u64) -> Vec<u64> {
    let mut count = 0;
    let nodes = std::ptr::null_mut();
    // SAFETY: the graph is the program's, and there is room for the count.
    let counted = unsafe { real.cuGraphGetNodes(handle(graph), nodes, &mut count) };
    let mut nodes: Vec<CUgraphNode> = vec![std::ptr::null_mut(); count];
    if counted != CUresult::SUCCESS || nodes.is_empty() {
        return Vec::new();
    }
    // SAFETY: there is room for so many.
    let listed = unsafe { real.cuGraphGetNodes(handle(graph), nodes.as_mut_ptr(), &mut count) };
    if listed != CUresult::SUCCESS {
        return Vec::new();
    }
    nodes.truncate(count);
    let numbers = nodes.into_iter().map(|of| of.expose_provenance() as u64);
    numbers.collect()
}

fn kind(real: &Api, node: u64) -> Option<CUgraphNodeType> {
    let mut kind = 0;
    // SAFETY: the driver has returned the node, and there is room for the result.
    let found = unsafe { real.cuGraphNodeGetType(handle(node), &mut kind) };
    (found == CUresult::SUCCESS).then_some(kind)
}

/// The graph that belongs to a node.
pub(super) fn child(real: &Api, node: u64) -> Option<u64> {
    let mut graph = std::ptr::null_mut();
    // SAFETY: as above.
    let found = unsafe { real.cuGraphChildGraphNodeGetGraph(handle(node), &mut graph) };
    (found == CUresult::SUCCESS).then(|| graph.expose_provenance() as u64)
}

/// CTAs of a cluster as a node's attributes ask for them; zeroes unless they do.
pub(super) fn cluster(real: &Api, node: u64) -> [u32; 3] {
    let mut value = CUstreamAttrValue::default();
    let attribute = launch_attribute::CLUSTER_DIMENSION;
    // SAFETY: as above.
    let found = unsafe { real.cuGraphKernelNodeGetAttribute(handle(node), attribute, &mut value) };
    let [first, second, ..] = value.value;
    match found {
        CUresult::SUCCESS => [first as u32, (first >> 32) as u32, second as u32],
        _ => [0; 3],
    }
}

/// The parameters of a node, unless kernels on the device may change them between two launches.
pub(super) fn given(real: &Api, node: u64, params: &CUDA_KERNEL_NODE_PARAMS) -> Given {
    let mut value = CUstreamAttrValue::default();
    let attribute = launch_attribute::DEVICE_UPDATABLE_KERNEL_NODE;
    // SAFETY: as above.
    let found = unsafe { real.cuGraphKernelNodeGetAttribute(handle(node), attribute, &mut value) };
    match found {
        CUresult::SUCCESS if value.value[0] as u32 != 0 => UNKNOWN,
        // A driver that does not know the attribute has no such nodes.
        _ => Given::of_node(params),
    }
}

/// Whether a node may run the program's own code at all: its parameters are known, and nothing that belongs to the
/// function with checks has been asked for.
pub(super) fn may_be_own(asked: &RequestedLaunch, given: Given) -> bool {
    given != UNKNOWN && asked.cluster == [0; 3]
}

fn handle<T>(number: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(number as usize)
}
