// Warps of a block exchange values through shared memory.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR002]
#include "../app.h"

// The example:
__global__ void reverse(int *data) {
    __shared__ int tile[64];
    tile[threadIdx.x] = data[threadIdx.x];
#ifndef RACY
    __syncthreads();
#endif
    data[threadIdx.x] = tile[63 - threadIdx.x];
}

int main() {
    int data[64], *memory;
    for (int i = 0; i < 64; i++) data[i] = i * i;
    CHECK(cudaMalloc(&memory, sizeof data));
    CHECK(cudaMemcpy(memory, data, sizeof data, cudaMemcpyHostToDevice));
    reverse<<<1, 64>>>(memory);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(data, memory, sizeof data, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 64; i++) right &= data[i] == (63 - i) * (63 - i);
    return verdict(right);
}
