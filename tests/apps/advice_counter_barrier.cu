// Blocks that meet at a counter, in a barrier written by hand: thread 0 of each block counts and waits for the others.
// Racy: without fences. What the report advises, the clean variant does, as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR006]: inter-block race on global memory
//@[racy] says: help: release after the first access and acquire before the second: put `__threadfence()` before the write of the flag at advice_counter_barrier.cu:24 (in `arrived`), and after the read of the flag at advice_counter_barrier.cu:25 (in `arrived`)
//@[racy] says: SUMMARY: cudarun-check: 1 race (1 error)
#include "app.h"

#ifdef RACY
#define ADVISED(text)
#else
#define ADVISED(text) text
#endif

__device__ unsigned arrived;

__device__ void meet()
{
    __syncthreads();
    if (threadIdx.x == 0) {
        ADVISED(__threadfence();)
        atomicAdd(&arrived, 1);
        while (*(volatile unsigned *)&arrived < gridDim.x) {}
        ADVISED(__threadfence();)
    }
    __syncthreads();
}

__global__ void mirror(const int *in, int *between, int *out)
{
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    between[i] = 2 * in[i];
    meet();
    out[i] = between[n - 1 - i];
}

int main()
{
    const int blocks = 4, threads = 64, n = blocks * threads;
    int *in, *between, *out;
    CHECK(cudaMallocManaged(&in, n * sizeof *in));
    CHECK(cudaMallocManaged(&between, n * sizeof *between));
    CHECK(cudaMallocManaged(&out, n * sizeof *out));
    for (int i = 0; i < n; i++) in[i] = i;
    void *arguments[] = {&in, &between, &out};
    CHECK(cudaLaunchCooperativeKernel((void *)mirror, dim3(blocks), dim3(threads), arguments, 0, 0));
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int i = 0; i < n; i++) right = right && out[i] == 2 * (n - 1 - i);
    return verdict(right);
}
