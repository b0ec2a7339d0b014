// A prefix sum in one pass. Each block publishes its own sum, and then that of all blocks up to it; a block looks back
// until it finds a sum of the second kind.
// Racy: the fence before the first flag is missing. When blocks run in turns, each one finds the second flag.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] not-as-on-gpu: it runs under one schedule, and blocks that run in turns do not see the first flag
#include "app.h"

const int threads = 64, blocks = 24, n = threads * blocks;
enum { nothing, own_sum, all_sums };

__global__ void scan(const int *in, int *out, int *own, int *all, volatile int *state, int *ticket) {
    __shared__ int part[threads], block, before;
    int thread = threadIdx.x;
    if (thread == 0) block = atomicAdd(ticket, 1);
    __syncthreads();
    int at = block * threads + thread;
    part[thread] = in[at];
    __syncthreads();
    for (int step = 1; step < threads; step *= 2) {
        int add = thread >= step ? part[thread - step] : 0;
        __syncthreads();
        part[thread] += add;
        __syncthreads();
    }
    if (thread == 0) {
        int sum = part[threads - 1], earlier = 0;
        own[block] = sum; //~ race A
#ifndef RACY
        __threadfence();
#endif
        state[block] = own_sum;
        for (int other = block - 1; other >= 0; other--) {
            int now;
            while ((now = state[other]) == nothing) {
            }
            __threadfence();
            earlier += now == all_sums ? all[other] : own[other]; //~ race A
            if (now == all_sums) break;
        }
        all[block] = earlier + sum;
        __threadfence();
        state[block] = all_sums;
        before = earlier;
    }
    __syncthreads();
    out[at] = before + part[thread];
}

int main() {
    int input[n], result[n], *in, *out, *own, *all, *state;
    Random random{23};
    for (int &x : input) x = random(100);
    CHECK(cudaMalloc(&in, sizeof input));
    CHECK(cudaMalloc(&out, sizeof input));
    CHECK(cudaMalloc(&own, blocks * sizeof(int)));
    CHECK(cudaMalloc(&all, blocks * sizeof(int)));
    CHECK(cudaMalloc(&state, (blocks + 1) * sizeof(int)));
    CHECK(cudaMemcpy(in, input, sizeof input, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(state, 0, (blocks + 1) * sizeof(int)));
    scan<<<blocks, threads>>>(in, out, own, all, state, state + blocks);
    CHECK(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
    bool right = true;
    int sum = 0;
    for (int at = 0; at < n; at++) {
        sum += input[at];
        right &= result[at] == sum;
    }
    return verdict(right);
}
