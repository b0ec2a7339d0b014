// Memory of pools and of graphs is allocated and freed in the order of a stream, and used in another one: behind the
// allocation, and before the memory is freed and handed out again. Launches of one executable graph in two streams wait
// for each other without being told.
// Racy: nothing orders the uses with the allocation or with the free.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] says: help: let the host wait for stream #2 before it frees the memory (`cudaStreamSynchronize`)
//@[racy] says: use after free between streams
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
//@ nvcc: -cudart shared -arch=sm_90 -lcuda
#include "app.h"

#include <cuda.h>

const int n = 64;

__global__ void used_before_free(int *data) {
    data[threadIdx.x] = 1;  //~ race-with-call A
}

__global__ void used_before_driver_free(int *data) {
    data[threadIdx.x] = 7;  //~ race-with-call B
}

__global__ void used_behind_allocation(int *data) {
    data[threadIdx.x] = 3;  //~ race-with-call C
}

__global__ void used_before_free_by_host(int *data) {
    data[threadIdx.x] = 4;  //~ race-with-call D
}

__global__ void used_in_graph(const int *data, int *out) {
    out[threadIdx.x] = data[threadIdx.x];  //~ race-with-call E
}

__global__ void used_behind_free_in_graph(const int *data, int *out) {
    out[threadIdx.x] += data[threadIdx.x];  //~ race-with-call F
}

__global__ void fill(int *data, int value) { data[threadIdx.x] = value; }

int main() {
    const size_t bytes = n * sizeof(int);
    cudaStream_t one, two;
    cudaEvent_t event;
    int *data, *again, *out;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&event));
    CHECK(cudaMalloc(&out, bytes));
    auto order = [&](cudaStream_t before, cudaStream_t after) {
        CHECK(cudaEventRecord(event, before));
        CHECK(cudaStreamWaitEvent(after, event, 0));
    };

    CHECK(cudaMallocAsync(&data, bytes, one));
    order(one, two);
    used_before_free<<<1, n, 0, two>>>(data);
#ifndef RACY
    order(two, one);
#endif
    CHECK(cudaFreeAsync(data, one));
    CHECK(cudaMallocAsync(&again, bytes, one));
    fill<<<1, n, 0, one>>>(again, 2);
    CHECK(cudaFreeAsync(again, one));
    CHECK(cudaDeviceSynchronize());

    CUdeviceptr memory;
    if (cuMemAllocAsync(&memory, bytes, one) != CUDA_SUCCESS) return 2;
    order(one, two);
    used_before_driver_free<<<1, n, 0, two>>>((int *)memory);
#ifndef RACY
    order(two, one);
#endif
    if (cuMemFreeAsync(memory, one) != CUDA_SUCCESS) return 2;
    CHECK(cudaDeviceSynchronize());

    CHECK(cudaMallocAsync(&data, bytes, one));
#ifndef RACY
    order(one, two);
#endif
    used_behind_allocation<<<1, n, 0, two>>>(data);
    CHECK(cudaDeviceSynchronize());
    used_before_free_by_host<<<1, n, 0, two>>>(data);
#ifndef RACY
    CHECK(cudaStreamSynchronize(two));
#endif
    CHECK(cudaFree(data));

    // Launches a graph twice that allocates memory, fills it, and goes on in two branches.
    auto launch_graph = [&](int value, cudaStream_t again, auto branches) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
        CHECK(cudaMallocAsync(&data, bytes, one));
        fill<<<1, n, 0, one>>>(data, value);
        order(one, two);
        branches();
        CHECK(cudaStreamEndCapture(one, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        CHECK(cudaGraphLaunch(exec, one));
        CHECK(cudaGraphLaunch(exec, again));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaGraphExecDestroy(exec));
        CHECK(cudaGraphDestroy(graph));
    };
    launch_graph(5, two, [&] {
        used_in_graph<<<1, n, 0, two>>>(data, out);
#ifndef RACY
        order(two, one);
#endif
        CHECK(cudaFreeAsync(data, one));
#ifdef RACY
        order(two, one);
#endif
    });
    // Racy: the branch that frees comes first.
    launch_graph(6, one, [&] {
#ifdef RACY
        CHECK(cudaFreeAsync(data, one));
#endif
        used_behind_free_in_graph<<<1, n, 0, two>>>(data, out);
        order(two, one);
#ifndef RACY
        CHECK(cudaFreeAsync(data, one));
#endif
    });
    int host[n];
    bool right = true;
    CHECK(cudaMemcpy(host, out, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right &= host[i] == 17;
    return verdict(right);
}
