// All threads of a block write their own value to one element. No barrier orders threads that execute the same
// write: the advice is to let one thread write.
//
//@ expect(clean): no-race
//@ expect(racy): race
//@ says(racy): let one thread write the element
#include "app.h"

const int kBlocks = 4, kThreads = 64;

__global__ void last(const int *in, int *out)
{
    __shared__ int chosen;
    int value = in[blockIdx.x * kThreads + threadIdx.x];
#ifndef RACY
    if (threadIdx.x == kThreads - 1)
#endif
        chosen = value;  //~ race A A
    __syncthreads();
    out[blockIdx.x * kThreads + threadIdx.x] = chosen;
}

int main()
{
    static int data[kBlocks * kThreads], found[kBlocks * kThreads];
    for (int i = 0; i < kBlocks * kThreads; i++) data[i] = 3 * i;
    int *in, *out;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    last<<<kBlocks, kThreads>>>(in, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kBlocks * kThreads; i++)
        right &= found[i] == data[i / kThreads * kThreads + kThreads - 1];
    return verdict(right);
}
