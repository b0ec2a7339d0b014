// A thread reads what it copies asynchronously, and has not waited.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR010]
#include "../app.h"
#include <cuda_pipeline.h>

// The example:
__global__ void twice(int *data) {
    __shared__ int tile[32];
    __pipeline_memcpy_async(&tile[threadIdx.x], &data[threadIdx.x], sizeof(int));
    __pipeline_commit();
#ifndef RACY
    __pipeline_wait_prior(0);
#endif
    data[32 + threadIdx.x] = 2 * tile[threadIdx.x];
}

int main() {
    int data[64], *memory;
    for (int i = 0; i < 64; i++) data[i] = i;
    CHECK(cudaMalloc(&memory, sizeof data));
    CHECK(cudaMemcpy(memory, data, sizeof data, cudaMemcpyHostToDevice));
    twice<<<1, 32>>>(memory);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(data, memory, sizeof data, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 64; i++) right &= data[i] == (i < 32 ? i : 2 * (i - 32));
    return verdict(right);
}
