// The first warp sets up what the block needs, and waits at a barrier that the other warps pass by.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: let every thread of the block reach `__syncthreads()`: move it out of the condition, or out of a loop that threads leave at different times
#include "app.h"

const int kThreads = 128;

__global__ void scale(const int *in, int *out)
{
    __shared__ int factors[32];
    int t = threadIdx.x;
    if (t < 32) {
        factors[t] = in[t] + 1;
#ifdef RACY
        __syncthreads();
#endif
    }
#ifndef RACY
    __syncthreads();
#endif
    out[t] = in[t] * factors[t % 32];
}

int main()
{
    int data[kThreads], found[kThreads];
    for (int i = 0; i < kThreads; i++) data[i] = 3 * i;
    int *in, *out;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    scale<<<1, kThreads>>>(in, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kThreads; i++) right &= found[i] == data[i] * (data[i % 32] + 1);
    return verdict(right);
}
