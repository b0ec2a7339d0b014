// A pipeline over two streams: one kernel fills a buffer, another sums it up in the other stream, and an event
// orders them; so do the host, the default stream and a graph's edge.
// Racy: the sums are not ordered behind what fills the buffer, in none of these ways.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include "app.h"

__global__ void fill(int *data, int n, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = first + i;  //~ race A, race B
}

__global__ void sum(const int *data, int n, unsigned long long *total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, (unsigned long long)data[i]);  //~ race A
}

__global__ void scale(int *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = 2 * data[i];
}

__global__ void count(const int *data, int n, unsigned long long *total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && data[i] % 2 == 0) atomicAdd(total, 1ull);  //~ race B
}

int main() {
    const int n = 4096, blocks = n / 128;
    int *data;
    unsigned long long *totals, host[3] = {};
    cudaStream_t one, two;
    cudaEvent_t filled, summed;
    CHECK(cudaMalloc(&data, n * sizeof *data));
    CHECK(cudaMalloc(&totals, sizeof host));
    CHECK(cudaMemset(totals, 0, sizeof host));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&summed, cudaEventDisableTiming));

    // By events, there and back.
    fill<<<blocks, 128, 0, one>>>(data, n, 0);
    CHECK(cudaEventRecord(filled, one));
#ifndef RACY
    CHECK(cudaStreamWaitEvent(two, filled, 0));
#endif
    sum<<<blocks, 128, 0, two>>>(data, n, totals);
    CHECK(cudaEventRecord(summed, two));
    CHECK(cudaStreamWaitEvent(one, summed, 0));
    scale<<<blocks, 128, 0, one>>>(data, n);

    // By the host.
    CHECK(cudaStreamSynchronize(one));
    sum<<<blocks, 128, 0, two>>>(data, n, totals + 1);
    CHECK(cudaStreamSynchronize(two));

    // By a graph's edge.
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(summed, one));
    CHECK(cudaStreamWaitEvent(two, summed, 0));
    fill<<<blocks, 128, 0, one>>>(data, n, 1);
#ifndef RACY
    CHECK(cudaEventRecord(filled, one));
    CHECK(cudaStreamWaitEvent(two, filled, 0));
#endif
    count<<<blocks, 128, 0, two>>>(data, n, totals + 2);
    CHECK(cudaEventRecord(summed, two));
    CHECK(cudaStreamWaitEvent(one, summed, 0));
    CHECK(cudaStreamEndCapture(one, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, one));
    CHECK(cudaStreamSynchronize(one));

    CHECK(cudaMemcpy(host, totals, sizeof host, cudaMemcpyDeviceToHost));
    bool right = host[0] == n / 2ull * (n - 1) && host[1] == 2 * host[0] && host[2] == 3ull * (n / 2);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(one));
    CHECK(cudaStreamDestroy(two));
    CHECK(cudaEventDestroy(filled));
    CHECK(cudaEventDestroy(summed));
    CHECK(cudaFree(data));
    CHECK(cudaFree(totals));
    return verdict(right);
}
