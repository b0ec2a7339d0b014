// Single words that blocks read and write without an order, each repaired as the report says: by an atomic, or under a lock.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: make the read of the old value and the write at advice_atomics.cu:21 one atomic operation, `atomicExch`, which returns the old value
//@[racy] says: one atomic operation: `atomicAdd(total, i + 1)`
//@[racy] says: one atomic operation: `atomicAdd(&count, 1)`
//@[racy] says: help: only one of the accesses is atomic: if the other may come before, between or after the updates, make it atomic too (`cuda::atomic_ref` of device scope); if it must come before or after all of them, put a barrier of the grid
//@[racy] says: help: only one of the accesses is volatile: if the two may come in either order, make both atomic (`cuda::atomic_ref` of device scope); if one must come first, put a barrier of the grid
//@[racy] says: help: hold the lock taken at advice_atomics.cu:91 around the read at advice_atomics.cu:89 too; if an old value does no harm there, make both accesses atomic instead (`cuda::atomic_ref` of device scope)
#include "app.h"
#include <cuda/atomic>

using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;

// Each thread puts its node in front of a list.
__global__ void push(int *head, int *next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef RACY
    next[i] = *head;
    *head = i;
#else
    next[i] = atomicExch(head, i);
#endif
}

// nvcc adds `i` and the old value first, and 1 to the sum.
__global__ void add_numbers(int *total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef RACY
    if (i < n) *total += i + 1;
#else
    if (i < n) atomicAdd(total, i + 1);
#endif
}

// nvcc keeps the count in a register until the loop has ended.
__global__ void count_in_loop(int *result, int n) {
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
#ifdef RACY
        count += 1;
#else
        atomicAdd(&count, 1);
#endif
    }
    __syncthreads();
    if (threadIdx.x == 0) *result = count;
}

// Marks what the threads' values name: who sees a mark need not mark again.
__global__ void mark(int *marks, const int *values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Word word(marks[values[i]]);
#ifdef RACY
    int found = marks[values[i]];
#else
    int found = word.load(cuda::memory_order_relaxed);
#endif
    if (found == 0) word.store(1, cuda::memory_order_relaxed);
}

// The blocks show how far they are; block 0 takes what it sees.
__global__ void progress(volatile int *done, int *shown, int *seen) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
#ifdef RACY
        *seen = *done;
#else
        *seen = Word(*(int *)done).load(cuda::memory_order_relaxed);
#endif
    } else if (blockIdx.x == 1) {
#ifdef RACY
        *shown = 1;
#else
        Word(*shown).store(1, cuda::memory_order_relaxed);
#endif
    }
}

// The greatest value of all blocks, under a lock that nobody takes who has nothing to add.
__global__ void greatest(const int *values, int *best, int *lock) {
    if (threadIdx.x != 0) return;
    int value = values[blockIdx.x];
#ifdef RACY
    if (value <= *best) return;
#endif
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    if (value > *best) *best = value;
    __threadfence();
    atomicExch(lock, 0);
}

int main() {
    const int n = 256, blocks = 4, threads = 64;
    int *words, *next, *values, host[17], host_next[n], host_values[n];
    for (int i = 0; i < n; i++) host_values[i] = 7 * i % 10;
    CHECK(cudaMalloc(&words, sizeof host));
    CHECK(cudaMemset(words, 0, sizeof host));
    CHECK(cudaMemset(words, -1, sizeof *words));
    CHECK(cudaMalloc(&next, sizeof host_next));
    CHECK(cudaMalloc(&values, sizeof host_values));
    CHECK(cudaMemcpy(values, host_values, sizeof host_values, cudaMemcpyHostToDevice));
    push<<<blocks, threads>>>(words, next, n);
    add_numbers<<<blocks, threads>>>(words + 1, n);
    count_in_loop<<<1, threads>>>(words + 2, n);
    mark<<<blocks, threads>>>(words + 6, values, n);
    progress<<<blocks, threads>>>(words + 3, words + 3, words + 16);
    greatest<<<blocks, threads>>>(values + 1, words + 4, words + 5);
    CHECK(cudaMemcpy(host, words, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(host_next, next, sizeof host_next, cudaMemcpyDeviceToHost));
    bool right = host[1] == n * (n + 1) / 2 && host[2] == n && host[3] == 1 && host[4] == 8;
    for (int i = 0; i < 10; i++) right = right && host[6 + i] == 1;
    int length = 0;
    for (int at = host[0]; at >= 0 && length <= n; at = host_next[at]) length++;
    right = right && length == n;
    CHECK(cudaFree(words));
    CHECK(cudaFree(next));
    CHECK(cudaFree(values));
    return verdict(right);
}
