// Half of a block passes by a barrier.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR007]
#include "../app.h"

// The example:
__global__ void halves(int *data) {
    __shared__ int tile[64];
    tile[threadIdx.x] = data[threadIdx.x];
#ifdef RACY
    if (threadIdx.x < 32) __syncthreads();
    data[threadIdx.x] = 2 * tile[threadIdx.x];
#else
    __syncthreads();
    data[threadIdx.x] = 2 * tile[threadIdx.x];
#endif
}

int main() {
    int data[64], *memory;
    for (int i = 0; i < 64; i++) data[i] = i * i;
    CHECK(cudaMalloc(&memory, sizeof data));
    CHECK(cudaMemcpy(memory, data, sizeof data, cudaMemcpyHostToDevice));
    halves<<<1, 64>>>(memory);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(data, memory, sizeof data, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 64; i++) right &= data[i] == 2 * i * i;
    return verdict(right);
}
