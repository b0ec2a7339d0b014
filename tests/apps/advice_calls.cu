// A function exchanges values of the threads of a block in shared memory. A kernel calls it twice, and the second call
// writes what the first one may still read. The clean variant applies the advice.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: put `__syncthreads()` at the end of `exchange(int*, int)`, or between its calls: the two accesses are made in two calls
#include "app.h"

const int kThreads = 64;

__device__ __noinline__ int exchange(int *values, int mine)
{
    values[threadIdx.x] = mine;
    __syncthreads();
    int other = values[kThreads - 1 - threadIdx.x];
#ifndef RACY
    __syncthreads();
#endif
    return other;
}

__global__ void twice(int *out)
{
    __shared__ int values[kThreads];
    int other = exchange(values, threadIdx.x);
    out[threadIdx.x] = exchange(values, 2 * other);
}

int main()
{
    int *out, host[kThreads];
    CHECK(cudaMalloc(&out, sizeof host));
    twice<<<1, kThreads>>>(out);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kThreads; i++) right &= host[i] == 2 * i;
    return verdict(right);
}
