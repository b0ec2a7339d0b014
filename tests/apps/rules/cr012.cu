// A block writes under a lock what another one reads without it. Other schedules show that this is a race.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] exit: 0
//@[racy] options: --explore 0
//@[racy] says: warning[CR012]
#include "../app.h"

// The example:
__device__ int lock;

__device__ void enter() {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    __threadfence();
}

__device__ void leave() {
    __threadfence();
    atomicExch(&lock, 0);
}

__global__ void both(int *data, int *entered) {
#ifdef RACY
    if (blockIdx.x == 0) *data += 42;
    enter();
    entered[blockIdx.x] += 1;
    if (blockIdx.x == 1) *data += 1;
    leave();
#else
    enter();
    entered[blockIdx.x] += 1;
    if (blockIdx.x == 0) *data += 42;
    if (blockIdx.x == 1) *data += 1;
    leave();
#endif
}

int main() {
    int found, *memory, *entered;
    CHECK(cudaMalloc(&memory, sizeof found));
    CHECK(cudaMemset(memory, 0, sizeof found));
    CHECK(cudaMalloc(&entered, 8));
    CHECK(cudaMemset(entered, 0, 8));
    both<<<2, 1>>>(memory, entered);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&found, memory, sizeof found, cudaMemcpyDeviceToHost));
    return verdict(found == 43);
}
