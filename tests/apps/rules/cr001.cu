// Lanes of a warp exchange values through shared memory.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR001]
#include "../app.h"

// The example:
__global__ void reverse(int *data) {
    __shared__ int tile[32];
    tile[threadIdx.x] = data[threadIdx.x];
#ifndef RACY
    __syncwarp();
#endif
    data[threadIdx.x] = tile[31 - threadIdx.x];
}

int main() {
    int data[32], *memory;
    for (int i = 0; i < 32; i++) data[i] = i * i;
    CHECK(cudaMalloc(&memory, sizeof data));
    CHECK(cudaMemcpy(memory, data, sizeof data, cudaMemcpyHostToDevice));
    reverse<<<1, 32>>>(memory);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(data, memory, sizeof data, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 32; i++) right &= data[i] == (31 - i) * (31 - i);
    return verdict(right);
}
