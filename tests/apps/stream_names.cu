// Two streams that NVTX has given names use one buffer.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: stream #1 "compute"
//@[racy] says: let stream #2 "übertragen" wait for it
#include "app.h"

#include <nvtx3/nvToolsExtCudaRt.h>

__global__ void add(int *data) { data[threadIdx.x] += 1; }

int main() {
    int data[64], *memory;
    cudaStream_t one, other;
    CHECK(cudaStreamCreate(&one));
    CHECK(cudaStreamCreate(&other));
    nvtxNameCudaStreamA(one, "compute");
    nvtxNameCudaStreamW(other, L"übertragen");
    CHECK(cudaMalloc(&memory, sizeof data));
    CHECK(cudaMemset(memory, 0, sizeof data));
    CHECK(cudaDeviceSynchronize());
    add<<<1, 64, 0, one>>>(memory);
#ifndef RACY
    CHECK(cudaStreamSynchronize(one));
#endif
    add<<<1, 64, 0, other>>>(memory);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(data, memory, sizeof data, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int value : data) right &= value == 2;
    return verdict(right);
}
