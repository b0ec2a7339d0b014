// Blocks read what their neighbours have written. Nothing orders blocks within a launch: the advice is to
// split the kernel into two launches between the two accesses.
//
//@ expect(clean): no-race
//@ expect(racy): race
//@ says(racy): split the kernel into two launches between the two accesses
#include "app.h"

const int kBlocks = 4, kThreads = 64, kCount = kBlocks * kThreads;

#ifdef RACY
__global__ void both(int *data, int *out)
{
    int i = blockIdx.x * kThreads + threadIdx.x;
    data[i] = i * i;                //~ race A
    out[i] = data[kCount - 1 - i];  //~ race A
}
#else
__global__ void square(int *data)
{
    int i = blockIdx.x * kThreads + threadIdx.x;
    data[i] = i * i;
}

__global__ void reverse(const int *data, int *out)
{
    int i = blockIdx.x * kThreads + threadIdx.x;
    out[i] = data[kCount - 1 - i];
}
#endif

int main()
{
    int found[kCount];
    int *data, *out;
    CHECK(cudaMalloc(&data, sizeof found));
    CHECK(cudaMalloc(&out, sizeof found));
#ifdef RACY
    both<<<kBlocks, kThreads>>>(data, out);
#else
    square<<<kBlocks, kThreads>>>(data);
    reverse<<<kBlocks, kThreads>>>(data, out);
#endif
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kCount; i++) right &= found[i] == (kCount - 1 - i) * (kCount - 1 - i);
    return verdict(right);
}
