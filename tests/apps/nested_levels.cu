// Three levels of kernels, and the host behind them: the last level's work is over when the first grid is.
// Racy: the first grid touches, after its launch, what the third level writes.
//@[clean] expect: no-race
//@[racy] expect: race
//@ unseen-in-fast: order between kernels and the work that they launch not checked
//@ nvcc: -rdc=true
//@ says: 4/4 kernels instrumented
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
#include "app.h"

__global__ void lower(int *data, int base) {
    data[base + threadIdx.x] = base + threadIdx.x;  //~ race A
}

__global__ void middle(int *data, int base) {
    int part = base + 32 * threadIdx.x;
    lower<<<1, 32>>>(data, part);
}

__global__ void upper(int *data, int n) {
    // Before its own launch, and so before all that follows from that.
    data[64 * threadIdx.x] = -1;
    middle<<<1, 2>>>(data, 64 * threadIdx.x);
#ifdef RACY
    if (threadIdx.x == 0) data[0] = -2;  //~ race A
#endif
}

__global__ void check(const int *data, int *wrong) {
    if (data[threadIdx.x] != threadIdx.x) atomicAdd(wrong, 1);
}

int main() {
    int *data, *wrong, host = 1;
    CHECK(cudaMalloc(&data, 256 * sizeof(int)));
    CHECK(cudaMalloc(&wrong, sizeof(int)));
    CHECK(cudaMemset(wrong, 0, sizeof(int)));
    cudaStream_t stream, other;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    upper<<<1, 4, 0, stream>>>(data, 256);
    CHECK(cudaGetLastError());
    check<<<1, 256, 0, stream>>>(data, wrong);
    CHECK(cudaGetLastError());
    cudaEvent_t done;
    CHECK(cudaEventCreate(&done));
    CHECK(cudaEventRecord(done, stream));
    CHECK(cudaStreamWaitEvent(other, done, 0));
    check<<<1, 256, 0, other>>>(data, wrong);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&host, wrong, sizeof host, cudaMemcpyDeviceToHost));
    return verdict(host == 0);
}
