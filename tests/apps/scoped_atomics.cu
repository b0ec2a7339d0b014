// Blocks count into one array.
// Racy: with atomics that only hold within a block.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: scoped_atomics.cu:15:
#include "app.h"

#ifdef RACY
#define ADD atomicAdd_block
#else
#define ADD atomicAdd
#endif

__global__ void count(int *shared_by_all, int *own) {
    ADD(&shared_by_all[threadIdx.x % 8], 1);  //~ race A A
    atomicAdd_block(&own[blockIdx.x], 1);
}

int main() {
    const int blocks = 6, threads = 64;
    int shared_by_all[8], own[blocks], *device_shared, *device_own;
    CHECK(cudaMalloc(&device_shared, sizeof shared_by_all));
    CHECK(cudaMalloc(&device_own, sizeof own));
    CHECK(cudaMemset(device_shared, 0, sizeof shared_by_all));
    CHECK(cudaMemset(device_own, 0, sizeof own));
    count<<<blocks, threads>>>(device_shared, device_own);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(shared_by_all, device_shared, sizeof shared_by_all, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(own, device_own, sizeof own, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 8; i++) right = right && shared_by_all[i] == blocks * threads / 8;
    for (int i = 0; i < blocks; i++) right = right && own[i] == threads;
    return verdict(right);
}
