// Flags whose fences are missing where other threads of the blocks write and read the data, flags that are written before
// their data, and both fences missing within a block. What the report advises, the clean variant does, as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: release after the first access and acquire before the second: put `__threadfence()` before the write of the flag at advice_flags.cu:31 (offset 0 in allocation #2), and after the read of the flag at advice_flags.cu:35 (offset 0 in allocation #2), or
//@[racy] says: help: release after the first access: put `__threadfence()` before the write of the flag at advice_flags.cu:51 (offset 0 in allocation #2), or
//@[racy] says: help: acquire before the second access: put `__threadfence()` after the read of the flag at advice_flags.cu:74 (offset 0 in allocation #2), or
//@[racy] says: help: move the write of the flag at advice_flags.cu:87 (offset 0 in allocation #2) behind the first access
//@[racy] says: help: move the write of the flag at advice_flags.cu:107 (offset 0 in allocation #2) behind the first access (behind a `__syncthreads()`, if several threads of the block write the data), and put `__threadfence()` between the two; if
//@[racy] says: help: release after the first access and acquire before the second: put `__threadfence_block()` before the write of the flag at advice_flags.cu:134 (offset 0 in allocation #2), and after the read of the flag at advice_flags.cu:136 (offset 0 in allocation #2), or
//@[racy] says: SUMMARY: cudarun-check: 6 races (6 errors)
#include "app.h"

#ifdef RACY
#define ADVISED(text)
#else
#define ADVISED(text) text
#endif

const int kThreads = 64;

// All threads of a block write, one sets the flag; one of the other block waits for it, all read.
__global__ void across(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x + 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            ADVISED(__threadfence();)
            *flag = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            while (*flag == 0) {}
            ADVISED(__threadfence();)
        }
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}

__global__ void across_no_release(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x + 1;
        __syncthreads();
        // The other warp has written most of the data.
        if (threadIdx.x == 40) {
            ADVISED(__threadfence();)
            *flag = 1;
        }
    } else {
        if (threadIdx.x == 0) {
            while (*flag == 0) {}
            __threadfence();
        }
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}

__global__ void across_no_acquire(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        data[threadIdx.x] = threadIdx.x + 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            *flag = 1;
        }
    } else {
        if (threadIdx.x == 40) {
            while (*flag == 0) {}
            ADVISED(__threadfence();)
        }
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}

__global__ void early(int *data, volatile int *flag, int *out)
{
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
#ifdef RACY
        *flag = 1;
        data[0] = 1;
#else
        data[0] = 1;
        __threadfence();
        *flag = 1;
#endif
    } else {
        while (*flag == 0) {}
        __threadfence();
        out[0] = data[0];
    }
}

__global__ void early_across(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
#ifdef RACY
        if (threadIdx.x == 0) {
            __threadfence();
            *flag = 1;
        }
        __syncthreads();
        data[threadIdx.x] = threadIdx.x + 1;
#else
        data[threadIdx.x] = threadIdx.x + 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            *flag = 1;
        }
#endif
    } else {
        if (threadIdx.x == 0) {
            while (*flag == 0) {}
            __threadfence();
        }
        __syncthreads();
        out[threadIdx.x] = data[threadIdx.x];
    }
}

__global__ void within_block(int *data, volatile int *flag, int *out)
{
    if (threadIdx.x == 0) {
        data[0] = 1;
        ADVISED(__threadfence_block();)
        *flag = 1;
    } else if (threadIdx.x == 32) {
        while (*flag == 0) {}
        ADVISED(__threadfence_block();)
        out[0] = data[0];
    }
}

int main()
{
    int *data, *flag, *out;
    CHECK(cudaMalloc(&data, kThreads * sizeof(int)));
    CHECK(cudaMalloc(&flag, sizeof(int)));
    CHECK(cudaMalloc(&out, kThreads * sizeof(int)));
    typedef void (*Kernel)(int *, volatile int *, int *);
    struct Case { Kernel kernel; int blocks, written; };
    const Case cases[] = {{across, 2, kThreads},  {across_no_release, 2, kThreads}, {across_no_acquire, 2, kThreads},
                          {early, 2, 1},          {early_across, 2, kThreads},      {within_block, 1, 1}};
    bool right = true;
    for (const Case &one : cases) {
        CHECK(cudaMemset(flag, 0, sizeof(int)));
        CHECK(cudaMemset(data, 0, kThreads * sizeof(int)));
        one.kernel<<<one.blocks, kThreads>>>(data, flag, out);
        CHECK(cudaGetLastError());
        int got[kThreads];
        CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
        for (int i = 0; i < one.written; i++) right &= got[i] == i + 1;
    }
    return verdict(right);
}
