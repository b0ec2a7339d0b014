// Data that one block hands over to another, and a buffer that the next round fills. In each kernel one thing is missing;
// the clean variant has it where the help of the racy one says.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: put `__syncthreads()` between the first access and the write of the flag at advice_handover.cu:36 (in `flag`), and between the read of the flag at advice_handover.cu:38 (in `flag`) and the second access: the flag orders the thread that writes it and the thread that reads it, and no other threads of their blocks; if the flag is not meant for this data, put a barrier of the grid (`cooperative_groups::this_grid().sync()`, in a cooperative launch) between the two accesses
//@[racy] says: the lock taken at advice_handover.cu:48 is released by a plain write at advice_handover.cu:53
//@[racy] says: help: release the lock by an atomic in place of the plain write at advice_handover.cu:53: `__threadfence()` and then `atomicExch(&lock, 0)`, or a store by `cuda::atomic_ref` of device scope with `cuda::memory_order_release`
//@[racy] says: help: put `__threadfence()` before and after the atomic at advice_handover.cu:68: an atomic alone does not hand over what was written before it
//@[racy] says: intra-block race on shared memory: an asynchronous copy and a read of the same address are not ordered
//@[racy] says: help: put `__syncthreads()` after the read at advice_handover.cu:92
//@[racy] says: SUMMARY: cudarun-check: 4 races (3 errors, 1 warning)
#include "app.h"
#include <cuda/atomic>
#include <cuda_pipeline.h>

#ifdef RACY
#define ADVISED(text)
#else
#define ADVISED(text) text
#endif

const int kThreads = 128, kBlocks = 8, kTiles = 16;

__device__ int values[kThreads], flag, lock, parts;
__device__ volatile int part[kBlocks];

// Thread 0 of one block sets a flag that thread 0 of the other waits for.
__global__ void flagged(int *out)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(flag);
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        values[t] = 3 * t;
        ADVISED(__syncthreads();)
        if (t == 0) ready.store(1, cuda::memory_order_release);
    } else {
        if (t == 0) while (ready.load(cuda::memory_order_acquire) == 0) {}
        ADVISED(__syncthreads();)
        out[t] = values[t];
    }
}

// A lock that is released by a plain store.
__global__ void unlock(int *sum)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) {}
        __threadfence();
        *sum += 1;
        __threadfence();
#ifdef RACY
        lock = 0;
#else
        atomicExch(&lock, 0);
#endif
    }
}

// The last block adds up volatile parts.
__global__ void last_block(int *out)
{
    __shared__ bool last;
    int t = threadIdx.x;
    if (t == 0) {
        part[blockIdx.x] = blockIdx.x + 1;
        ADVISED(__threadfence();)
        last = atomicAdd(&parts, 1) == kBlocks - 1;
        ADVISED(__threadfence();)
    }
    __syncthreads();
    if (last && t == 0) {
        int sum = 0;
        for (int i = 0; i < kBlocks; i++) sum += part[i];
        *out = sum;
    }
}

// Two buffers: the copy of the next round begins while other threads still read the last one.
__global__ void rounds(const int *in, int *out)
{
    __shared__ int buffer[2][kThreads];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&buffer[0][t], &in[t], sizeof(int));
    __pipeline_commit();
    for (int i = 0; i < kTiles; i++) {
        if (i + 1 < kTiles)
            __pipeline_memcpy_async(&buffer[(i + 1) % 2][t], &in[(i + 1) * kThreads + t], sizeof(int));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[i * kThreads + t] = buffer[i % 2][kThreads - 1 - t];
        ADVISED(__syncthreads();)
    }
}

int main()
{
    static int data[kTiles * kThreads], found[kTiles * kThreads];
    for (int i = 0; i < kTiles * kThreads; i++) data[i] = i * 7919 % 1009;
    int *in, *out;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    bool right = true;
    auto check = [&](const char *name, auto expected, int count) {
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(found, out, count * sizeof *found, cudaMemcpyDeviceToHost));
        for (int i = 0; i < count; i++) {
            if (found[i] == expected(i)) continue;
            if (right) std::printf("%s: element %d is %d, not %d\n", name, i, found[i], expected(i));
            right = false;
        }
    };
    flagged<<<2, kThreads>>>(out);
    check("flagged", [](int i) { return 3 * i; }, kThreads);
    CHECK(cudaMemset(out, 0, sizeof(int)));
    unlock<<<kBlocks, 32>>>(out);
    check("unlock", [](int) { return kBlocks; }, 1);
    last_block<<<kBlocks, kThreads>>>(out);
    check("last_block", [](int) { return kBlocks * (kBlocks + 1) / 2; }, 1);
    rounds<<<1, kThreads>>>(in, out);
    auto reversed = [](int i) { return data[i / kThreads * kThreads + kThreads - 1 - i % kThreads]; };
    check("rounds", reversed, kTiles * kThreads);
    return verdict(right);
}
