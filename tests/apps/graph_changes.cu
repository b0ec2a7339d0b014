// Graphs whose nodes are changed before and after they are instantiated: copies, fills, calls, events, child graphs,
// attributes; edges that go; objects that graphs keep; and what a stream captures into a graph that is already there.
//@ variants: clean
//@[clean] expect: no-race
#include "app.h"

#include <cstring>

#if CUDART_VERSION >= 13000
#define NO_DATA nullptr,
#else
#define NO_DATA
#endif

const int n = 128;
__device__ int table[n], other_table[n];

__global__ void add(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] += value; }

static bool all(const int *data, int value) {
    for (int i = 0; i < n; i++)
        if (data[i] != value) return false;
    return true;
}

static void count_up(void *counter) { ++*static_cast<int *>(counter); }
static void count_down(void *counter) { --*static_cast<int *>(counter); }

static cudaStream_t stream;

static void run(cudaGraphExec_t executable) {
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
}

static cudaGraphExec_t made(cudaGraph_t graph) {
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    unsigned long long flags = 7;
    CHECK(cudaGraphExecGetFlags(executable, &flags));
    if (flags != 0) std::exit(3);
    return executable;
}

// Copies to and from memory and symbols.
static bool copies(int *data, int *other) {
    int host[n], ones[n], twos[n];
    for (int i = 0; i < n; i++) ones[i] = 1, twos[i] = 2;
    cudaGraph_t graph;
    cudaGraphNode_t in, to, from, out;
    CHECK(cudaGraphCreate(&graph, 0));
    // ones -> data -> table -> other -> host
    CHECK(cudaGraphAddMemcpyNode1D(&in, graph, nullptr, 0, data, twos, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaGraphAddMemcpyNodeToSymbol(&to, graph, &in, 1, other_table, data, sizeof host, 0, cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, data, other_table, sizeof host, 0, cudaMemcpyDeviceToDevice));
    cudaMemcpy3DParms params = {};
    params.srcPtr = make_cudaPitchedPtr(data, sizeof host, sizeof host, 1);
    params.dstPtr = make_cudaPitchedPtr(host, sizeof host, sizeof host, 1);
    params.extent = make_cudaExtent(sizeof host, 1, 1);
    params.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaGraphAddMemcpyNode(&out, graph, &from, 1, &params));
    CHECK(cudaGraphMemcpyNodeSetParams1D(in, data, ones, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaGraphMemcpyNodeSetParamsToSymbol(to, table, data, sizeof host, 0, cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphMemcpyNodeSetParamsFromSymbol(from, other, table, sizeof host, 0, cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphMemcpyNodeGetParams(out, &params));
    params.srcPtr = make_cudaPitchedPtr(other, sizeof host, sizeof host, 1);
    CHECK(cudaGraphMemcpyNodeSetParams(out, &params));
    cudaGraphExec_t executable = made(graph);
    run(executable);
    bool right = all(host, 1);
    // The other way around, in the executable graph only.
    CHECK(cudaMemset(other, 0, sizeof host));
    CHECK(cudaGraphExecMemcpyNodeSetParams1D(executable, in, data, twos, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, to, other_table, data, sizeof host, 0, cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, from, other, other_table, sizeof host / 2, sizeof host / 2,
                                                     cudaMemcpyDeviceToDevice));
    run(executable);
    for (int i = 0; i < n; i++) right = right && host[i] == (i < n / 2 ? 2 : 0);
    params.srcPtr = make_cudaPitchedPtr(data, sizeof host, sizeof host, 1);
    CHECK(cudaGraphExecMemcpyNodeSetParams(executable, out, &params));
    run(executable);
    right = right && all(host, 2);
    CHECK(cudaMemcpyFromSymbol(host, table, sizeof host));
    right = right && all(host, 1);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    return right;
}

// Fills, calls of the host, kernels with attributes.
static bool work(int *data) {
    int host[n], calls = 0, others = 0, three = 3, five = 5;
    cudaGraph_t graph;
    cudaGraphNode_t fill, call, first, second;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaMemsetParams filling = {};
    filling.dst = data;
    filling.elementSize = 4;
    filling.width = n;
    filling.height = 1;
    filling.value = 100;
    CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &filling));
    filling.value = 200;
    CHECK(cudaGraphMemsetNodeSetParams(fill, &filling));
    void *arguments[] = {&data, &three};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add;
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(n);
    kernel.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&first, graph, &fill, 1, &kernel));
    CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &kernel));
    cudaHostNodeParams calling = {count_down, &calls};
    CHECK(cudaGraphAddHostNode(&call, graph, &second, 1, &calling));
    calling.fn = count_up;
    CHECK(cudaGraphHostNodeSetParams(call, &calling));

    cudaLaunchAttributeValue value = {}, told = {};
    value.priority = -1;
    CHECK(cudaGraphKernelNodeSetAttribute(first, cudaLaunchAttributePriority, &value));
    CHECK(cudaGraphKernelNodeCopyAttributes(second, first));
    CHECK(cudaGraphKernelNodeGetAttribute(second, cudaLaunchAttributePriority, &told));
    bool right = told.priority == -1;

    cudaGraphExec_t executable = made(graph);
    run(executable);
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    right = right && all(host, 206) && calls == 1;

    // A node that rests.
    unsigned enabled = 7;
    CHECK(cudaGraphNodeSetEnabled(executable, first, 0));
    CHECK(cudaGraphNodeGetEnabled(executable, first, &enabled));
    right = right && enabled == 0;
    run(executable);
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    right = right && all(host, 203) && calls == 2;
    CHECK(cudaGraphNodeSetEnabled(executable, first, 1));

    // Parameters of any node by one function.
    arguments[1] = &five;
    cudaGraphNodeParams any = {};
    any.type = cudaGraphNodeTypeKernel;
    any.kernel.func = (void *)add;
    any.kernel.gridDim = dim3(1);
    any.kernel.blockDim = dim3(n);
    any.kernel.kernelParams = arguments;
    CHECK(cudaGraphExecNodeSetParams(executable, second, &any));
    CHECK(cudaGraphNodeSetParams(first, &any));
    std::memset(&any, 0, sizeof any);
    any.type = cudaGraphNodeTypeHost;
    any.host.fn = count_up;
    any.host.userData = &others;
    CHECK(cudaGraphExecNodeSetParams(executable, call, &any));
    run(executable);
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    right = right && all(host, 208) && calls == 2 && others == 1;
    CHECK(cudaGraphExecDestroy(executable));
    // The graph itself has the other change.
    executable = made(graph);
    run(executable);
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    right = right && all(host, 208) && calls == 3;
    CHECK(cudaGraphExecDestroy(executable));

    // Without the edge the first kernel begins the graph, and the fill stands alone.
    size_t edges = 0;
    CHECK(cudaGraphRemoveDependencies(graph, &fill, &first, NO_DATA 1));
    CHECK(cudaGraphDestroyNode(fill));
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, NO_DATA &edges));
    right = right && edges == 2;
    executable = made(graph);
    run(executable);
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    right = right && all(host, 216);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    return right;
}

// Events and child graphs.
static bool parts(int *data) {
    int host[n], one = 1, ten = 10;
    cudaGraph_t graph, child, changed;
    cudaGraphNode_t record, wait, inner, whole;
    cudaEvent_t first, second, told;
    CHECK(cudaEventCreate(&first));
    CHECK(cudaEventCreate(&second));
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphCreate(&child, 0));
    void *arguments[] = {&data, &one};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add;
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(n);
    kernel.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&inner, child, nullptr, 0, &kernel));
    CHECK(cudaGraphAddEventRecordNode(&record, graph, nullptr, 0, first));
    CHECK(cudaGraphEventRecordNodeSetEvent(record, second));
    CHECK(cudaGraphAddEventWaitNode(&wait, graph, &record, 1, first));
    CHECK(cudaGraphEventWaitNodeSetEvent(wait, second));
    CHECK(cudaGraphEventWaitNodeGetEvent(wait, &told));
    bool right = told == second;
    CHECK(cudaGraphAddChildGraphNode(&whole, graph, &wait, 1, child));
    cudaGraphExec_t executable = made(graph);
    CHECK(cudaGraphExecEventRecordNodeSetEvent(executable, record, first));
    CHECK(cudaGraphExecEventWaitNodeSetEvent(executable, wait, first));
    CHECK(cudaMemset(data, 0, sizeof host));
    run(executable);
    right = right && cudaEventQuery(first) == cudaSuccess;
    CHECK(cudaGraphClone(&changed, child));
    cudaGraphNode_t copy;
    CHECK(cudaGraphNodeFindInClone(&copy, inner, changed));
    arguments[1] = &ten;
    CHECK(cudaGraphKernelNodeSetParams(copy, &kernel));
    CHECK(cudaGraphExecChildGraphNodeSetParams(executable, whole, changed));
    run(executable);
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    right = right && all(host, 11);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(child));
    CHECK(cudaGraphDestroy(changed));
    CHECK(cudaEventDestroy(first));
    CHECK(cudaEventDestroy(second));
    return right;
}

// Memory of a graph, and an object that it keeps.
static bool kept() {
    cudaGraph_t graph;
    cudaGraphNode_t memory, fill, end;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaMemAllocNodeParams wanted = {}, told = {};
    wanted.poolProps.allocType = cudaMemAllocationTypePinned;
    wanted.poolProps.location.type = cudaMemLocationTypeDevice;
    wanted.bytesize = n * sizeof(int);
    CHECK(cudaGraphAddMemAllocNode(&memory, graph, nullptr, 0, &wanted));
    CHECK(cudaGraphMemAllocNodeGetParams(memory, &told));
    bool right = told.dptr == wanted.dptr && told.bytesize == wanted.bytesize;
    cudaMemsetParams filling = {};
    filling.dst = wanted.dptr;
    filling.elementSize = 1;
    filling.width = n;
    filling.height = 1;
    CHECK(cudaGraphAddMemsetNode(&fill, graph, &memory, 1, &filling));
    CHECK(cudaGraphAddMemFreeNode(&end, graph, &fill, 1, wanted.dptr));
    void *freed;
    CHECK(cudaGraphMemFreeNodeGetParams(end, &freed));
    right = right && freed == wanted.dptr;

    int destroyed = 0;
    cudaUserObject_t object;
    CHECK(cudaUserObjectCreate(&object, &destroyed, count_up, 1, cudaUserObjectNoDestructorSync));
    CHECK(cudaUserObjectRetain(object, 1));
    CHECK(cudaGraphRetainUserObject(graph, object, 2, 0));
    CHECK(cudaGraphReleaseUserObject(graph, object, 1));
    CHECK(cudaUserObjectRelease(object, 2));
    right = right && destroyed == 0;

    cudaGraphExec_t executable = made(graph);
    run(executable);
    size_t used;
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaDeviceGraphMemTrim(0));
    CHECK(cudaDeviceSynchronize());
    return right && used == 0 && destroyed == 1;
}

// A capture that goes on with what stands in a graph already.
static bool captured(int *data) {
    int host[n], two = 2;
    cudaGraph_t graph, same;
    cudaGraphNode_t clear, extra;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaMemsetParams filling = {};
    filling.dst = data;
    filling.elementSize = 4;
    filling.width = n;
    filling.height = 1;
    filling.value = 40;
    CHECK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &filling));
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    bool right = mode == cudaStreamCaptureModeGlobal;
    CHECK(cudaStreamBeginCaptureToGraph(stream, graph, &clear, nullptr, 1, cudaStreamCaptureModeRelaxed));
    cudaStreamCaptureStatus capturing;
    CHECK(cudaStreamIsCapturing(stream, &capturing));
    right = right && capturing == cudaStreamCaptureStatusActive;
    add<<<1, n, 0, stream>>>(data, 1);
    // A node of one's own in between.
    void *arguments[] = {&data, &two};
    cudaKernelNodeParams kernel = {};
    kernel.func = (void *)add;
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(n);
    kernel.kernelParams = arguments;
    const cudaGraphNode_t *last;
    size_t count;
#if CUDART_VERSION >= 13000
    CHECK(cudaStreamGetCaptureInfo(stream, &capturing, nullptr, nullptr, &last, nullptr, &count));
#else
    CHECK(cudaStreamGetCaptureInfo(stream, &capturing, nullptr, nullptr, &last, &count));
#endif
    right = right && count == 1;
    CHECK(cudaGraphAddKernelNode(&extra, graph, last, count, &kernel));
    CHECK(cudaStreamUpdateCaptureDependencies(stream, &extra, NO_DATA 1, cudaStreamSetCaptureDependencies));
    add<<<1, n, 0, stream>>>(data, 4);
    CHECK(cudaStreamEndCapture(stream, &same));
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    size_t nodes, edges;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, NO_DATA &edges));
    right = right && same == graph && nodes == 4 && edges == 3;
    cudaGraphExec_t executable = made(graph);
    run(executable);
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    right = right && all(host, 47);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    return right;
}

int main() {
    CHECK(cudaStreamCreate(&stream));
    int *data, *other;
    CHECK(cudaMalloc(&data, n * sizeof(int)));
    CHECK(cudaMalloc(&other, n * sizeof(int)));
    bool each[] = {copies(data, other), work(data), parts(data), kept(), captured(data)}, right = true;
    for (bool one : each) {
        std::printf("%d", one);
        right = right && one;
    }
    std::printf("\n");
    return verdict(right);
}
