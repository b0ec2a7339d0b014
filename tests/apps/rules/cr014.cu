// Two streams use one buffer.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR014]
#include "../app.h"

// The example:
__global__ void add(int *data) { data[threadIdx.x] += 1; }

void both(int *data, cudaStream_t one, cudaStream_t other) {
    add<<<1, 64, 0, one>>>(data);
#ifdef RACY
    add<<<1, 64, 0, other>>>(data);
#else
    add<<<1, 64, 0, one>>>(data);
#endif
}

int main() {
    int data[64], *memory;
    cudaStream_t one, other;
    CHECK(cudaStreamCreate(&one));
    CHECK(cudaStreamCreate(&other));
    CHECK(cudaMalloc(&memory, sizeof data));
    CHECK(cudaMemset(memory, 0, sizeof data));
    CHECK(cudaDeviceSynchronize());
    both(memory, one, other);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(data, memory, sizeof data, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int value : data) right &= value == 2;
    return verdict(right);
}
