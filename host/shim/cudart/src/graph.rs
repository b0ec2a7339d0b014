//! Graphs made by hand, and what of captured ones can be asked and changed.
//!
//! Several functions got edge data in CUDA 13, under the name that CUDA 12 has without; arguments that
//! mean different things in the two are called by their place. Edge data is not looked at: an edge
//! always waits for all of a node.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use driver::sys::{
    Api, CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUcontext, CUevent, CUgraph, CUgraphEdgeData, CUgraphExec, CUgraphExecUpdateResultInfo,
    CUgraphNode, CUgraphNodeParams, CUlaunchAttributeID, CUstreamAttrValue,
};

use crate::context::{context, driver, is_cuda_12};
use crate::entry::entry;
use crate::error::{Error, check, out};
use crate::memory::{Memcpy3D, volume, within};
use crate::registration::{host_of, kernel};
use crate::volume::{line, volume_back};

/// `cudaKernelNodeParams` looks like the driver's first one, with a host stub as the function.
pub type KernelNodeParams = CUDA_KERNEL_NODE_PARAMS_v1;
/// `cudaGraphNodeParams` looks like the driver's, but for the members for kernels and copies.
pub type NodeParams = CUgraphNodeParams;

/// The driver's parameters for a kernel's node.
unsafe fn of_kernel(given: *const KernelNodeParams) -> Result<CUDA_KERNEL_NODE_PARAMS, Error> {
    // SAFETY: the caller's pointer is null or valid.
    let given = unsafe { given.as_ref() }.ok_or(Error::INVALID_VALUE)?;
    let kernel = kernel(given.func as *const c_void)?;
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: null_mut(),
        kern: kernel,
        ..(*given).into()
    })
}

/// The driver's parameters for a node of any kind.
unsafe fn of_any(given: *const NodeParams) -> Result<NodeParams, Error> {
    // SAFETY: the caller's pointer is null or valid; the union is large enough for each member.
    unsafe {
        let given = given.as_ref().ok_or(Error::INVALID_VALUE)?;
        match given.kind {
            CUgraphNodeParams::KERNEL => {
                let kernel = of_kernel(given.value.as_ptr().cast())?;
                Ok(given.with_kernel(kernel))
            }
            CUgraphNodeParams::COPY => {
                let copy = given.value.as_ptr().byte_add(16).cast::<Memcpy3D>();
                let copy = volume(context()?, copy.as_ref())?;
                Ok(given.with_copy(copy))
            }
            CUgraphNodeParams::CONDITIONAL => {
                let mut given = *given;
                given.value[3] = current(context()?)?.expose_provenance() as u64;
                Ok(given)
            }
            _ => Ok(*given),
        }
    }
}

/// The current context.
fn current(api: &Api) -> Result<CUcontext, Error> {
    let mut context = null_mut();
    // SAFETY: there is room for the result.
    check(unsafe { api.cuCtxGetCurrent(&mut context) })?;
    Ok(context)
}

unsafe fn add_any(
    node: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    params: *mut NodeParams,
) -> Result<(), Error> {
    // SAFETY: the caller's pointers are valid as those of the C function.
    unsafe {
        let mut given = of_any(params)?;
        let added = context()?.cuGraphAddNode(node, graph, before, null(), count, &mut given);
        check(added)?;
        // What a program reads back from its description.
        if given.child().is_some() {
            (*params).value[0] = given.value[0];
        }
        if let Some(alloc) = given.alloc() {
            *params = (*params).with_alloc(alloc);
        }
        if given.kind == CUgraphNodeParams::CONDITIONAL {
            (*params).value[2] = given.value[2];
        }
        Ok(())
    }
}

unsafe fn add_copy(
    node: *mut CUgraphNode,
    graph: CUgraph,
    before: *const CUgraphNode,
    count: usize,
    copy: &CUDA_MEMCPY3D,
) -> Result<(), Error> {
    // SAFETY: the caller's pointers are valid as those of the C function.
    check(unsafe {
        let api = context()?;
        api.cuGraphAddMemcpyNode(node, graph, before, count, copy, null_mut())
    })
}

unsafe fn set_copy(node: CUgraphNode, copy: &CUDA_MEMCPY3D) -> Result<(), Error> {
    // SAFETY: the driver finds out what is no node.
    check(unsafe { context()?.cuGraphMemcpyNodeSetParams(node, copy) })
}

unsafe fn set_copy_in(
    exec: CUgraphExec,
    node: CUgraphNode,
    copy: &CUDA_MEMCPY3D,
) -> Result<(), Error> {
    // SAFETY: the driver finds out what is no node.
    check(unsafe { context()?.cuGraphExecMemcpyNodeSetParams(exec, node, copy, null_mut()) })
}

entry! {
    fn cudaGraphConditionalHandleCreate(
        handle: *mut u64, graph: CUgraph, default_launch_value: c_uint, flags: c_uint
    ) {
        let api = context()?;
        let of = current(api)?;
        check(api.cuGraphConditionalHandleCreate(handle, graph, of, default_launch_value, flags))
    }

    fn cudaGraphAddKernelNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        params: *const KernelNodeParams
    ) {
        let params = of_kernel(params)?;
        check(context()?.cuGraphAddKernelNode(node, graph, before, count, &params))
    }

    fn cudaGraphAddMemcpyNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        params: *const Memcpy3D
    ) {
        add_copy(node, graph, before, count, &volume(context()?, params.as_ref())?)
    }

    fn cudaGraphAddMemcpyNode1D(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int
    ) {
        add_copy(node, graph, before, count, &line(to, from, bytes, kind)?)
    }

    fn cudaGraphAddMemcpyNodeToSymbol(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        to: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int
    ) {
        let to = within(to, offset, bytes)?;
        add_copy(node, graph, before, count, &line(to, from, bytes, kind)?)
    }

    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        to: *mut c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_int
    ) {
        let from = within(from, offset, bytes)?;
        add_copy(node, graph, before, count, &line(to, from, bytes, kind)?)
    }

    fn cudaGraphAddMemsetNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS
    ) {
        check(context()?.cuGraphAddMemsetNode(node, graph, before, count, params, null_mut()))
    }

    fn cudaGraphAddHostNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        params: *const CUDA_HOST_NODE_PARAMS
    ) {
        check(context()?.cuGraphAddHostNode(node, graph, before, count, params))
    }

    fn cudaGraphAddEmptyNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize
    ) {
        check(context()?.cuGraphAddEmptyNode(node, graph, before, count))
    }

    fn cudaGraphAddChildGraphNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        child: CUgraph
    ) {
        check(context()?.cuGraphAddChildGraphNode(node, graph, before, count, child))
    }

    fn cudaGraphAddEventRecordNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        event: CUevent
    ) {
        check(context()?.cuGraphAddEventRecordNode(node, graph, before, count, event))
    }

    fn cudaGraphAddEventWaitNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        event: CUevent
    ) {
        check(context()?.cuGraphAddEventWaitNode(node, graph, before, count, event))
    }

    fn cudaGraphAddMemAllocNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS
    ) {
        check(context()?.cuGraphAddMemAllocNode(node, graph, before, count, params))
    }

    fn cudaGraphAddMemFreeNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, count: usize,
        pointer: *mut c_void
    ) {
        check(context()?.cuGraphAddMemFreeNode(node, graph, before, count, pointer as u64))
    }

    fn cudaGraphAddNode(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode, third: usize,
        fourth: usize, fifth: *mut NodeParams
    ) {
        match is_cuda_12() {
            true => add_any(node, graph, before, third, fourth as *mut NodeParams),
            false => add_any(node, graph, before, fourth, fifth),
        }
    }

    fn cudaGraphAddNode_v2(
        node: *mut CUgraphNode, graph: CUgraph, before: *const CUgraphNode,
        _data: *const CUgraphEdgeData, count: usize, params: *mut NodeParams
    ) {
        add_any(node, graph, before, count, params)
    }

    fn cudaGraphNodeSetParams(node: CUgraphNode, params: *mut NodeParams) {
        check(context()?.cuGraphNodeSetParams(node, &mut of_any(params)?))
    }

    fn cudaGraphExecNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *mut NodeParams) {
        check(context()?.cuGraphExecNodeSetParams(exec, node, &mut of_any(params)?))
    }

    fn cudaGraphKernelNodeGetParams(node: CUgraphNode, params: *mut KernelNodeParams) {
        let mut found = CUDA_KERNEL_NODE_PARAMS::default();
        check(context()?.cuGraphKernelNodeGetParams(node, &mut found))?;
        let handle = if found.func.is_null() { found.kern as usize } else { found.func as usize };
        *out(params)? = KernelNodeParams {
            func: host_of(handle).unwrap_or(handle) as _,
            grid_dim_x: found.grid_dim_x,
            grid_dim_y: found.grid_dim_y,
            grid_dim_z: found.grid_dim_z,
            block_dim_x: found.block_dim_x,
            block_dim_y: found.block_dim_y,
            block_dim_z: found.block_dim_z,
            shared_mem_bytes: found.shared_mem_bytes,
            kernel_params: found.kernel_params,
            extra: found.extra,
        };
        Ok(())
    }

    fn cudaGraphKernelNodeSetParams(node: CUgraphNode, params: *const KernelNodeParams) {
        check(context()?.cuGraphKernelNodeSetParams(node, &of_kernel(params)?))
    }

    fn cudaGraphExecKernelNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: *const KernelNodeParams
    ) {
        check(context()?.cuGraphExecKernelNodeSetParams(exec, node, &of_kernel(params)?))
    }

    fn cudaGraphKernelNodeCopyAttributes(to: CUgraphNode, from: CUgraphNode) {
        check(context()?.cuGraphKernelNodeCopyAttributes(to, from))
    }

    fn cudaGraphKernelNodeGetAttribute(
        node: CUgraphNode, attribute: CUlaunchAttributeID, value: *mut CUstreamAttrValue
    ) {
        check(context()?.cuGraphKernelNodeGetAttribute(node, attribute, value))
    }

    fn cudaGraphKernelNodeSetAttribute(
        node: CUgraphNode, attribute: CUlaunchAttributeID, value: *const CUstreamAttrValue
    ) {
        check(context()?.cuGraphKernelNodeSetAttribute(node, attribute, value))
    }

    fn cudaGraphMemcpyNodeGetParams(node: CUgraphNode, params: *mut Memcpy3D) {
        let mut found = CUDA_MEMCPY3D::default();
        let api = context()?;
        check(api.cuGraphMemcpyNodeGetParams(node, &mut found))?;
        *out(params)? = volume_back(api, &found)?;
        Ok(())
    }

    fn cudaGraphMemcpyNodeSetParams(node: CUgraphNode, params: *const Memcpy3D) {
        set_copy(node, &volume(context()?, params.as_ref())?)
    }

    fn cudaGraphMemcpyNodeSetParams1D(
        node: CUgraphNode, to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int
    ) {
        set_copy(node, &line(to, from, bytes, kind)?)
    }

    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: CUgraphNode, to: *const c_void, from: *const c_void, bytes: usize, offset: usize,
        kind: c_int
    ) {
        set_copy(node, &line(within(to, offset, bytes)?, from, bytes, kind)?)
    }

    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: CUgraphNode, to: *mut c_void, from: *const c_void, bytes: usize, offset: usize,
        kind: c_int
    ) {
        set_copy(node, &line(to, within(from, offset, bytes)?, bytes, kind)?)
    }

    fn cudaGraphExecMemcpyNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: *const Memcpy3D
    ) {
        set_copy_in(exec, node, &volume(context()?, params.as_ref())?)
    }

    fn cudaGraphExecMemcpyNodeSetParams1D(
        exec: CUgraphExec, node: CUgraphNode, to: *mut c_void, from: *const c_void, bytes: usize,
        kind: c_int
    ) {
        set_copy_in(exec, node, &line(to, from, bytes, kind)?)
    }

    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        exec: CUgraphExec, node: CUgraphNode, to: *const c_void, from: *const c_void,
        bytes: usize, offset: usize, kind: c_int
    ) {
        set_copy_in(exec, node, &line(within(to, offset, bytes)?, from, bytes, kind)?)
    }

    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        exec: CUgraphExec, node: CUgraphNode, to: *mut c_void, from: *const c_void, bytes: usize,
        offset: usize, kind: c_int
    ) {
        set_copy_in(exec, node, &line(to, within(from, offset, bytes)?, bytes, kind)?)
    }

    fn cudaGraphMemsetNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMSET_NODE_PARAMS) {
        check(context()?.cuGraphMemsetNodeGetParams(node, params))
    }

    fn cudaGraphMemsetNodeSetParams(node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS) {
        check(context()?.cuGraphMemsetNodeSetParams(node, params))
    }

    fn cudaGraphExecMemsetNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS
    ) {
        check(context()?.cuGraphExecMemsetNodeSetParams(exec, node, params, null_mut()))
    }

    fn cudaGraphHostNodeGetParams(node: CUgraphNode, params: *mut CUDA_HOST_NODE_PARAMS) {
        check(context()?.cuGraphHostNodeGetParams(node, params))
    }

    fn cudaGraphHostNodeSetParams(node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS) {
        check(context()?.cuGraphHostNodeSetParams(node, params))
    }

    fn cudaGraphExecHostNodeSetParams(
        exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS
    ) {
        check(context()?.cuGraphExecHostNodeSetParams(exec, node, params))
    }

    fn cudaGraphEventRecordNodeGetEvent(node: CUgraphNode, event: *mut CUevent) {
        check(context()?.cuGraphEventRecordNodeGetEvent(node, event))
    }

    fn cudaGraphEventRecordNodeSetEvent(node: CUgraphNode, event: CUevent) {
        check(context()?.cuGraphEventRecordNodeSetEvent(node, event))
    }

    fn cudaGraphExecEventRecordNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        check(context()?.cuGraphExecEventRecordNodeSetEvent(exec, node, event))
    }

    fn cudaGraphEventWaitNodeGetEvent(node: CUgraphNode, event: *mut CUevent) {
        check(context()?.cuGraphEventWaitNodeGetEvent(node, event))
    }

    fn cudaGraphEventWaitNodeSetEvent(node: CUgraphNode, event: CUevent) {
        check(context()?.cuGraphEventWaitNodeSetEvent(node, event))
    }

    fn cudaGraphExecEventWaitNodeSetEvent(exec: CUgraphExec, node: CUgraphNode, event: CUevent) {
        check(context()?.cuGraphExecEventWaitNodeSetEvent(exec, node, event))
    }

    fn cudaGraphMemAllocNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        check(context()?.cuGraphMemAllocNodeGetParams(node, params))
    }

    fn cudaGraphMemFreeNodeGetParams(node: CUgraphNode, pointer: *mut u64) {
        check(context()?.cuGraphMemFreeNodeGetParams(node, pointer))
    }

    fn cudaGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: *mut CUgraph) {
        check(context()?.cuGraphChildGraphNodeGetGraph(node, graph))
    }

    fn cudaGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child: CUgraph) {
        check(context()?.cuGraphExecChildGraphNodeSetParams(exec, node, child))
    }

    fn cudaGraphClone(clone: *mut CUgraph, original: CUgraph) {
        check(context()?.cuGraphClone(clone, original))
    }

    fn cudaGraphNodeFindInClone(found: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph) {
        check(context()?.cuGraphNodeFindInClone(found, original, clone))
    }

    fn cudaGraphDestroyNode(node: CUgraphNode) {
        check(context()?.cuGraphDestroyNode(node))
    }

    fn cudaGraphNodeGetType(node: CUgraphNode, kind: *mut c_int) {
        check(context()?.cuGraphNodeGetType(node, kind))
    }

    fn cudaGraphGetRootNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        check(context()?.cuGraphGetRootNodes(graph, nodes, count))
    }

    fn cudaGraphGetEdges(
        graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, third: *mut c_void,
        fourth: *mut usize
    ) {
        match is_cuda_12() {
            true => check(context()?.cuGraphGetEdges_v1(graph, from, to, third.cast())),
            false => check(context()?.cuGraphGetEdges(graph, from, to, third.cast(), fourth)),
        }
    }

    fn cudaGraphGetEdges_v2(
        graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, data: *mut CUgraphEdgeData,
        count: *mut usize
    ) {
        check(context()?.cuGraphGetEdges(graph, from, to, data, count))
    }

    fn cudaGraphNodeGetDependencies(
        node: CUgraphNode, nodes: *mut CUgraphNode, second: *mut c_void, third: *mut usize
    ) {
        match is_cuda_12() {
            true => check(context()?.cuGraphNodeGetDependencies_v1(node, nodes, second.cast())),
            false => check(context()?.cuGraphNodeGetDependencies(node, nodes, second.cast(), third)),
        }
    }

    fn cudaGraphNodeGetDependencies_v2(
        node: CUgraphNode, nodes: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize
    ) {
        check(context()?.cuGraphNodeGetDependencies(node, nodes, data, count))
    }

    fn cudaGraphNodeGetDependentNodes(
        node: CUgraphNode, nodes: *mut CUgraphNode, second: *mut c_void, third: *mut usize
    ) {
        match is_cuda_12() {
            true => check(context()?.cuGraphNodeGetDependentNodes_v1(node, nodes, second.cast())),
            false => check(context()?.cuGraphNodeGetDependentNodes(node, nodes, second.cast(), third)),
        }
    }

    fn cudaGraphNodeGetDependentNodes_v2(
        node: CUgraphNode, nodes: *mut CUgraphNode, data: *mut CUgraphEdgeData, count: *mut usize
    ) {
        check(context()?.cuGraphNodeGetDependentNodes(node, nodes, data, count))
    }

    fn cudaGraphAddDependencies(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, third: usize, fourth: usize
    ) {
        let count = if is_cuda_12() { third } else { fourth };
        check(context()?.cuGraphAddDependencies(graph, from, to, null(), count))
    }

    fn cudaGraphAddDependencies_v2(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
        _data: *const CUgraphEdgeData, count: usize
    ) {
        check(context()?.cuGraphAddDependencies(graph, from, to, null(), count))
    }

    fn cudaGraphRemoveDependencies(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, third: usize, fourth: usize
    ) {
        let count = if is_cuda_12() { third } else { fourth };
        check(context()?.cuGraphRemoveDependencies(graph, from, to, null(), count))
    }

    fn cudaGraphRemoveDependencies_v2(
        graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
        _data: *const CUgraphEdgeData, count: usize
    ) {
        check(context()?.cuGraphRemoveDependencies(graph, from, to, null(), count))
    }

    fn cudaGraphNodeSetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: c_uint) {
        check(context()?.cuGraphNodeSetEnabled(exec, node, enabled))
    }

    fn cudaGraphNodeGetEnabled(exec: CUgraphExec, node: CUgraphNode, enabled: *mut c_uint) {
        check(context()?.cuGraphNodeGetEnabled(exec, node, enabled))
    }

    fn cudaGraphInstantiateWithParams(
        exec: *mut CUgraphExec, graph: CUgraph, params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS
    ) as cudaGraphInstantiateWithParams_ptsz {
        check(context()?.cuGraphInstantiateWithParams(exec, graph, params))
    }

    fn cudaGraphExecGetFlags(exec: CUgraphExec, flags: *mut u64) {
        check(context()?.cuGraphExecGetFlags(exec, flags))
    }

    fn cudaGraphExecUpdate(
        exec: CUgraphExec, graph: CUgraph, info: *mut CUgraphExecUpdateResultInfo
    ) {
        check(context()?.cuGraphExecUpdate(exec, graph, info))
    }

    fn cudaGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint) {
        check(context()?.cuGraphDebugDotPrint(graph, path, flags))
    }

    fn cudaDeviceGraphMemTrim(of: c_int) {
        check(driver()?.cuDeviceGraphMemTrim(of))
    }

    fn cudaDeviceGetGraphMemAttribute(of: c_int, attribute: c_int, value: *mut c_void) {
        check(driver()?.cuDeviceGetGraphMemAttribute(of, attribute, value))
    }

    fn cudaDeviceSetGraphMemAttribute(of: c_int, attribute: c_int, value: *mut c_void) {
        check(driver()?.cuDeviceSetGraphMemAttribute(of, attribute, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members for kernels and copies stand where the driver's stand.
    #[test]
    fn layouts_are_those_of_driver_types_h() {
        assert_eq!(std::mem::offset_of!(KernelNodeParams, kernel_params), 40);
        assert_eq!(size_of::<KernelNodeParams>(), 56);
        assert_eq!(size_of::<Memcpy3D>(), 160);
        assert_eq!(size_of::<NodeParams>(), 256);
    }
}
