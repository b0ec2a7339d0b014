// Threads of one block claim the nodes of a graph by a compare-and-swap. Before that they look whether somebody has already
// claimed the node, by a plain read, which races. Nothing has to order the two: the read may be early. The clean variant
// applies the advice.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: only one of the accesses is atomic: if the other may come before, between or after the updates, make it atomic too (`cuda::atomic_ref` of block scope); if it must come before or after all of them,
#include <cuda/atomic>

#include "app.h"

const int kNodes = 96, kSteps = 40;

__global__ void claim(int *owner, int *claimed)
{
    int node = threadIdx.x;
    for (int step = 0; step < kSteps; step++) {
        node = (node * 5 + 3) % kNodes;
#ifndef RACY
        if (cuda::atomic_ref<int, cuda::thread_scope_block>(owner[node]).load(cuda::memory_order_relaxed) != 0) continue;
#else
        if (owner[node] != 0) continue;
#endif
        if (atomicCAS(&owner[node], 0, threadIdx.x + 1) == 0) atomicAdd(claimed, 1);
    }
}

int main()
{
    int *owner, *claimed, host;
    CHECK(cudaMalloc(&owner, kNodes * sizeof *owner));
    CHECK(cudaMalloc(&claimed, sizeof *claimed));
    CHECK(cudaMemset(owner, 0, kNodes * sizeof *owner));
    CHECK(cudaMemset(claimed, 0, sizeof *claimed));
    claim<<<1, kNodes>>>(owner, claimed);
    CHECK(cudaMemcpy(&host, claimed, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(owner));
    CHECK(cudaFree(claimed));
    return verdict(host == kNodes);
}
