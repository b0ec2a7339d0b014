// All lanes of several warps increment one counter under one lock.
// Racy: the lock lacks its fences, so taking it orders nothing.
// The clean variant orders by the lock, which the device alone cannot decide.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#ifdef RACY
#define FENCE()
#else
#define FENCE() __threadfence()
#endif

__global__ void increment(int *lock, int *counter) {
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            FENCE();
            int old = *counter;  //~ race A
            *counter = old + 1;  //~ race A, may B B
            FENCE();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

int main() {
    const int blocks = 4, threads = 64;
    int *lock, *counter, count;
    CHECK(cudaMalloc(&lock, sizeof *lock));
    CHECK(cudaMalloc(&counter, sizeof *counter));
    CHECK(cudaMemset(lock, 0, sizeof *lock));
    CHECK(cudaMemset(counter, 0, sizeof *counter));
    increment<<<blocks, threads>>>(lock, counter);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&count, counter, sizeof count, cudaMemcpyDeviceToHost));
    return verdict(count == blocks * threads);
}
