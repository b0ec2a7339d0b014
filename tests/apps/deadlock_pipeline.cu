// A block takes tiles through a pipeline of two stages.
// Racy: no data race, but the stages are not released, so that the third tile finds none that is free.
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] exit: 66
//@[racy] says: waiting for a phase of the mbarrier
//@[racy] says: help: let each producer commit every stage that it acquires (`cuda::pipeline::producer_commit`), and each consumer release every stage that it waits for (`consumer_release`)
//@[racy] not-as-on-gpu: a GPU that hangs is ended by --timeout
//@ cuda: 12.8
#include <cooperative_groups.h>
#include <cuda/pipeline>
#include "app.h"

const int kThreads = 64;
const int kStages = 2;
const int kTiles = 5;

__global__ void sum(const int *in, int *out) {
    namespace groups = cooperative_groups;
    __shared__ int tiles[kStages][kThreads];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
    groups::thread_block block = groups::this_thread_block();
    cuda::pipeline<cuda::thread_scope_block> pipeline = cuda::make_pipeline(block, &state);
    int fetched = 0, total = 0;
    for (int tile = 0; tile < kTiles; tile++) {
        for (; fetched < kTiles && fetched < tile + kStages; fetched++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, tiles[fetched % kStages], in + fetched * kThreads, sizeof tiles[0], pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        total += tiles[tile % kStages][kThreads - 1 - threadIdx.x];
#ifndef RACY
        pipeline.consumer_release();
#endif
    }
    out[threadIdx.x] = total;
}

int main() {
    int in[kTiles * kThreads], out[kThreads], *device_in, *device_out;
    for (int i = 0; i < kTiles * kThreads; i++) in[i] = i;
    CHECK(cudaMalloc(&device_in, sizeof in));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemcpy(device_in, in, sizeof in, cudaMemcpyHostToDevice));
    sum<<<1, kThreads>>>(device_in, device_out);
    end_or_deadlock();
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int t = 0; t < kThreads; t++) {
        int expected = 0;
        for (int tile = 0; tile < kTiles; tile++) expected += tile * kThreads + kThreads - 1 - t;
        right = right && out[t] == expected;
    }
    return verdict(right);
}
