//! Captures of streams: what can be asked of one, and its dependencies; objects that graphs keep alive.
//!
//! As in `graph`, functions got edge data in CUDA 13 under the names of CUDA 12.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use driver::sys::{CUgraph, CUgraphEdgeData, CUgraphNode, CUhostFn, CUstream, CUuserObject};

use crate::context::{context, driver, is_cuda_12};
use crate::entry::entry;
use crate::error::check;

entry! {
    fn cudaUserObjectCreate(
        object: *mut CUuserObject, pointer: *mut c_void, destroy: CUhostFn, references: c_uint,
        flags: c_uint
    ) {
        check(driver()?.cuUserObjectCreate(object, pointer, destroy, references, flags))
    }

    fn cudaUserObjectRetain(object: CUuserObject, count: c_uint) {
        check(driver()?.cuUserObjectRetain(object, count))
    }

    fn cudaUserObjectRelease(object: CUuserObject, count: c_uint) {
        check(driver()?.cuUserObjectRelease(object, count))
    }

    fn cudaGraphRetainUserObject(
        graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint
    ) {
        check(driver()?.cuGraphRetainUserObject(graph, object, count, flags))
    }

    fn cudaGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint) {
        check(driver()?.cuGraphReleaseUserObject(graph, object, count))
    }

    fn cudaStreamBeginCaptureToGraph(
        stream: CUstream, graph: CUgraph, before: *const CUgraphNode, data: *const CUgraphEdgeData,
        count: usize, mode: c_int
    ) as cudaStreamBeginCaptureToGraph_ptsz {
        check(context()?.cuStreamBeginCaptureToGraph(stream, graph, before, data, count, mode))
    }

    fn cudaStreamGetCaptureInfo(
        stream: CUstream, status: *mut c_int, id: *mut u64, graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode, data: *mut *const CUgraphEdgeData, count: *mut usize
    ) as cudaStreamGetCaptureInfo_ptsz {
        let api = context()?;
        // The function of CUDA 12 has the first three arguments only.
        match is_cuda_12() {
            true => check(api.cuStreamGetCaptureInfo_v2(
                stream, status, id, null_mut(), null_mut(), null_mut())),
            false => check(api.cuStreamGetCaptureInfo_v3(
                stream, status, id, graph, nodes, data, count)),
        }
    }

    fn cudaStreamGetCaptureInfo_v2(
        stream: CUstream, status: *mut c_int, id: *mut u64, graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode, count: *mut usize
    ) as cudaStreamGetCaptureInfo_v2_ptsz {
        check(context()?.cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count))
    }

    fn cudaStreamGetCaptureInfo_v3(
        stream: CUstream, status: *mut c_int, id: *mut u64, graph: *mut CUgraph,
        nodes: *mut *const CUgraphNode, data: *mut *const CUgraphEdgeData, count: *mut usize
    ) as cudaStreamGetCaptureInfo_v3_ptsz {
        check(context()?.cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, data, count))
    }

    fn cudaStreamUpdateCaptureDependencies(
        stream: CUstream, nodes: *mut CUgraphNode, second: usize, third: usize, fourth: c_uint
    ) as cudaStreamUpdateCaptureDependencies_ptsz {
        let (count, flags) = match is_cuda_12() {
            true => (second, third as c_uint),
            false => (third, fourth),
        };
        check(context()?.cuStreamUpdateCaptureDependencies(stream, nodes, null(), count, flags))
    }

    fn cudaStreamUpdateCaptureDependencies_v2(
        stream: CUstream, nodes: *mut CUgraphNode, _data: *const CUgraphEdgeData, count: usize,
        flags: c_uint
    ) as cudaStreamUpdateCaptureDependencies_v2_ptsz {
        check(context()?.cuStreamUpdateCaptureDependencies(stream, nodes, null(), count, flags))
    }
}
