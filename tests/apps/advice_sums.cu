// Updates that look as if an order were missing: of memory of another block of the cluster, beside an mbarrier, between two
// barriers of the grid, and in a table. What they lack is an atomic.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: one atomic operation: `atomicAdd(&far[values[i] % 4], 1)`
//@[racy] says: one atomic operation: `atomicAdd(&sums[threadIdx.x % 2], value)`
//@[racy] says: make the update at advice_sums.cu:61 one atomic operation, by a loop with `atomicCAS`
//@[racy] says: make the update at advice_sums.cu:81 one atomic operation, by a loop with `atomicCAS`
//@[racy] says: make the update at advice_sums.cu:101 one atomic operation, by a loop with `atomicCAS`
#include "app.h"
#include <cooperative_groups.h>
#include <cuda/barrier>

namespace groups = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// All blocks of a cluster count in the shared memory of the first.
__global__ void __cluster_dims__(2) count(const int *values, int *out) {
    __shared__ int counts[4];
    auto cluster = groups::this_cluster();
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    cluster.sync();
    int *far = cluster.map_shared_rank(counts, 0);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef RACY
    far[values[i] % 4]++;
#else
    atomicAdd(&far[values[i] % 4], 1);
#endif
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x < 4) out[threadIdx.x] = counts[threadIdx.x];
}

// The threads arrive at an mbarrier after their updates.
__global__ void add(const int *values, int *out) {
    __shared__ int sums[2];
    __shared__ alignas(Barrier) unsigned char memory[sizeof(Barrier)];
    Barrier *barrier = reinterpret_cast<Barrier *>(memory);
    if (threadIdx.x == 0) init(barrier, blockDim.x);
    if (threadIdx.x < 2) sums[threadIdx.x] = 0;
    __syncthreads();
    int value = values[threadIdx.x];
#ifdef RACY
    sums[threadIdx.x % 2] += value;
#else
    atomicAdd(&sums[threadIdx.x % 2], value);
#endif
    barrier->arrive_and_wait();
    if (threadIdx.x < 2) out[threadIdx.x] = sums[threadIdx.x];
}

// In each round, whoever finds an element free takes it. From the second on, threads of two blocks ask for each.
__global__ void take(int *owners, int *taken, int rounds) {
    auto grid = groups::this_grid();
    int threads = gridDim.x * blockDim.x;
    for (int round = 0; round < rounds; round++) {
        int at = round * threads + grid.thread_rank() % (round == 0 ? threads : threads / 2);
        int *owner = &owners[at];
#ifdef RACY
        if (*owner == 0) {
            *owner = round + 1;
            atomicAdd(taken, 1);
        }
#else
        if (atomicCAS(owner, 0, round + 1) == 0) atomicAdd(taken, 1);
#endif
        grid.sync();
    }
}

struct Slot {
    int key, used, unused;
};

// Each key takes the first free slot from its own on; nvcc moves the first look ahead of the loop.
__global__ void insert(Slot *slots, const int *keys, int size) {
    int key = keys[blockIdx.x * blockDim.x + threadIdx.x] + 1;
    for (int at = key % 32;; at = (at + 1) % size) {
#ifdef RACY
        int old = slots[at].key;
        if (old == 0) slots[at].key = key;
#else
        int old = atomicCAS(&slots[at].key, 0, key);
#endif
        if (old == 0) {
            atomicExch(&slots[at].used, 1);
            return;
        }
        if (old == key) return;
    }
}

// Half of the threads hand their sign to the element that the others look at first.
__global__ void claim(int *owners, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int *owner = &owners[i % size];
    if (i % 2 == 0) {
        atomicExch(owner, 1);
    } else {
#ifdef RACY
        if (*owner == 0) *owner = 2;
#else
        atomicCAS(owner, 0, 2);
#endif
    }
}

int main() {
    const int blocks = 2, threads = 64, n = blocks * threads;
    int rounds = 3;
    const int size = 256;
    Slot *slots, filled[size];
    int *values, *out, *owners, *taken, host[8], given[n];
    for (int i = 0; i < n; i++) given[i] = i;
    CHECK(cudaMalloc(&values, sizeof given));
    CHECK(cudaMalloc(&out, sizeof host));
    CHECK(cudaMalloc(&owners, rounds * n * sizeof *owners));
    CHECK(cudaMemcpy(values, given, sizeof given, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(out, 0, sizeof host));
    CHECK(cudaMemset(owners, 0, rounds * n * sizeof *owners));
    count<<<blocks, threads>>>(values, out);
    add<<<1, threads>>>(values, out + 4);
    taken = out + 6;
    void *arguments[] = {&owners, &taken, &rounds};
    CHECK(cudaLaunchCooperativeKernel((void *)take, blocks, threads, arguments));
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaMalloc(&slots, sizeof filled));
    CHECK(cudaMemset(slots, 0, sizeof filled));
    insert<<<blocks, threads>>>(slots, values, size);
    CHECK(cudaMemcpy(filled, slots, sizeof filled, cudaMemcpyDeviceToHost));
    claim<<<blocks, threads>>>(owners, 9);
    int keys = 0;
    for (const Slot &slot : filled) keys += slot.used;
    bool right = host[4] + host[5] == threads * (threads - 1) / 2 && host[6] == (rounds + 1) * n / 2;
    for (int i = 0; i < 4; i++) right = right && host[i] == n / 4;
    right = right && keys == n;
    CHECK(cudaFree(slots));
    CHECK(cudaFree(values));
    CHECK(cudaFree(out));
    CHECK(cudaFree(owners));
    return verdict(right);
}
