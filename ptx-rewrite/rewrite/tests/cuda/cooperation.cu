// Cooperative groups and scoped atomics of the C++ library.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;

__global__ void grid(int* p) {
    auto all = cg::this_grid();
    p[all.thread_rank()] = 1;
    all.sync();
    p[0] += p[all.size() - 1];
}
__global__ void tiles(int* p) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int sum = cg::reduce(tile, p[threadIdx.x], cg::plus<int>());
    tile.sync();
    if (tile.thread_rank() == 0) p[blockIdx.x] = sum;
    cg::coalesced_threads().sync();
}
__global__ void atomics(int* p) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(p[0]);
    flag.fetch_add(1, cuda::memory_order_release);
    while (flag.load(cuda::memory_order_acquire) < 3) {}
    cuda::atomic_ref<int, cuda::thread_scope_block> near(p[1]);
    near.store(3, cuda::memory_order_relaxed);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst);
    __threadfence_block();
}
__global__ void counts(int* p, unsigned mask) {
    p[threadIdx.x] = __syncthreads_count(p[1]);
    __syncwarp();
    __syncwarp(mask);
    p[1] = __syncthreads_or(p[2]);
}
