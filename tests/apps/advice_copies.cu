// Asynchronous copies, mbarriers and clusters, one kernel for each thing that is missing. What the report advises, the
// clean variant does, as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: put a barrier of the cluster (`cluster.sync()`) between the last access to shared memory of another block and the end of the kernel, in every block
//@[racy] says: help: move `__syncthreads()` out of the condition: all threads of a warp must reach the same one
//@[racy] says: help: the copy may still run at the second access: before that, wait for it (`__pipeline_wait_prior(0)`, `cuda::pipeline::consumer_wait`, `cooperative_groups::wait`) in the thread that issued it
//@[racy] says: help: the copy may still run at the second access: before that, wait for it (`__pipeline_wait_prior(0)`, `cuda::pipeline::consumer_wait`, `cooperative_groups::wait`) in the thread that issued it, and put `__syncthreads()` after that
//@[racy] says: help: put `__syncthreads()` after the wait at advice_copies.cu:68
//@[racy] says: help: put `__syncthreads()` after the end of the branch at advice_copies.cu:91
//@[racy] says: help: the copy may still run at the second access: before that, wait for the mbarrier that it completes at (`cuda::barrier::wait`, `mbarrier.try_wait`), in every thread that accesses the data
//@[racy] says: help: put `fence.proxy.async` (`cuda::ptx::fence_proxy_async`) after the write at advice_copies.cu:121, in each thread that writes and before the barrier that follows; or, after that barrier, before the copy at advice_copies.cu:125
//@[racy] says: help: the copy may still run at the second access: before that, wait for its group (`cp.async.bulk.wait_group`, `cuda::ptx::cp_async_bulk_wait_group`) in the thread that issued it, and put `__syncthreads()` after that
//@[racy] says: help: put a barrier of the cluster (`cluster.sync()`, `barrier.cluster`) after the write at advice_copies.cu:170
//@[racy] says: help: let every thread of the block reach `__syncthreads()`: move it out of the condition or loop that it is in; if threads return early, put the work into a branch instead, without the barrier
//@[racy] says: SUMMARY: cudarun-check: 10 races, 3 synchronisation errors (12 errors, 1 warning)
//@ cuda: 12.8
#include "app.h"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_pipeline.h>

#ifdef RACY
#define ADVISED(text)
#else
#define ADVISED(text) text
#endif

namespace groups = cooperative_groups;
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

const int kThreads = 128;

// The thread that reads has not waited for its own copy.
__global__ void own_copy(const int *in, int *out)
{
    __shared__ int s[kThreads];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], sizeof(int));
    __pipeline_commit();
    ADVISED(__pipeline_wait_prior(0);)
    out[t] = s[t];
}

// Nobody has waited.
__global__ void no_wait(const int *in, int *out)
{
    __shared__ int s[kThreads];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], sizeof(int));
    __pipeline_commit();
    ADVISED(__pipeline_wait_prior(0);)
    ADVISED(__syncthreads();)
    out[t] = s[kThreads - 1 - t];
}

// All have waited for their own copies only.
__global__ void no_barrier(const int *in, int *out)
{
    __shared__ int s[kThreads];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], sizeof(int));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    ADVISED(__syncthreads();)
    out[t] = s[kThreads - 1 - t];
}

// A copy by the whole block.
__global__ void group_copy(const int *in, int *out)
{
    __shared__ int s[kThreads];
    auto block = groups::this_thread_block();
    groups::memcpy_async(block, s, in, sizeof s);
    ADVISED(groups::wait(block);)
    ADVISED(__syncthreads();)
    out[threadIdx.x] = s[kThreads - 1 - threadIdx.x];
}

// An mbarrier is used before it is initialised for all.
__global__ void early_use(const int *in, int *out)
{
    __shared__ int s[kThreads];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier ready;
    int t = threadIdx.x;
    if (t == 0) init(&ready, kThreads);
    ADVISED(__syncthreads();)
    s[t] = in[t];
    ready.arrive_and_wait();
    out[t] = s[kThreads - 1 - t];
}

// A bulk copy that completes at an mbarrier, for which the readers do not wait.
__global__ void bulk_load(const int *in, int *out)
{
    __shared__ alignas(16) int s[kThreads];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier ready;
    int t = threadIdx.x;
    if (t == 0) {
        init(&ready, kThreads);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (t == 0) cuda::memcpy_async(s, in, cuda::aligned_size_t<16>(sizeof s), ready);
    auto token = ready.arrive();
    ADVISED(ready.wait(std::move(token));)
    out[t] = s[kThreads - 1 - t];
}

// A bulk copy of what was written without a fence between the proxies: by the writers, and by the issuer.
__global__ void bulk_store(const int *in, int *out)
{
    __shared__ alignas(16) int s[kThreads];
    int t = threadIdx.x;
    s[t] = 2 * in[t];
    ADVISED(ptx::fence_proxy_async(ptx::space_shared);)
    __syncthreads();
    if (t == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, sizeof s);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

__global__ void bulk_store_by_issuer(const int *in, int *out)
{
    __shared__ alignas(16) int s[kThreads];
    int t = threadIdx.x;
    s[t] = 2 * in[t];
    __syncthreads();
    if (t == 0) {
        ADVISED(ptx::fence_proxy_async(ptx::space_shared);)
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, s, sizeof s);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

// The source of a bulk copy is written again.
__global__ void bulk_again(const int *in, int *out)
{
    __shared__ alignas(16) int s[kThreads];
    int t = threadIdx.x;
    for (int k = 0; k < 2; k++) {
        s[t] = (k + 2) * in[t];
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (t == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + k * kThreads, s, sizeof s);
            ptx::cp_async_bulk_commit_group();
            ADVISED(ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());)
        }
        __syncthreads();
    }
    if (t == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

// Shared memory of another block of the cluster: read too early, and after that block may have gone.
__global__ void __cluster_dims__(2) too_early(const int *in, int *out)
{
    __shared__ int s[kThreads];
    auto cluster = groups::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank();
    s[t] = in[t] + rank;
    ADVISED(cluster.sync();)
    out[rank * kThreads + t] = cluster.map_shared_rank(s, rank ^ 1)[t];
    cluster.sync();
}

__global__ void __cluster_dims__(2) too_late(const int *in, int *out)
{
    __shared__ int s[kThreads];
    auto cluster = groups::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank();
    s[t] = in[t] + rank;
    cluster.sync();
    out[rank * kThreads + t] = cluster.map_shared_rank(s, rank ^ 1)[t];
    ADVISED(cluster.sync();)
}

// Some threads of a block leave before its barrier; and some of a warp wait at another one.
__global__ void leave_early(const int *in, int *out, int n)
{
    __shared__ int s[kThreads];
    int t = threadIdx.x;
#ifdef RACY
    if (t >= n) return;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[n - 1 - t];
#else
    if (t < n) s[t] = in[t];
    __syncthreads();
    if (t >= n) return;
    out[t] = s[n - 1 - t];
#endif
}

__global__ void two_barriers(const int *in, int *out)
{
    __shared__ int s[kThreads];
    int t = threadIdx.x;
#ifdef RACY
    if (t % 2) {
        s[t] = in[t];
        __syncthreads();
    } else {
        s[t] = 2 * in[t];
        __syncthreads();
    }
#else
    if (t % 2) {
        s[t] = in[t];
    } else {
        s[t] = 2 * in[t];
    }
    __syncthreads();
#endif
    out[t] = s[kThreads - 1 - t];
}

int main()
{
    static int data[kThreads], found[2 * kThreads];
    for (int i = 0; i < kThreads; i++) data[i] = i * 7919 % 1009;
    int *in, *out;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    bool right = true;
    auto check = [&](const char *name, auto expected, int count = kThreads) {
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
        for (int i = 0; i < count; i++) {
            if (found[i] == expected(i)) continue;
            if (right) std::printf("%s: element %d is %d, not %d\n", name, i, found[i], expected(i));
            right = false;
        }
    };
    auto reversed = [](int i) { return data[kThreads - 1 - i]; };
    own_copy<<<1, kThreads>>>(in, out);
    check("own_copy", [](int i) { return data[i]; });
    no_wait<<<1, kThreads>>>(in, out);
    check("no_wait", reversed);
    no_barrier<<<1, kThreads>>>(in, out);
    check("no_barrier", reversed);
    group_copy<<<1, kThreads>>>(in, out);
    check("group_copy", reversed);
    early_use<<<1, kThreads>>>(in, out);
    check("early_use", reversed);
    bulk_load<<<1, kThreads>>>(in, out);
    check("bulk_load", reversed);
    bulk_store<<<1, kThreads>>>(in, out);
    check("bulk_store", [](int i) { return 2 * data[i]; });
    bulk_store_by_issuer<<<1, kThreads>>>(in, out);
    check("bulk_store_by_issuer", [](int i) { return 2 * data[i]; });
    bulk_again<<<1, kThreads>>>(in, out);
    check("bulk_again", [](int i) { return (i / kThreads + 2) * data[i % kThreads]; }, 2 * kThreads);
    auto other = [](int i) { return data[i % kThreads] + 1 - i / kThreads; };
    too_early<<<2, kThreads>>>(in, out);
    check("too_early", other, 2 * kThreads);
    too_late<<<2, kThreads>>>(in, out);
    check("too_late", other, 2 * kThreads);
    leave_early<<<1, kThreads>>>(in, out, 70);
    check("leave_early", [](int i) { return data[69 - i]; }, 70);
    two_barriers<<<1, kThreads>>>(in, out);
    check("two_barriers", [](int i) { return data[kThreads - 1 - i] * (i % 2 ? 2 : 1); });
    return verdict(right);
}
