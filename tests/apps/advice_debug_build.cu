// Updates in a program compiled for a debugger: nvcc computes each address twice, once for the load and once for the store.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@ nvcc: -G
//@[racy] says: help: make the update at advice_debug_build.cu:25 one atomic operation: `atomicAdd(&bins[bin].count, 1)`
//@[racy] says: help: make the update at advice_debug_build.cu:36 one atomic operation: `atomicMax(&bins[bin].largest, value)`
#include "app.h"

const int kThreads = 64, kBlocks = 4, kCount = kThreads * kBlocks, kBins = 8;

struct Bin {
    int count;
    int largest;
};

__global__ void count(const int *in, Bin *bins)
{
    int value = in[blockIdx.x * kThreads + threadIdx.x];
    int bin = value % kBins;
#ifndef RACY
    atomicAdd(&bins[bin].count, 1);
#else
    // As a statement with two expressions.
    bins[bin].count = bins[bin].count + 1;
#endif
}

__global__ void largest(const int *in, Bin *bins)
{
    int value = in[blockIdx.x * kThreads + threadIdx.x];
    int bin = value % kBins;
#ifndef RACY
    atomicMax(&bins[bin].largest, value);
#else
    if (value > bins[bin].largest) bins[bin].largest = value;
#endif
}

int main()
{
    int data[kCount];
    Bin right[kBins] = {}, bins[kBins];
    Random random{11};
    for (int &value : data) {
        value = random(10000);
        Bin &bin = right[value % kBins];
        bin.count++;
        if (value > bin.largest) bin.largest = value;
    }
    int *in;
    Bin *out;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof bins));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(out, 0, sizeof bins));
    count<<<kBlocks, kThreads>>>(in, out);
    CHECK(cudaGetLastError());
    largest<<<kBlocks, kThreads>>>(in, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(bins, out, sizeof bins, cudaMemcpyDeviceToHost));
    bool same = true;
    for (int i = 0; i < kBins; i++) same &= bins[i].count == right[i].count && bins[i].largest == right[i].largest;
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return verdict(same);
}
