// A flag that is stored like data, though another block waits for it in a loop; a counter that is counted up only while it
// is small; and a sum under two different locks. The clean variant applies the advice.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: the loop at advice_flag_store.cu:32 waits for the write at advice_flag_store.cu:26: make both atomic, by `cuda::atomic_ref` of device scope, with `cuda::memory_order_release` for the write and `cuda::memory_order_acquire` for the read
//@[racy] says: help: the loop at advice_flag_store.cu:54 waits for the write at advice_flag_store.cu:48: make both atomic
//@[racy] says: help: make the update at advice_flag_store.cu:66 one atomic operation, by a loop with `atomicCAS`: no other atomic does what it does
//@[racy] says: help: hold the same lock around both accesses
#include <cuda/atomic>

#include "app.h"

const int kThreads = 64, kBlocks = 4;

using DeviceFlag = cuda::atomic_ref<int, cuda::thread_scope_device>;

__global__ void hand_over(int *data, int *flag, int *out)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *data = 42;
#ifndef RACY
        DeviceFlag(*flag).store(1, cuda::memory_order_release);
#else
        __threadfence();
        *flag = 1;
#endif
    } else if (threadIdx.x == 0) {
#ifndef RACY
        while (DeviceFlag(*flag).load(cuda::memory_order_acquire) == 0) {}
#else
        while (*(volatile int *)flag == 0) {}
        __threadfence();
#endif
        out[blockIdx.x] = *data;
    }
}

// The cache operators of `__stcg` and `__ldcg` make no access strong.
__global__ void hand_over_cached(int *data, int *flag, int *out)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *data = 43;
        __threadfence();
#ifndef RACY
        DeviceFlag(*flag).store(1, cuda::memory_order_release);
#else
        __stcg(flag, 1);
#endif
    } else if (threadIdx.x == 0) {
#ifndef RACY
        while (DeviceFlag(*flag).load(cuda::memory_order_acquire) == 0) {}
#else
        while (__ldcg(flag) == 0) {}
#endif
        __threadfence();
        out[blockIdx.x] = *data;
    }
}

__global__ void count(int *counter, int most)
{
#ifndef RACY
    for (int seen = atomicCAS(counter, 0, 0), found; seen < most && (found = atomicCAS(counter, seen, seen + 1)) != seen;) seen = found;
#else
    if (*counter < most) *counter += 1;
#endif
}

__device__ void lock(int *word)
{
    while (atomicCAS(word, 0, 1) != 0) {}
    __threadfence();
}

__device__ void unlock(int *word)
{
    __threadfence();
    atomicExch(word, 0);
}

__global__ void add(int *locks, int *sum)
{
    if (threadIdx.x > 0) return;
#ifndef RACY
    int *mine = locks;
#else
    int *mine = locks + blockIdx.x % 2;
#endif
    lock(mine);
    *sum = *sum * 3 + 1;
    unlock(mine);
}

int main()
{
    int *words, host[16];
    CHECK(cudaMalloc(&words, sizeof host));
    CHECK(cudaMemset(words, 0, sizeof host));
    hand_over<<<2, kThreads>>>(words, words + 1, words + 2);
    hand_over_cached<<<2, kThreads>>>(words + 11, words + 12, words + 12);
    count<<<kBlocks, kThreads>>>(words + 4, 5);
    add<<<kBlocks, kThreads>>>(words + 8, words + 10);
    CHECK(cudaMemcpy(host, words, sizeof host, cudaMemcpyDeviceToHost));
    return verdict(host[3] == 42 && host[13] == 43 && host[4] == 5 && host[10] == 40);
}
