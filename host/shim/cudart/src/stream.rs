//! Streams, events and graphs.

use std::ffi::{c_int, c_uint, c_void};

use driver::sys::{CUevent, CUgraph, CUgraphExec, CUgraphNode, CUresult, CUstream};

use crate::context::context;
use crate::entry::entry;
use crate::error::check;

/// `cudaStreamCallback_t`
pub type Callback = Option<unsafe extern "C" fn(CUstream, c_int, *mut c_void)>;

/// A runtime callback and its data, for the driver's callback type.
struct Forward(Callback, *mut c_void);

unsafe extern "C" fn forward(stream: CUstream, result: CUresult, data: *mut c_void) {
    // SAFETY: `cudaStreamAddCallback` made the box for this one call.
    let forward = unsafe { Box::from_raw(data.cast::<Forward>()) };
    if let Some(callback) = forward.0 {
        // SAFETY: the program asked for this call.
        unsafe { callback(stream, result.0, forward.1) };
    }
}

entry! {
    fn cudaStreamCreate(stream: *mut CUstream) {
        check(context()?.cuStreamCreate(stream, 0))
    }

    fn cudaStreamCreateWithFlags(stream: *mut CUstream, flags: c_uint) {
        check(context()?.cuStreamCreate(stream, flags))
    }

    fn cudaStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int) {
        check(context()?.cuStreamCreateWithPriority(stream, flags, priority))
    }

    fn cudaStreamDestroy(stream: CUstream) {
        check(context()?.cuStreamDestroy(stream))
    }

    fn cudaStreamQuery(stream: CUstream) as cudaStreamQuery_ptsz {
        check(context()?.cuStreamQuery(stream))
    }

    fn cudaStreamSynchronize(stream: CUstream) as cudaStreamSynchronize_ptsz {
        check(context()?.cuStreamSynchronize(stream))
    }

    fn cudaStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint) as cudaStreamWaitEvent_ptsz {
        check(context()?.cuStreamWaitEvent(stream, event, flags))
    }

    fn cudaStreamGetFlags(stream: CUstream, flags: *mut c_uint) as cudaStreamGetFlags_ptsz {
        check(context()?.cuStreamGetFlags(stream, flags))
    }

    fn cudaStreamGetPriority(stream: CUstream, priority: *mut c_int) as cudaStreamGetPriority_ptsz {
        check(context()?.cuStreamGetPriority(stream, priority))
    }

    fn cudaStreamGetId(stream: CUstream, id: *mut u64) as cudaStreamGetId_ptsz {
        check(context()?.cuStreamGetId(stream, id))
    }

    fn cudaStreamGetDevice(stream: CUstream, device: *mut c_int) as cudaStreamGetDevice_ptsz {
        check(context()?.cuStreamGetDevice(stream, device))
    }

    fn cudaStreamAttachMemAsync(
        stream: CUstream, pointer: *mut c_void, bytes: usize, flags: c_uint
    ) as cudaStreamAttachMemAsync_ptsz {
        check(context()?.cuStreamAttachMemAsync(stream, pointer as u64, bytes, flags))
    }

    fn cudaStreamAddCallback(
        stream: CUstream, callback: Callback, data: *mut c_void, flags: c_uint
    ) as cudaStreamAddCallback_ptsz {
        let data = Box::into_raw(Box::new(Forward(callback, data)));
        check(context()?.cuStreamAddCallback(stream, Some(forward), data.cast(), flags))
    }

    fn cudaStreamBeginCapture(stream: CUstream, mode: c_int) as cudaStreamBeginCapture_ptsz {
        check(context()?.cuStreamBeginCapture(stream, mode))
    }

    fn cudaStreamEndCapture(stream: CUstream, graph: *mut CUgraph) as cudaStreamEndCapture_ptsz {
        check(context()?.cuStreamEndCapture(stream, graph))
    }

    fn cudaStreamIsCapturing(stream: CUstream, status: *mut c_int) as cudaStreamIsCapturing_ptsz {
        check(context()?.cuStreamIsCapturing(stream, status))
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        check(context()?.cuThreadExchangeStreamCaptureMode(mode))
    }

    fn cudaEventCreate(event: *mut CUevent) {
        check(context()?.cuEventCreate(event, 0))
    }

    fn cudaEventCreateWithFlags(event: *mut CUevent, flags: c_uint) {
        check(context()?.cuEventCreate(event, flags))
    }

    fn cudaEventRecord(event: CUevent, stream: CUstream) as cudaEventRecord_ptsz {
        check(context()?.cuEventRecord(event, stream))
    }

    fn cudaEventRecordWithFlags(
        event: CUevent, stream: CUstream, flags: c_uint
    ) as cudaEventRecordWithFlags_ptsz {
        check(context()?.cuEventRecordWithFlags(event, stream, flags))
    }

    fn cudaEventQuery(event: CUevent) {
        check(context()?.cuEventQuery(event))
    }

    fn cudaEventSynchronize(event: CUevent) {
        check(context()?.cuEventSynchronize(event))
    }

    fn cudaEventDestroy(event: CUevent) {
        check(context()?.cuEventDestroy(event))
    }

    fn cudaEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent) {
        check(context()?.cuEventElapsedTime(milliseconds, start, end))
    }

    fn cudaEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent) {
        check(context()?.cuEventElapsedTime(milliseconds, start, end))
    }

    fn cudaGraphCreate(graph: *mut CUgraph, flags: c_uint) {
        check(context()?.cuGraphCreate(graph, flags))
    }

    fn cudaGraphDestroy(graph: CUgraph) {
        check(context()?.cuGraphDestroy(graph))
    }

    fn cudaGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        check(context()?.cuGraphGetNodes(graph, nodes, count))
    }

    fn cudaGraphInstantiate(executable: *mut CUgraphExec, graph: CUgraph, flags: u64) {
        check(context()?.cuGraphInstantiateWithFlags(executable, graph, flags))
    }

    fn cudaGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: u64) {
        check(context()?.cuGraphInstantiateWithFlags(executable, graph, flags))
    }

    fn cudaGraphLaunch(executable: CUgraphExec, stream: CUstream) as cudaGraphLaunch_ptsz {
        check(context()?.cuGraphLaunch(executable, stream))
    }

    fn cudaGraphUpload(executable: CUgraphExec, stream: CUstream) as cudaGraphUpload_ptsz {
        check(context()?.cuGraphUpload(executable, stream))
    }

    fn cudaGraphExecDestroy(executable: CUgraphExec) {
        check(context()?.cuGraphExecDestroy(executable))
    }

    fn cudaCtxResetPersistingL2Cache() {
        check(context()?.cuCtxResetPersistingL2Cache())
    }

    fn cudaProfilerStart() {
        check(context()?.cuProfilerStart())
    }

    fn cudaProfilerStop() {
        check(context()?.cuProfilerStop())
    }

    fn cudaDeviceSynchronize() {
        check(context()?.cuCtxSynchronize())
    }

    fn cudaThreadSynchronize() {
        check(context()?.cuCtxSynchronize())
    }
}
