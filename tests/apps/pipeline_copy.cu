// libcu++: a cuda::pipeline copies the next tile into shared memory while the block works on this one.
//@ variants: clean
//@ expect: no-race
//@ nvcc: -std=c++17
#include "app.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>

const int threads = 64, tiles = 9, stages = 2;

// Sums each tile with its neighbours' values in the tile.
__global__ void smooth(const int *in, int *out) {
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ int tile[stages][threads];
    auto block = cooperative_groups::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    in += blockIdx.x * tiles * threads;
    out += blockIdx.x * tiles * threads;
    int fetched = 0, thread = threadIdx.x;
    for (int done = 0; done < tiles; done++) {
        for (; fetched < tiles && fetched < done + stages; fetched++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, tile[fetched % stages], in + fetched * threads,
                               sizeof(int) * threads, pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        const int *here = tile[done % stages];
        out[done * threads + thread] =
            here[thread] + here[(thread + 1) % threads] + here[(thread + threads - 1) % threads];
        pipeline.consumer_release();
    }
}

int main() {
    const int blocks = 4, n = blocks * tiles * threads;
    static int input[n], result[n];
    Random random{11};
    for (int &x : input) x = random(1000);
    int *in, *out;
    CHECK(cudaMalloc(&in, sizeof input));
    CHECK(cudaMalloc(&out, sizeof result));
    CHECK(cudaMemcpy(in, input, sizeof input, cudaMemcpyHostToDevice));
    smooth<<<blocks, threads>>>(in, out);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int at = 0; at < n; at++) {
        int start = at - at % threads, thread = at % threads;
        int sum = input[at] + input[start + (thread + 1) % threads] +
                  input[start + (thread + threads - 1) % threads];
        right &= result[at] == sum;
    }
    return verdict(right);
}
