// Each part of the work has a stream of its own, which is made just before it is needed: the kernel that fills the data
// runs before there is another stream. The second stream waits for an event of the first. Racy: it does not.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include "app.h"

__global__ void fill(int *data, int first) {
    data[blockIdx.x * blockDim.x + threadIdx.x] = first;  //~ race A
}

__global__ void add(int *data, int more) {
    data[blockIdx.x * blockDim.x + threadIdx.x] += more;  //~ race A
}

static const int blocks = 8, threads = 128, n = blocks * threads;

int main() {
    int *data;
    cudaStream_t streams[2];
    cudaEvent_t filled;
    CHECK(cudaMalloc(&data, n * sizeof *data));
    CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));

    CHECK(cudaStreamCreate(&streams[0]));
    fill<<<blocks, threads, 0, streams[0]>>>(data, 3);
    CHECK(cudaEventRecord(filled, streams[0]));

    CHECK(cudaStreamCreate(&streams[1]));
#ifndef RACY
    CHECK(cudaStreamWaitEvent(streams[1], filled, 0));
#endif
    add<<<blocks, threads, 0, streams[1]>>>(data, 4);
    CHECK(cudaDeviceSynchronize());

    static int host[n];
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int value : host) right &= value == 7;
    return verdict(right);
}
