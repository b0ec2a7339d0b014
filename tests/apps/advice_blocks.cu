// Blocks that do not order what they share, one kernel for each shape. What the report advises, the clean variant does,
// as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: widen the release of the flag at advice_blocks.cu:104 (offset 0 in allocation #3) to a scope that includes both threads: `__threadfence()` in place of `__threadfence_block()`, `thread_scope_device` in place of `thread_scope_block`
//@[racy] says: help: widen the acquire of the flag at advice_blocks.cu:119 (offset 0 in allocation #3) to a scope that includes both threads: `__threadfence()` in place of `__threadfence_block()`, `thread_scope_device` in place of `thread_scope_block`
//@[racy] says: help: use device scope for the write at advice_blocks.cu:139, and the read at advice_blocks.cu:141: `atomicAdd` in place of `atomicAdd_block`, `thread_scope_device` in place of `thread_scope_block`
//@[racy] says: help: use device scope for the atomic at advice_blocks.cu:160, and the atomic at advice_blocks.cu:168: `atomicAdd` in place of `atomicAdd_block`, `thread_scope_device` in place of `thread_scope_block`
//@[racy] says: help: use device scope for the atomic at advice_blocks.cu:297: `atomicAdd` in place of `atomicAdd_block`, `thread_scope_device` in place of `thread_scope_block`
//@[racy] says: help: put `__threadfence()` before and after the atomic at advice_blocks.cu:55: an atomic alone does not hand over what was written before it
//@[racy] says: help: release after the first access: put `__threadfence()` before the write of the flag at advice_blocks.cu:73 (offset 0 in allocation #3), or write it with `st.release` (`cuda::memory_order_release`)
//@[racy] says: help: acquire before the second access: put `__threadfence()` after the read of the flag at advice_blocks.cu:89 (offset 0 in allocation #3), or read it with `ld.acquire` (`cuda::memory_order_acquire`)
//@[racy] says: help: first repair the scope that CR005 names, which may order these accesses too; otherwise put a barrier of the grid between the two accesses (`cooperative_groups::this_grid().sync()`, in a cooperative launch), or end the kernel there and go on in another launch: `__syncthreads()` does not order blocks
//@[racy] says: help: put `__threadfence()` after the lock is taken at advice_blocks.cu:149, and before the lock is released at advice_blocks.cu:154
//@[racy] says: help: make the update at advice_blocks.cu:179 one atomic operation: `atomicAdd(&n[0], 1)`
//@[racy] says: help: make the update at advice_blocks.cu:189 one atomic operation: `atomicAdd(x, -value)`
//@[racy] says: help: make the update at advice_blocks.cu:199 one atomic operation: `atomicAdd((unsigned long long *)&n[in[i] % 4], 2)`
//@[racy] says: help: make the update at advice_blocks.cu:210 one atomic operation: `atomicAdd(&n[0], 1)`
//@[racy] says: help: make the update at advice_blocks.cu:221 one atomic operation: `atomicMax(most, value)`
//@[racy] says: help: make the update at advice_blocks.cu:238 one atomic operation, `atomicAdd`, of an element that is 32 bits wide: there is none for 8 bits
//@[racy] says: help: only one of the accesses is atomic: if the other may come before, between or after the updates, make it atomic too (`cuda::atomic_ref` of device scope); if it must come before or after all of them, put a barrier of the grid
//@[racy] says: help: put a barrier of the grid before the read at advice_blocks.cu:275 (`cooperative_groups::this_grid().sync()`, in a cooperative launch), or end the kernel there and go on in another launch: `__syncthreads()` does not order blocks
//@[racy] says: help: put a barrier of the grid after the write at advice_blocks.cu:281 (`cooperative_groups::this_grid().sync()`, in a cooperative launch), or end the kernel there and go on in another launch: `__syncthreads()` does not order blocks
//@[racy] says: help: let one thread write the element, or give each thread an element of its own: no barrier orders threads that execute the same write
//@[racy] says: help: read with an ordinary load (not `__ldg`, and no `const __restrict__` on data that the kernel writes) and order it with the write, or write in another launch: nothing within a launch orders reads through the read-only path
//@[racy] says: SUMMARY: cudarun-check: 23 races (23 errors)
#include "app.h"
#include <cooperative_groups.h>
#include <cstring>
#include <cuda/atomic>

#ifdef RACY
#define ADVISED(text)
#else
#define ADVISED(text) text
#endif

const int kThreads = 64, kBlocks = 4, kCount = kThreads * kBlocks;

// The last block to come adds up what all have written.
__device__ unsigned tickets;

__global__ void last_block(const int *in, int *part, int *out)
{
    __shared__ int sum;
    __shared__ bool last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[blockIdx.x * kThreads + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        part[blockIdx.x] = sum;
        ADVISED(__threadfence();)
        unsigned ticket = atomicAdd(&tickets, 1);
        ADVISED(__threadfence();)
        last = ticket == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        out[0] = 0;
        for (int i = 0; i < gridDim.x; i++) out[0] += part[i];
    }
}

// Two values are handed over by one flag: without a release, without an acquire, and with narrow fences.
__global__ void no_release(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
        data[1] = 43;
        ADVISED(__threadfence();)
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        out[0] = data[0] + data[1];
    }
}

__global__ void no_acquire(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
        data[1] = 43;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        ADVISED(__threadfence();)
        out[0] = data[0] + data[1];
    }
}

__global__ void narrow_release(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
#ifdef RACY
        __threadfence_block();
#else
        __threadfence();
#endif
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        out[0] = data[0];
    }
}

__global__ void narrow_acquire(int *data, volatile int *flag, int *out)
{
    if (blockIdx.x == 0) {
        data[0] = 42;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
#ifdef RACY
        __threadfence_block();
#else
        __threadfence();
#endif
        out[0] = data[0];
    }
}

// The same with a flag that says itself what it does.
__global__ void narrow_flag(int *data, int *flag, int *out)
{
#ifdef RACY
    cuda::atomic_ref<int, cuda::thread_scope_block> ready(*flag);
#else
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
#endif
    if (blockIdx.x == 0) {
        data[0] = 42;
        ready.store(1, cuda::memory_order_release);
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        out[0] = data[0];
    }
}

// Locks without fences, and of block scope.
__global__ void bare_lock(int *lock, int *sum)
{
    while (atomicCAS(lock, 0, 1) != 0) {}
    ADVISED(__threadfence();)
    sum[0] += blockIdx.x;
    sum[1] += 2;
    ADVISED(__threadfence();)
    atomicExch(lock, 0);
}

__global__ void narrow_lock(int *lock, int *sum)
{
#ifdef RACY
    while (atomicCAS_block(lock, 0, 1) != 0) {}
#else
    while (atomicCAS(lock, 0, 1) != 0) {}
#endif
    __threadfence();
    sum[0] += blockIdx.x;
    __threadfence();
#ifdef RACY
    atomicExch_block(lock, 0);
#else
    atomicExch(lock, 0);
#endif
}

// Updates.
__global__ void counts(int *n, const int *in)
{
    int i = blockIdx.x * kThreads + threadIdx.x;
#ifdef RACY
    if (in[i] % 2) n[0]++;
#else
    if (in[i] % 2) atomicAdd(&n[0], 1);
#endif
}

__global__ void difference(float *x, const int *in)
{
    float value = in[blockIdx.x * kThreads + threadIdx.x];
#ifdef RACY
    *x -= value;
#else
    atomicAdd(x, -value);
#endif
}

__global__ void wide(unsigned long *n, const int *in)
{
    int i = blockIdx.x * kThreads + threadIdx.x;
#ifdef RACY
    n[in[i] % 4] += 2;
#else
    atomicAdd((unsigned long long *)&n[in[i] % 4], 2);
#endif
}

__global__ void compact(int *n, int *out, const int *in)
{
    int value = in[blockIdx.x * kThreads + threadIdx.x];
    if (value % 2 == 0) return;
#ifdef RACY
    int at = n[0]++;
#else
    int at = atomicAdd(&n[0], 1);
#endif
    out[at] = value;
}

__global__ void maximum(int *most, const int *in)
{
    int value = in[blockIdx.x * kThreads + threadIdx.x];
#ifdef RACY
    if (value > *most) *most = value;
#else
    atomicMax(most, value);
#endif
}

// Elements that no atomic updates: wider ones take their place.
#ifdef RACY
typedef unsigned char Counter;
#else
typedef unsigned Counter;
#endif

__global__ void narrow_counts(Counter *n, const int *in)
{
    int i = blockIdx.x * kThreads + threadIdx.x;
#ifdef RACY
    n[in[i] % 4]++;
#else
    atomicAdd(&n[in[i] % 4], 1);
#endif
}

// A read beside atomics, which may see any value; and one that must see the last, in another launch.
__global__ void any_value(int *n, int *out)
{
#ifdef RACY
    if (*n < 1000) atomicAdd(n, 1);
#else
    if (cuda::atomic_ref<int, cuda::thread_scope_device>(*n).load(cuda::memory_order_relaxed) < 1000) atomicAdd(n, 1);
#endif
}

__global__ void last_value(int *n, int *out)
{
#ifdef RACY
    atomicAdd(n, 1);
    if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = *n;
#else
    if (out) {
        if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = *n;
    } else {
        atomicAdd(n, 1);
    }
#endif
}

// Phases of the grid: by a barrier of the grid, or by two launches.
__global__ void phases(int *a, int *b, int *out)
{
    int i = blockIdx.x * kThreads + threadIdx.x, other = (i + kThreads) % kCount;
    a[i] = i;
    b[i] = 2 * i;
    ADVISED(cooperative_groups::this_grid().sync();)
    out[i] = a[other] + b[other];
}

__global__ void by_launches(int *a, int *out, int part)
{
    int i = blockIdx.x * kThreads + threadIdx.x, other = (i + kThreads) % kCount;
    if (part != 1) a[i] = i;
    ADVISED(if (part == 0) return;)
    if (part != 0) out[i] = a[other];
}

// All blocks write to one element.
__global__ void one_writer(int *out)
{
    ADVISED(if (blockIdx.x == kBlocks - 1 && threadIdx.x == 0))
    out[0] = blockIdx.x;
}

// Atomics of one block.
__global__ void narrow_atomic(int *n)
{
#ifdef RACY
    atomicAdd_block(n, 1);
#else
    atomicAdd(n, 1);
#endif
}

// Through the read-only path.
__global__ void read_only(int *data)
{
    int t = threadIdx.x;
    data[t] = t;
    __syncthreads();
#ifdef RACY
    data[kThreads + t] = __ldg(&data[kThreads - 1 - t]);
#else
    data[kThreads + t] = data[kThreads - 1 - t];
#endif
}

int main()
{
    static int data[kCount];
    for (int i = 0; i < kCount; i++) data[i] = i * 7919 % 1009;
    int *in, *a, *b, *out;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&a, sizeof data));
    CHECK(cudaMalloc(&b, sizeof data));
    CHECK(cudaMalloc(&out, sizeof data));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    bool right = true;
    auto clear = [&] {
        for (int *p : {a, b, out}) CHECK(cudaMemset(p, 0, sizeof data));
    };
    auto check = [&](const char *name, const int *from, auto expected, int count = 1) {
        static int found[kCount];
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(found, from, sizeof found, cudaMemcpyDeviceToHost));
        for (int i = 0; i < count; i++) {
            if (found[i] == expected(i)) continue;
            if (right) std::printf("%s: element %d is %d, not %d\n", name, i, found[i], expected(i));
            right = false;
        }
        clear();
    };
    auto is = [](int value) { return [value](int) { return value; }; };
    int sum = 0, odd = 0, most = 0, classes[4] = {};
    for (int value : data) {
        sum += value, odd += value % 2, classes[value % 4]++;
        if (value > most) most = value;
    }
    clear();
    last_block<<<kBlocks, kThreads>>>(in, a, out);
    check("last_block", out, is(sum));
    no_release<<<2, 1>>>(a, b, out);
    check("no_release", out, is(85));
    no_acquire<<<2, 1>>>(a, b, out);
    check("no_acquire", out, is(85));
    narrow_release<<<2, 1>>>(a, b, out);
    check("narrow_release", out, is(42));
    narrow_acquire<<<2, 1>>>(a, b, out);
    check("narrow_acquire", out, is(42));
    narrow_flag<<<2, 1>>>(a, b, out);
    check("narrow_flag", out, is(42));
    bare_lock<<<kBlocks, 1>>>(a, out);
    check("bare_lock", out, is(6));
    narrow_lock<<<kBlocks, 1>>>(a, out);
    check("narrow_lock", out, is(6));
    counts<<<kBlocks, kThreads>>>(out, in);
    check("counts", out, is(odd));
    difference<<<kBlocks, kThreads>>>((float *)a, in);
    float left;
    CHECK(cudaMemcpy(&left, a, sizeof left, cudaMemcpyDeviceToHost));
    check("difference", a, [&](int) { int bits; std::memcpy(&bits, &left, 4); return left == -sum ? bits : -1; });
    wide<<<kBlocks, kThreads>>>((unsigned long *)a, in);
    check("wide", a, [&](int i) { return i % 2 ? 0 : 2 * classes[i / 2]; }, 8);
    compact<<<kBlocks, kThreads>>>(a, out, in);
    check("compact", a, is(odd));
    maximum<<<kBlocks, kThreads>>>(out, in);
    check("maximum", out, is(most));
    narrow_counts<<<kBlocks, kThreads>>>((Counter *)a, in);
#ifndef RACY
    check("narrow_counts", a, [&](int i) { return classes[i]; }, 4);
#endif
    clear();
    any_value<<<kBlocks, kThreads>>>(a, out);
    check("any_value", a, is(kCount));
#ifdef RACY
    last_value<<<kBlocks, kThreads>>>(a, out);
#else
    last_value<<<kBlocks, kThreads>>>(a, nullptr);
    last_value<<<kBlocks, kThreads>>>(a, out);
#endif
    check("last_value", out, is(kCount));
    void *arguments[] = {&a, &b, &out};
    CHECK(cudaLaunchCooperativeKernel(phases, kBlocks, kThreads, arguments, 0, nullptr));
    check("phases", out, [](int i) { return 3 * ((i + kThreads) % kCount); }, kCount);
#ifdef RACY
    by_launches<<<kBlocks, kThreads>>>(a, out, 2);
#else
    by_launches<<<kBlocks, kThreads>>>(a, out, 0);
    by_launches<<<kBlocks, kThreads>>>(a, out, 1);
#endif
    check("by_launches", out, [](int i) { return (i + kThreads) % kCount; }, kCount);
    one_writer<<<kBlocks, kThreads>>>(out);
    check("one_writer", out, is(kBlocks - 1));
    narrow_atomic<<<kBlocks, kThreads>>>(out);
    check("narrow_atomic", out, is(kCount));
    read_only<<<1, kThreads>>>(a);
    check("read_only", a, [](int i) { return i < kThreads ? i : 2 * kThreads - 1 - i; }, 2 * kThreads);
    return verdict(right);
}
