// All blocks wait for what the last block writes. A block takes nearly all shared memory of a multiprocessor, so as many
// are resident as there are multiprocessors; with one more, the last one never starts.
//
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] exit: 66
//@[racy] says: help: launch no more blocks than are resident at once, or do not let blocks wait for later ones
//@[racy] not-as-on-gpu: a GPU that hangs is ended by --timeout
#include "app.h"

#include <vector>

const int kThreads = 32, kShared = 200 << 10;

__global__ void hand_back(volatile int *flag, int *data, int *out)
{
    extern __shared__ int own[];
    own[threadIdx.x] = blockIdx.x;
    if (blockIdx.x == gridDim.x - 1) {
        data[threadIdx.x] = 5 * threadIdx.x;
        __syncwarp();
        if (threadIdx.x == 0) {
            __threadfence();
            *flag = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            while (*flag == 0) {}
            __threadfence();
        }
        __syncwarp();
        out[blockIdx.x * kThreads + threadIdx.x] = data[threadIdx.x] + own[threadIdx.x];
    }
}

int main()
{
    int *flag, *data, *out;
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::vector<int> found((properties.multiProcessorCount - 1) * kThreads);
    CHECK(cudaFuncSetAttribute(hand_back, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
    CHECK(cudaMalloc(&flag, sizeof *flag));
    CHECK(cudaMalloc(&data, kThreads * sizeof *data));
    CHECK(cudaMalloc(&out, (found.size() + kThreads) * sizeof *out));
    CHECK(cudaMemset(flag, 0, sizeof *flag));
    int blocks = properties.multiProcessorCount;
#ifdef RACY
    blocks++;
#endif
    hand_back<<<blocks, kThreads, kShared>>>(flag, data, out);
    end_or_deadlock();
    CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof *out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < int(found.size()); i++) right &= found[i] == 5 * (i % kThreads) + i / kThreads;
    return verdict(right);
}
