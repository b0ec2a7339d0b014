// Partial sums of a block in a loop whose iterations need a barrier between them. The advice names the
// barrier and puts it behind the branch that only some threads take; as this program's clean variant has it.
//
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: help: put `__syncthreads()` after the end of the branch at advice_loop_barrier.cu:18
#include "app.h"

const int kBlocks = 4, kThreads = 128;

__global__ void sums(const int *in, int *out)
{
    __shared__ int s[kThreads];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * kThreads + t];
    __syncthreads();
    for (int d = kThreads / 2; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];  //~ race A A
#ifndef RACY
        __syncthreads();
#endif
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

int main()
{
    static int data[kBlocks * kThreads];
    int expected[kBlocks] = {}, sum[kBlocks];
    for (int i = 0; i < kBlocks * kThreads; i++) expected[i / kThreads] += data[i] = i % 97;
    int *in, *out;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof sum));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    sums<<<kBlocks, kThreads>>>(in, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(sum, out, sizeof sum, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kBlocks; i++) right &= sum[i] == expected[i];
    return verdict(right);
}
