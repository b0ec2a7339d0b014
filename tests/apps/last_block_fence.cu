// The last block to count itself adds up what all blocks have written.
// Racy: the last block does not fence behind its count, so it may have come to its fence before others had written.
// It is seen only where the last block reaches its fence early, which the first schedule does not show.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR003]: inter-block race on global memory: a write and a read of the same address are not ordered
//@[racy] says: when it ran again under another schedule (--seed
//@[racy] says: help: put `__threadfence()` after the atomic at last_block_fence.cu:19: an atomic alone does not hand over what was written before it
//@[racy] not-as-on-gpu: it runs under one schedule, where the last block comes to its fence last
#include "app.h"

const int threads = 32, blocks = 8;

__global__ void sum_up(int *count, int *parts, int *sum) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = blockIdx.x + 1;
        __threadfence();
        last = atomicAdd(count, 1) == blocks - 1;
#ifndef RACY
        __threadfence();
#endif
    }
    __syncthreads();
    if (last && threadIdx.x < blocks) atomicAdd(sum, parts[threadIdx.x]);
}

int main() {
    int *memory, result;
    CHECK(cudaMalloc(&memory, (2 + blocks) * sizeof(int)));
    CHECK(cudaMemset(memory, 0, (2 + blocks) * sizeof(int)));
    sum_up<<<blocks, threads>>>(memory, memory + 2, memory + 1);
    CHECK(cudaMemcpy(&result, memory + 1, sizeof result, cudaMemcpyDeviceToHost));
    return verdict(result == blocks * (blocks + 1) / 2);
}
