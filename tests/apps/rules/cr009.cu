// A kernel reads through the read-only path what it has written.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR009]
#include "../app.h"

// The example:
__global__ void reverse(int *data) {
    data[threadIdx.x] += 1;
    __syncthreads();
#ifdef RACY
    int other = __ldg(&data[63 - threadIdx.x]);
#else
    int other = data[63 - threadIdx.x];
#endif
    data[64 + threadIdx.x] = other;
}

int main() {
    int data[128] = {}, *memory;
    CHECK(cudaMalloc(&memory, sizeof data));
    CHECK(cudaMemset(memory, 0, sizeof data));
    reverse<<<1, 64>>>(memory);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(data, memory, sizeof data, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int value : data) right &= value == 1;
    return verdict(right);
}
