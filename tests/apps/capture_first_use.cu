// While a stream is being captured, another thread uses kernels of this program for the first time, which loads their module
// then; and the capture is the first to use another kernel.
// Racy: all blocks store to the same words, in the kernel that the other thread launches.
//@[clean] expect: no-race
//@[racy] expect: race
#include <thread>

#include "app.h"

__global__ void elsewhere(int *data) {
#ifdef RACY
    data[threadIdx.x] = blockIdx.x;  //~ race A A
#else
    data[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x;
#endif
}

__global__ void captured(int *data) { data[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x + 1; }

static cudaStream_t stream() {
    cudaStream_t made;
    CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
}

int main() {
    const int blocks = 2, threads = 64, n = blocks * threads;
    int *data, host[2 * n];
    CHECK(cudaMalloc(&data, sizeof host));
    cudaStream_t one = stream(), other = stream();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    std::thread first([&] {
        elsewhere<<<blocks, threads, 0, other>>>(data);
        CHECK(cudaGetLastError());
    });
    first.join();
    captured<<<blocks, threads, 0, one>>>(data + n);
    CHECK(cudaStreamEndCapture(one, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaStreamSynchronize(other));
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right &= host[i] == i / threads && host[n + i] == i / threads + 1;
    return verdict(right);
}
