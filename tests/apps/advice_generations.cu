// Barriers of the grid written by hand: thread 0 of each block counts, and the last one sets the next generation, for which
// the others wait. Racy: each lacks one thing, a fence before the count or `__syncthreads()` behind the wait. What the report
// advises, the clean variant does, as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: release after the first access: put `__threadfence()` before the write of the flag at advice_generations.cu:27 (in `arrived`), or
//@[racy] says: help: put `__syncthreads()` between the read of the flag at advice_generations.cu:32 (in `generation`) and the first access: the flag orders
//@[racy] says: SUMMARY: cudarun-check: 3 races (3 errors)
#include "app.h"

#ifdef RACY
#define ADVISED(text)
#else
#define ADVISED(text) text
#endif

const int kBlocks = 4, kThreads = 64, kCount = kBlocks * kThreads, kRounds = 3;

__device__ unsigned arrived;
__device__ volatile unsigned generation;

// Thread 0 of each block.
__device__ __forceinline__ void count_and_wait()
{
    unsigned mine = generation;
    if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
        atomicExch(&arrived, 0);
        __threadfence();
        generation = mine + 1;
    } else {
        while (generation == mine) {}
    }
    __threadfence();
}

__device__ __forceinline__ void no_release_inlined()
{
    __syncthreads();
    if (threadIdx.x == 0) {
        ADVISED(__threadfence();)
        count_and_wait();
    }
    __syncthreads();
}

// Called, and so in another function than the accesses.
__device__ __noinline__ void no_release()
{
    no_release_inlined();
}

// Only thread 0 waits for the other blocks.
__device__ __noinline__ void no_barrier()
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        count_and_wait();
    }
    ADVISED(__syncthreads();)
}

__global__ void called(int *here, int *there)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, other = kCount - 1 - i;
    for (int round = 0; round < kRounds; round++) {
        there[i] = here[other] + 1;
        no_release();
        here[i] = there[other];
        no_release();
    }
}

__global__ void inlined(int *here, int *there)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, other = kCount - 1 - i;
    for (int round = 0; round < kRounds; round++) {
        there[i] = here[other] + 1;
        no_release_inlined();
        here[i] = there[other];
        no_release_inlined();
    }
}

__global__ void one_waits(int *here, int *there)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, other = kCount - 1 - i;
    for (int round = 0; round < kRounds; round++) {
        there[i] = here[other] + 1;
        no_barrier();
        here[i] = there[other];
        no_barrier();
    }
}

int main()
{
    bool right = true;
    for (auto kernel : {called, inlined, one_waits}) {
        int *here, *there;
        CHECK(cudaMallocManaged(&here, kCount * sizeof *here));
        CHECK(cudaMallocManaged(&there, kCount * sizeof *there));
        for (int i = 0; i < kCount; i++) here[i] = 5 * i;
        void *arguments[] = {&here, &there};
        CHECK(cudaLaunchCooperativeKernel((void *)kernel, dim3(kBlocks), dim3(kThreads), arguments, 0, 0));
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < kCount; i++) right = right && here[i] == 5 * i + kRounds;
    }
    return verdict(right);
}
