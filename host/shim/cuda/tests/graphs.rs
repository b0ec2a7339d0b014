//! Graphs of the simulated driver: parameters, clones, child graphs and updates.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::{alloc, cu, ok, read, start};
use cudarun_shim_cuda::exports::*;
use driver::sys::*;

/// Stores a byte.
const PUT: &std::ffi::CStr = c"
.version 7.0
.target sm_70
.address_size 64
.entry put(.param .u64 at, .param .u32 value) {
    .reg .u64 %a; .reg .u32 %v;
    ld.param.u64 %a, [at]; ld.param.u32 %v, [value];
    st.global.u8 [%a], %v; ret;
}
";

/// The parameters of a launch of `put`.
struct Put {
    at: u64,
    value: u32,
    params: [*mut c_void; 2],
}

impl Put {
    fn new(at: u64, value: u32) -> Box<Put> {
        let mut put = Box::new(Put {
            at,
            value,
            params: [null_mut(); 2],
        });
        put.params = [(&raw mut put.at).cast(), (&raw mut put.value).cast()];
        put
    }

    fn node(&mut self, func: CUfunction) -> CUDA_KERNEL_NODE_PARAMS {
        CUDA_KERNEL_NODE_PARAMS {
            func,
            grid_dim_x: 1,
            grid_dim_y: 1,
            grid_dim_z: 1,
            block_dim_x: 1,
            block_dim_y: 1,
            block_dim_z: 1,
            kernel_params: self.params.as_mut_ptr(),
            ..CUDA_KERNEL_NODE_PARAMS::default()
        }
    }
}

fn kernel() -> CUfunction {
    let (mut module, mut function) = (null_mut(), null_mut());
    ok(cu!(cuModuleLoadData(&mut module, PUT.as_ptr().cast())));
    let name = c"put".as_ptr();
    ok(cu!(cuModuleGetFunction(&mut function, module, name)));
    function
}

fn graph() -> CUgraph {
    let mut graph = null_mut();
    ok(cu!(cuGraphCreate(&mut graph, 0)));
    graph
}

/// Adds a launch that stores `value` at `at`.
fn add(graph: CUgraph, func: CUfunction, at: u64, value: u32) -> CUgraphNode {
    let mut node = null_mut();
    let mut put = Put::new(at, value);
    let params = put.node(func);
    let added = cu!(cuGraphAddKernelNode_v2(
        &mut node,
        graph,
        null(),
        0,
        &params
    ));
    ok(added);
    node
}

fn instantiate(graph: CUgraph) -> CUgraphExec {
    let mut exec = null_mut();
    ok(cu!(cuGraphInstantiateWithFlags(&mut exec, graph, 0)));
    exec
}

fn zeroed(bytes: usize) -> u64 {
    let at = alloc(bytes);
    ok(cu!(cuMemsetD8_v2(at, 0, bytes)));
    at
}

#[test]
fn a_nodes_parameters_are_returned_and_replaced() {
    let _turn = start();
    let (at, func) = (zeroed(4), kernel());
    let graph = graph();
    let node = add(graph, func, at, 1);
    let mut returned = CUDA_KERNEL_NODE_PARAMS::default();
    ok(cu!(cuGraphKernelNodeGetParams_v2(node, &mut returned)));
    // SAFETY: the node has two parameters of these types.
    let values = unsafe {
        let [first, second] = [*returned.kernel_params, *returned.kernel_params.add(1)];
        (first.cast::<u64>().read(), second.cast::<u32>().read())
    };
    assert_eq!(values, (at, 1));
    assert_eq!(
        (returned.func, returned.grid_dim_x, returned.block_dim_z),
        (func, 1, 1)
    );
    let before = instantiate(graph);
    let mut put = Put::new(at + 1, 2);
    ok(cu!(cuGraphKernelNodeSetParams_v2(node, &put.node(func))));
    let after = instantiate(graph);
    // What has been made executable stays as it is.
    ok(cu!(cuGraphLaunch(before, null_mut())));
    assert_eq!(read(at, 4), [1, 0, 0, 0]);
    ok(cu!(cuGraphLaunch(after, null_mut())));
    assert_eq!(read(at, 4), [1, 2, 0, 0]);
    let mut put = Put::new(at + 2, 3);
    let set = cu!(cuGraphExecKernelNodeSetParams_v2(
        before,
        node,
        &put.node(func)
    ));
    ok(set);
    ok(cu!(cuGraphLaunch(before, null_mut())));
    assert_eq!(read(at, 4), [1, 2, 3, 0]);
    let mut none = Put::new(at, 1).node(null_mut());
    none.kernel_params = null_mut();
    let refused = cu!(cuGraphKernelNodeSetParams_v2(node, &none));
    assert_eq!(refused, CUresult::INVALID_HANDLE);
    ok(cu!(cuGraphDestroyNode(node)));
    let gone = cu!(cuGraphKernelNodeGetParams_v2(node, &mut returned));
    assert_eq!(gone, CUresult::INVALID_VALUE);
    ok(cu!(cuGraphDestroy(graph)));
}

#[test]
fn attributes_survive_new_parameters() {
    let _turn = start();
    let (at, func) = (zeroed(4), kernel());
    let graph = graph();
    let node = add(graph, func, at, 1);
    let attribute = launch_attribute::CLUSTER_DIMENSION;
    let mut value = CUstreamAttrValue::default();
    let returned = |value: &mut CUstreamAttrValue| {
        ok(cu!(cuGraphKernelNodeGetAttribute(node, attribute, value)));
        [value.value[0], value.value[1]]
    };
    assert_eq!(returned(&mut value), [0, 0]);
    value.value[..2].copy_from_slice(&[2 | 1 << 32, 1]);
    ok(cu!(cuGraphKernelNodeSetAttribute(node, attribute, &value)));
    let mut put = Put::new(at, 2);
    ok(cu!(cuGraphKernelNodeSetParams_v2(node, &put.node(func))));
    assert_eq!(returned(&mut value), [2 | 1 << 32, 1]);
    ok(cu!(cuGraphDestroy(graph)));
}

#[test]
fn child_graphs_are_copies_that_belong_to_their_node() {
    let _turn = start();
    let (at, func) = (zeroed(4), kernel());
    let (parent, child) = (graph(), graph());
    let inner = add(child, func, at, 1);
    let mut node = null_mut();
    let added = cu!(cuGraphAddChildGraphNode(
        &mut node,
        parent,
        null(),
        0,
        child
    ));
    ok(added);
    // The copy does not follow its original.
    let mut put = Put::new(at + 1, 9);
    ok(cu!(cuGraphKernelNodeSetParams_v2(inner, &put.node(func))));
    let exec = instantiate(parent);
    ok(cu!(cuGraphLaunch(exec, null_mut())));
    assert_eq!(read(at, 4), [1, 0, 0, 0]);
    let set = cu!(cuGraphExecChildGraphNodeSetParams(exec, node, child));
    ok(set);
    ok(cu!(cuGraphLaunch(exec, null_mut())));
    assert_eq!(read(at, 4), [1, 9, 0, 0]);
    let (mut embedded, mut kind) = (null_mut(), 0);
    ok(cu!(cuGraphChildGraphNodeGetGraph(node, &mut embedded)));
    assert_ne!(embedded, child);
    assert_eq!(
        cu!(cuGraphDestroy(embedded)),
        CUresult::INVALID_VALUE,
        "it belongs to its node"
    );
    ok(cu!(cuGraphNodeGetType(node, &mut kind)));
    assert_eq!(kind, CUgraphNodeParams::GRAPH);
    let itself = cu!(cuGraphAddChildGraphNode(
        &mut node,
        parent,
        null(),
        0,
        parent
    ));
    assert_eq!(itself, CUresult::INVALID_VALUE);
    ok(cu!(cuGraphDestroy(parent)));
    let mut count = 0;
    let gone = cu!(cuGraphGetNodes(embedded, null_mut(), &mut count));
    assert_eq!(gone, CUresult::INVALID_VALUE);
    ok(cu!(cuGraphDestroy(child)));
}

#[test]
fn an_update_wants_nodes_of_the_same_kinds() {
    let _turn = start();
    let (at, func) = (zeroed(4), kernel());
    let (first, second) = (graph(), graph());
    add(first, func, at, 1);
    let exec = instantiate(first);
    let mut info = CUgraphExecUpdateResultInfo::default();
    let changed = cu!(cuGraphExecUpdate_v2(exec, second, &mut info));
    assert_eq!(
        (changed, info.result),
        (CUresult::GRAPH_EXEC_UPDATE_FAILURE, 2)
    );
    let mut node = null_mut();
    ok(cu!(cuGraphAddEmptyNode(&mut node, second, null(), 0)));
    let changed = cu!(cuGraphExecUpdate_v2(exec, second, &mut info));
    assert_eq!(
        (changed, info.result),
        (CUresult::GRAPH_EXEC_UPDATE_FAILURE, 3)
    );
    ok(cu!(cuGraphDestroyNode(node)));
    add(second, func, at + 1, 5);
    ok(cu!(cuGraphExecUpdate_v2(exec, second, &mut info)));
    assert_eq!(info.result, 0);
    ok(cu!(cuGraphLaunch(exec, null_mut())));
    assert_eq!(read(at, 4), [0, 5, 0, 0]);
    ok(cu!(cuGraphDestroy(first)));
    ok(cu!(cuGraphDestroy(second)));
}

#[test]
fn edges_say_in_which_order_nodes_run_and_may_not_go_in_circles() {
    let _turn = start();
    let (at, func, graph) = (zeroed(4), kernel(), graph());
    let second = add(graph, func, at, 2);
    let first = add(graph, func, at, 1);
    let exec = instantiate(graph);
    ok(cu!(cuGraphLaunch(exec, null_mut())));
    assert_eq!(read(at, 1), [1], "without edges, as they were added");
    let edge = cu!(cuGraphAddDependencies(graph, &first, &second, 1));
    ok(edge);
    let again = cu!(cuGraphAddDependencies_v2(graph, &first, &second, null(), 1));
    assert_eq!(again, CUresult::INVALID_VALUE);
    let exec = instantiate(graph);
    ok(cu!(cuGraphLaunch(exec, null_mut())));
    assert_eq!(read(at, 1), [2]);
    ok(cu!(cuGraphAddDependencies(graph, &second, &first, 1)));
    let mut exec = null_mut();
    let circle = cu!(cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    assert_eq!(circle, CUresult::INVALID_VALUE);
    ok(cu!(cuGraphRemoveDependencies(graph, &second, &first, 1)));
    let (mut from, mut to, mut count) = ([null_mut(); 3], [null_mut(); 3], 3);
    let edges = cu!(cuGraphGetEdges(
        graph,
        from.as_mut_ptr(),
        to.as_mut_ptr(),
        &mut count
    ));
    ok(edges);
    assert_eq!(
        (from[0], to[0], from[1], count),
        (first, second, null_mut(), 1)
    );
    ok(cu!(cuGraphDestroyNode(first)));
    let mut roots = 3;
    ok(cu!(cuGraphGetRootNodes(
        graph,
        from.as_mut_ptr(),
        &mut roots
    )));
    assert_eq!((roots, from[0]), (1, second));
    let outside = cu!(cuGraphAddDependencies(graph, &first, &second, 1));
    assert_eq!(outside, CUresult::INVALID_VALUE);
    ok(cu!(cuGraphDestroy(graph)));
}

#[test]
fn memory_of_a_graph_goes_when_nobody_needs_it() {
    let _turn = start();
    let free = || {
        let (mut free, mut total) = (0, 0);
        ok(cu!(cuMemGetInfo_v2(&mut free, &mut total)));
        free
    };
    let (before, graph) = (free(), graph());
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
        bytes: 1 << 20,
        ..CUDA_MEM_ALLOC_NODE_PARAMS::default()
    };
    let mut node = null_mut();
    let added = cu!(cuGraphAddMemAllocNode(
        &mut node,
        graph,
        null(),
        0,
        &mut params
    ));
    ok(added);
    let exec = instantiate(graph);
    assert_eq!(cu!(cuMemFree_v2(params.address)), CUresult::INVALID_VALUE);
    ok(cu!(cuGraphLaunch(exec, null_mut())));
    let twice = cu!(cuGraphLaunch(exec, null_mut()));
    assert_eq!(twice, CUresult::INVALID_VALUE, "it was not freed between");
    let mut other = null_mut();
    ok(cu!(cuGraphInstantiateWithFlags(&mut other, graph, 1)));
    ok(cu!(cuGraphLaunch(other, null_mut())));
    ok(cu!(cuGraphLaunch(other, null_mut())));
    ok(cu!(cuGraphExecDestroy(other)));
    ok(cu!(cuMemsetD8_v2(params.address, 7, 1 << 20)));
    ok(cu!(cuGraphDestroy(graph)));
    ok(cu!(cuGraphExecDestroy(exec)));
    assert_eq!(read(params.address, 1), [7], "the program still has it");
    ok(cu!(cuMemFree_v2(params.address)));
    assert_eq!(free(), before);
}
