// A block clears its counters and counts into them with atomics. The barrier between the two phases is what
// is missing: a clearing store that is atomic too is no race and gives a wrong result, so it is not advised.
//
//@ expect(clean): no-race
//@ expect(racy): race
//@ says(racy): help: warps of a block are ordered by barriers only; put `__syncthreads()` after the write at
//@ says(racy): advice_phase_barrier.cu:15
#include "app.h"

const int kValues = 1 << 12, kBins = 256, kBlocks = 4;

__global__ void count(const unsigned char *values, unsigned *bins)
{
    __shared__ unsigned local[kBins];
    local[threadIdx.x] = 0;  //~ race A
#ifndef RACY
    __syncthreads();
#endif
    for (int i = blockIdx.x * kBins + threadIdx.x; i < kValues; i += gridDim.x * kBins)
        atomicAdd(&local[values[i]], 1u);  //~ race A
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

int main()
{
    static unsigned char data[kValues];
    static unsigned expected[kBins], found[kBins];
    for (int i = 0; i < kValues; i++) expected[data[i] = (i * 2654435761u) >> 24]++;
    unsigned char *values;
    unsigned *bins;
    CHECK(cudaMalloc(&values, sizeof data));
    CHECK(cudaMalloc(&bins, sizeof found));
    CHECK(cudaMemcpy(values, data, sizeof data, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(bins, 0, sizeof found));
    count<<<kBlocks, kBins>>>(values, bins);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, bins, sizeof found, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kBins; i++) right &= found[i] == expected[i];
    return verdict(right);
}
