// Threads that arrive at a barrier object or at a pipeline's stage, and do not wait for the others, or wait too late. What
// the report advises, the clean variant does, as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: before the read at advice_split_barriers.cu:44, wait for the mbarrier at which the other thread arrives at advice_split_barriers.cu:42 (`cuda::barrier::wait`, `mbarrier.try_wait`)
//@[racy] says: help: before the read at advice_split_barriers.cu:58, wait for the mbarrier at which the other thread arrives at advice_split_barriers.cu:56 (`cuda::barrier::wait`, `mbarrier.try_wait`)
//@[racy] says: help: the copy may still run at the second access: before that, wait for the mbarrier that it completes at, by the arrival at advice_split_barriers.cu:75 (`cuda::pipeline::consumer_wait`), in every thread that accesses the data
//@[racy] says: help: before the copy at advice_split_barriers.cu:95, wait for the mbarrier at which the other thread arrives at advice_split_barriers.cu:100 (`cuda::pipeline::producer_acquire`)
//@[racy] says: SUMMARY: cudarun-check: 4 races (4 errors)
//@ cuda: 12.8
#include "app.h"
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>

#ifdef RACY
#define ADVISED(text)
#define GIVEN(text) text
#else
#define ADVISED(text) text
#define GIVEN(text)
#endif

namespace groups = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init

const int kThreads = 128;
const int kStages = 2;
const int kTiles = 8;

// All arrive, and nobody waits.
__global__ void arrive_only(const int *in, int *out)
{
    __shared__ int s[kThreads];
    __shared__ Barrier barrier;
    int t = threadIdx.x;
    if (t == 0) init(&barrier, kThreads);
    __syncthreads();
    s[t] = in[t];
    Barrier::arrival_token token = barrier.arrive();
    ADVISED(barrier.wait(std::move(token));)
    out[t] = s[kThreads - 1 - t];
}

// The wait stands behind the read.
__global__ void wait_late(const int *in, int *out)
{
    __shared__ int s[kThreads];
    __shared__ Barrier barrier;
    int t = threadIdx.x;
    if (t == 0) init(&barrier, kThreads);
    __syncthreads();
    s[t] = in[t];
    Barrier::arrival_token token = barrier.arrive();
    ADVISED(barrier.wait(std::move(token));)
    int sum = in[t] + s[kThreads - 1 - t];
    GIVEN(barrier.wait(std::move(token));)
    out[t] = sum;
}

// The consumers of a pipeline do not wait for the copies.
__global__ void no_consumer_wait(const int *in, int *out)
{
    __shared__ int s[kStages][kThreads];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
    groups::thread_block block = groups::this_thread_block();
    cuda::pipeline<cuda::thread_scope_block> pipeline = cuda::make_pipeline(block, &state);
    int t = threadIdx.x, fetched = 0, sum = 0;
    for (int tile = 0; tile < kTiles; tile++) {
        for (; fetched < kTiles && fetched < tile + kStages; fetched++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, s[fetched % kStages], in + fetched * kThreads, sizeof(int) * kThreads, pipeline);
            pipeline.producer_commit();
        }
        ADVISED(pipeline.consumer_wait();)
        sum += s[tile % kStages][kThreads - 1 - t];
        pipeline.consumer_release();
    }
    out[t] = sum;
}

// Two stages of a pipeline: the producers fill a stage again that the consumers may still read.
__global__ void no_producer_acquire(const int *in, int *out)
{
    __shared__ int s[kStages][kThreads];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
    groups::thread_block block = groups::this_thread_block();
    cuda::pipeline<cuda::thread_scope_block> pipeline = cuda::make_pipeline(block, &state);
    int t = threadIdx.x, fetched = 0, sum = 0;
    for (int tile = 0; tile < kTiles; tile++) {
        for (; fetched < kTiles && fetched < tile + kStages; fetched++) {
            ADVISED(pipeline.producer_acquire();)
            cuda::memcpy_async(block, s[fetched % kStages], in + fetched * kThreads, sizeof(int) * kThreads, pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += s[tile % kStages][kThreads - 1 - t];
        pipeline.consumer_release();
    }
    out[t] = sum;
}

int main()
{
    int *in, *out;
    CHECK(cudaMallocManaged(&in, kTiles * kThreads * sizeof(int)));
    CHECK(cudaMallocManaged(&out, 4 * kThreads * sizeof(int)));
    for (int i = 0; i < kTiles * kThreads; i++) in[i] = i;
    arrive_only<<<1, kThreads>>>(in, out);
    wait_late<<<1, kThreads>>>(in, out + kThreads);
    no_consumer_wait<<<1, kThreads>>>(in, out + 2 * kThreads);
    no_producer_acquire<<<1, kThreads>>>(in, out + 3 * kThreads);
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int t = 0; t < kThreads; t++) {
        int mirrored = kThreads - 1 - t, sum = 0;
        for (int tile = 0; tile < kTiles; tile++) sum += tile * kThreads + mirrored;
        right = right && out[t] == mirrored && out[kThreads + t] == kThreads - 1 && out[2 * kThreads + t] == sum;
        right = right && out[3 * kThreads + t] == sum;
    }
    return verdict(right);
}
