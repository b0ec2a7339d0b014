// Volatile data that some threads access under no lock, or under another one. What the report advises, the clean variant does,
// as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] exit: 0
//@[racy] says: help: hold the same lock around both accesses
//@[racy] says: help: hold the lock taken at advice_volatile_lock.cu:17 around the write at advice_volatile_lock.cu:49 too
//@[racy] says: help: hold the lock taken at advice_volatile_lock.cu:17 around the read at advice_volatile_lock.cu:49 too; if an old value does no harm there, make both accesses atomic instead (`cuda::atomic_ref` of device scope)
//@[racy] says: SUMMARY: cudarun-check: 3 races (0 errors, 3 warnings)
#include "app.h"

__device__ int locks[2];

__device__ void take(int *lock)
{
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
}

__device__ void give_back(int *lock)
{
    __threadfence();
    atomicExch(lock, 0);
}

// Every second block takes another lock.
__global__ void two_locks(volatile int *sum)
{
    if (threadIdx.x != 0) return;
#ifdef RACY
    int *lock = &locks[blockIdx.x % 2];
#else
    int *lock = &locks[0];
#endif
    take(lock);
    *sum = *sum + 2;
    give_back(lock);
}

// The first block takes no lock.
__global__ void no_lock(volatile int *sum)
{
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
#ifndef RACY
        take(&locks[0]);
#endif
        *sum = *sum + 2;
#ifndef RACY
        give_back(&locks[0]);
#endif
    } else {
        take(&locks[0]);
        *sum = *sum + 2;
        give_back(&locks[0]);
    }
}

int main()
{
    const int blocks = 4;
    bool right = true;
    for (auto kernel : {two_locks, no_lock}) {
        int *sum;
        CHECK(cudaMallocManaged(&sum, sizeof *sum));
        *sum = 1;
        kernel<<<blocks, 32>>>(sum);
        CHECK(cudaDeviceSynchronize());
        right = right && *sum == 1 + 2 * blocks;
    }
    return verdict(right);
}
