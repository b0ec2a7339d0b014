// The accesses stand in functions that are called, not inlined, two levels deep.
// Racy: the ring has one slot too few, so two threads of the block share one.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#ifdef RACY
#define SLOTS (blockDim.x - 1)
#else
#define SLOTS blockDim.x
#endif

__device__ __noinline__ void store(int *slot, int value) {
    *slot = value;  //~ race A A
}

__device__ __noinline__ int put(int *ring, int i) {
    store(ring + blockIdx.x * blockDim.x + i % SLOTS, 10 * i);
    return 1;
}

__global__ void fill(int *ring, int *count) {
    int stored = put(ring, threadIdx.x);
    atomicAdd(count, stored);
}

int main() {
    const int blocks = 5, threads = 96, n = blocks * threads;
    int ring[n], count, *device_ring, *device_count;
    CHECK(cudaMalloc(&device_ring, sizeof ring));
    CHECK(cudaMalloc(&device_count, sizeof count));
    CHECK(cudaMemset(device_ring, 0, sizeof ring));
    CHECK(cudaMemset(device_count, 0, sizeof count));
    fill<<<blocks, threads>>>(device_ring, device_count);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(ring, device_ring, sizeof ring, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&count, device_count, sizeof count, cudaMemcpyDeviceToHost));
    bool right = count == n;
    for (int i = 0; i < n; i++) right = right && ring[i] == 10 * (i % threads);
    return verdict(right);
}
