// Graphs put together by hand through the runtime API: nodes of every kind, edges that turn the order
// of adding around, changes of nodes and of the executable graph, clones, child graphs, memory of graphs.
//@ variants: clean
//@[clean] expect: no-race
#include "app.h"

#include <cstring>

#if CUDART_VERSION >= 13000
#define NO_DATA nullptr,
#else
#define NO_DATA
#endif

const int n = 256;
__device__ int table[n];

__global__ void add(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] += value; }
__global__ void twice(int *data) { data[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }
__global__ void from_table(int *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = table[i] + 1;
}

void count_up(void *counter) { ++*static_cast<int *>(counter); }

bool all(const int *data, int value) {
    for (int i = 0; i < n; i++)
        if (data[i] != value) return false;
    return true;
}

cudaKernelNodeParams kernel(void *function, void **arguments) {
    cudaKernelNodeParams params = {};
    params.func = function;
    params.gridDim = dim3(2);
    params.blockDim = dim3(n / 2);
    params.kernelParams = arguments;
    return params;
}

int main() {
    bool right = true;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    int *data;
    int host[n];
    CHECK(cudaMalloc(&data, sizeof host));

    // memset, add, twice, copy: added in another order than they run in.
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    int five = 5;
    void *add_arguments[] = {&data, &five}, *twice_arguments[] = {&data};
    cudaGraphNode_t copy, doubling, adding, clear, call;
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, host, data, sizeof host, cudaMemcpyDeviceToHost));
    cudaKernelNodeParams params = kernel((void *)twice, twice_arguments);
    CHECK(cudaGraphAddKernelNode(&doubling, graph, nullptr, 0, &params));
    params = kernel((void *)add, add_arguments);
    CHECK(cudaGraphAddKernelNode(&adding, graph, nullptr, 0, &params));
    cudaMemsetParams fill = {};
    fill.dst = data;
    fill.elementSize = 4;
    fill.value = 1;
    fill.width = n;
    fill.height = 1;
    CHECK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &fill));
    int calls = 0;
    cudaHostNodeParams host_params = {count_up, &calls};
    CHECK(cudaGraphAddHostNode(&call, graph, &copy, 1, &host_params));
    cudaGraphNode_t from[] = {clear, adding, doubling}, to[] = {adding, doubling, copy};
    CHECK(cudaGraphAddDependencies(graph, from, to, NO_DATA 3));

    size_t count = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    right = right && count == 5;
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, NO_DATA & count));
    right = right && count == 4;
    cudaGraphNode_t roots[5];
    count = 5;
    CHECK(cudaGraphGetRootNodes(graph, roots, &count));
    right = right && count == 1 && roots[0] == clear;
    count = 5;
    CHECK(cudaGraphNodeGetDependencies(doubling, roots, NO_DATA & count));
    right = right && count == 1 && roots[0] == adding;
    count = 5;
    CHECK(cudaGraphNodeGetDependentNodes(copy, roots, NO_DATA & count));
    right = right && count == 1 && roots[0] == call;
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(clear, &type));
    right = right && type == cudaGraphNodeTypeMemset;

    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    right = right && all(host, 12) && calls == 1;

    // The executable graph changes, the graph does not.
    int seven = 7;
    void *other_arguments[] = {&data, &seven};
    params = kernel((void *)add, other_arguments);
    CHECK(cudaGraphExecKernelNodeSetParams(exec, adding, &params));
    fill.value = 2;
    CHECK(cudaGraphExecMemsetNodeSetParams(exec, clear, &fill));
    int other_host[n], other_calls = 0;
    CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, copy, other_host, data, sizeof host, cudaMemcpyDeviceToHost));
    host_params.userData = &other_calls;
    CHECK(cudaGraphExecHostNodeSetParams(exec, call, &host_params));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    right = right && all(other_host, 18) && calls == 1 && other_calls == 1;

    // What nodes tell of themselves.
    cudaKernelNodeParams asked;
    CHECK(cudaGraphKernelNodeGetParams(adding, &asked));
    right = right && asked.func == (void *)add && asked.blockDim.x == n / 2 &&
            *static_cast<int *>(asked.kernelParams[1]) == 5;
    cudaMemsetParams asked_fill;
    CHECK(cudaGraphMemsetNodeGetParams(clear, &asked_fill));
    right = right && asked_fill.value == 1 && asked_fill.width == n;
    cudaMemcpy3DParms asked_copy;
    CHECK(cudaGraphMemcpyNodeGetParams(copy, &asked_copy));
    right = right && asked_copy.dstPtr.ptr == host && asked_copy.extent.width == sizeof host;
    cudaHostNodeParams asked_host;
    CHECK(cudaGraphHostNodeGetParams(call, &asked_host));
    right = right && asked_host.fn == count_up && asked_host.userData == &calls;

    // A changed graph updates an executable one; one of another shape does not.
    CHECK(cudaGraphKernelNodeSetParams(adding, &params));
    cudaGraphExecUpdateResultInfo result;
    CHECK(cudaGraphExecUpdate(exec, graph, &result));
    memset(host, 0, sizeof host);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    right = right && all(host, 16) && calls == 2 && result.result == cudaGraphExecUpdateSuccess;
    cudaGraph_t clone;
    CHECK(cudaGraphClone(&clone, graph));
    cudaGraphNode_t cloned;
    CHECK(cudaGraphNodeFindInClone(&cloned, call, clone));
    CHECK(cudaGraphDestroyNode(cloned));
    right = right && cudaGraphExecUpdate(exec, clone, &result) == cudaErrorGraphExecUpdateFailure;
    CHECK(cudaGraphGetEdges(clone, nullptr, nullptr, NO_DATA & count));
    right = right && count == 3;
    right = right && cudaGetLastError() == cudaErrorGraphExecUpdateFailure;
    CHECK(cudaGraphNodeSetEnabled(exec, doubling, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    right = right && all(host, 8);

    // A child graph, symbols, events and an empty node.
    cudaGraph_t outer;
    CHECK(cudaGraphCreate(&outer, 0));
    int ones[n], results[n];
    for (int i = 0; i < n; i++) ones[i] = i;
    cudaGraphNode_t to_table, read, child, empty, record, wait, back;
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaGraphAddMemcpyNodeToSymbol(&to_table, outer, nullptr, 0, table, ones, sizeof ones, 0,
                                         cudaMemcpyHostToDevice));
    CHECK(cudaGraphAddEmptyNode(&empty, outer, &to_table, 1));
    params = kernel((void *)from_table, twice_arguments);
    CHECK(cudaGraphAddKernelNode(&read, outer, &empty, 1, &params));
    CHECK(cudaGraphAddEventRecordNode(&record, outer, &read, 1, event));
    CHECK(cudaGraphAddEventWaitNode(&wait, outer, &record, 1, event));
    CHECK(cudaGraphAddMemcpyNode1D(&back, outer, &wait, 1, results, data, sizeof results, cudaMemcpyDeviceToHost));
    CHECK(cudaGraphAddChildGraphNode(&child, outer, &back, 1, clone));
    cudaGraph_t embedded;
    CHECK(cudaGraphChildGraphNodeGetGraph(child, &embedded));
    CHECK(cudaGraphGetNodes(embedded, nullptr, &count));
    right = right && count == 4 && embedded != clone;
    cudaEvent_t asked_event;
    CHECK(cudaGraphEventRecordNodeGetEvent(record, &asked_event));
    right = right && asked_event == event;
    CHECK(cudaGraphDebugDotPrint(outer, "/dev/null", 0));
    cudaGraphExec_t outer_exec;
    cudaGraphInstantiateParams how = {};
    CHECK(cudaGraphInstantiateWithParams(&outer_exec, outer, &how));
    memset(host, 0, sizeof host);
    CHECK(cudaGraphLaunch(outer_exec, stream));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; i++) right = right && results[i] == i + 1;
    right = right && all(host, 16);

    // Nodes of any kind by one function, and memory that belongs to the graph.
    cudaGraph_t memory;
    CHECK(cudaGraphCreate(&memory, 0));
    cudaMemAllocNodeParams alloc = {};
    alloc.poolProps.allocType = cudaMemAllocationTypePinned;
    alloc.poolProps.location.type = cudaMemLocationTypeDevice;
    alloc.bytesize = sizeof host;
    cudaGraphNode_t allocated, used, fetched, freed, filled;
    CHECK(cudaGraphAddMemAllocNode(&allocated, memory, nullptr, 0, &alloc));
    cudaGraphNodeParams any = {};
    any.type = cudaGraphNodeTypeMemset;
    any.memset.dst = alloc.dptr;
    any.memset.elementSize = 1;
    any.memset.width = sizeof host;
    any.memset.height = 1;
    CHECK(cudaGraphAddNode(&filled, memory, &allocated, NO_DATA 1, &any));
    any = {};
    any.type = cudaGraphNodeTypeKernel;
    void *inner_arguments[] = {&alloc.dptr, &five};
    any.kernel.func = (void *)add;
    any.kernel.gridDim = dim3(2);
    any.kernel.blockDim = dim3(n / 2);
    any.kernel.kernelParams = inner_arguments;
    CHECK(cudaGraphAddNode(&used, memory, &filled, NO_DATA 1, &any));
    any = {};
    any.type = cudaGraphNodeTypeMemcpy;
    any.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(alloc.dptr, sizeof host, n, 1);
    any.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(host, sizeof host, n, 1);
    any.memcpy.copyParams.extent = make_cudaExtent(sizeof host, 1, 1);
    any.memcpy.copyParams.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaGraphAddNode(&fetched, memory, &used, NO_DATA 1, &any));
    CHECK(cudaGraphAddMemFreeNode(&freed, memory, &fetched, 1, alloc.dptr));
    cudaGraphExec_t memory_exec;
    CHECK(cudaGraphInstantiate(&memory_exec, memory, 0));
    for (int round = 0; round < 2; round++) {
        memset(host, 0, sizeof host);
        CHECK(cudaGraphLaunch(memory_exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        right = right && all(host, 5);
    }
    right = right && cudaFree(alloc.dptr) == cudaErrorInvalidValue;
    cudaGetLastError();

    // Two streams captured, with what the capture says of itself, and allocations in it.
    cudaStream_t side;
    cudaEvent_t fork, join;
    CHECK(cudaStreamCreate(&side));
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaEventCreate(&join));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    int *scratch;
    CHECK(cudaMallocAsync(&scratch, sizeof host, stream));
    CHECK(cudaMemsetAsync(scratch, 0, sizeof host, stream));
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(side, fork, 0));
    add<<<2, n / 2, 0, side>>>(data, 1);
    add<<<2, n / 2, 0, stream>>>(scratch, 3);
    CHECK(cudaEventRecord(join, side));
    CHECK(cudaStreamWaitEvent(stream, join, 0));
    cudaStreamCaptureStatus capturing;
    unsigned long long id;
    cudaGraph_t into;
    const cudaGraphNode_t *last;
#if CUDART_VERSION >= 13000
    CHECK(cudaStreamGetCaptureInfo(stream, &capturing, &id, &into, &last, nullptr, &count));
#else
    CHECK(cudaStreamGetCaptureInfo_v2(stream, &capturing, &id, &into, &last, &count));
#endif
    right = right && capturing == cudaStreamCaptureStatusActive && count == 2 && last[0] != last[1];
    CHECK(cudaMemcpyAsync(host, scratch, sizeof host, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(scratch, stream));
    cudaGraph_t captured;
    CHECK(cudaStreamEndCapture(stream, &captured));
    right = right && captured == into;
    CHECK(cudaGraphGetEdges(captured, nullptr, nullptr, NO_DATA & count));
    right = right && count == 6;
    cudaGraphExec_t captured_exec;
    CHECK(cudaGraphInstantiate(&captured_exec, captured, 0));
    CHECK(cudaMemset(data, 0, sizeof host));
    for (int round = 0; round < 2; round++) {
        CHECK(cudaGraphLaunch(captured_exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        right = right && all(host, 3);
    }
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    right = right && all(host, 2);

    // Work of another stream that does not come back ends a capture.
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(side, fork, 0));
    add<<<2, n / 2, 0, side>>>(data, 1);
    right = right && cudaStreamEndCapture(stream, &captured) == cudaErrorStreamCaptureUnjoined;
    cudaGetLastError();

    // A graph, its clone and its executable graph keep an object alive.
    int destroyed = 0;
    cudaUserObject_t object;
    CHECK(cudaUserObjectCreate(&object, &destroyed, count_up, 1, cudaUserObjectNoDestructorSync));
    cudaGraph_t keeper, other_keeper;
    CHECK(cudaGraphCreate(&keeper, 0));
    CHECK(cudaGraphAddEmptyNode(&empty, keeper, nullptr, 0));
    CHECK(cudaGraphRetainUserObject(keeper, object, 1, cudaGraphUserObjectMove));
    CHECK(cudaGraphClone(&other_keeper, keeper));
    cudaGraphExec_t keeper_exec;
    CHECK(cudaGraphInstantiate(&keeper_exec, keeper, 0));
    CHECK(cudaGraphDestroy(keeper));
    CHECK(cudaGraphDestroy(other_keeper));
    right = right && destroyed == 0;
    CHECK(cudaGraphExecDestroy(keeper_exec));
    right = right && destroyed == 1;

    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphExecDestroy(outer_exec));
    CHECK(cudaGraphExecDestroy(memory_exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(clone));
    CHECK(cudaGraphDestroy(outer));
    CHECK(cudaGraphDestroy(memory));
    CHECK(cudaFree(data));
    return verdict(right);
}
