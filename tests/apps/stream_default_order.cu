// Two threads of the host fill a buffer's halves in the default stream, which is each thread's own when a program is
// compiled so. A stream of the program's sums up both, and waits for an event of each.
// Racy: it does not wait, as if the default stream still went with all blocking ones.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
//@ nvcc: -cudart shared -arch=sm_90 --default-stream per-thread
#include "app.h"

#include <thread>

__global__ void fill(int *data, int n, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = first + i;  //~ race A
}

__global__ void sum(const int *data, int n, unsigned long long *total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, (unsigned long long)data[i]);  //~ race A, race B
}

__global__ void twice(int *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = 2 * data[i];  //~ race B
}

static const int n = 2048, blocks = n / 128;

static void work(int *data, int first, cudaEvent_t filled) {
    CHECK(cudaSetDevice(0));
    fill<<<blocks, 128>>>(data, n, first);
    twice<<<blocks, 128>>>(data, n);
    CHECK(cudaEventRecord(filled));
}

int main() {
    int *data;
    unsigned long long *total, host = 0;
    cudaStream_t stream;
    cudaEvent_t filled[2];
    CHECK(cudaMalloc(&data, 2 * n * sizeof *data));
    CHECK(cudaMalloc(&total, sizeof *total));
    CHECK(cudaMemset(total, 0, sizeof *total));
    CHECK(cudaStreamSynchronize(0));
    CHECK(cudaStreamCreate(&stream));
    for (cudaEvent_t &event : filled) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));

    // One after the other, so that the results are always the same: no order for the device.
    for (int half = 0; half < 2; half++) {
        std::thread thread(work, data + half * n, half * n, filled[half]);
        thread.join();
    }
#ifndef RACY
    for (cudaEvent_t event : filled) CHECK(cudaStreamWaitEvent(stream, event, 0));
#endif
    sum<<<2 * blocks, 128, 0, stream>>>(data, 2 * n, total);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&host, total, sizeof host, cudaMemcpyDeviceToHost));
    unsigned long long right = 2ull * (2 * n) * (2 * n - 1) / 2;
    return verdict(host == right);
}
