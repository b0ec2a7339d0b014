// libcu++: one half of a block makes numbers, the other half uses them, and cuda::barrier says when.
// Racy: a buffer is given back before it has been used.
//@[clean] expect: no-race
//@[racy] expect: race
//@ nvcc: -std=c++17
#include "app.h"

#include <cuda/barrier>

const int group = 64, rounds = 6, stages = 2;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void stages_of(int *sums) {
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ Barrier full[stages], empty[stages];
    __shared__ int buffer[stages][group];
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < stages; stage++) {
            init(&full[stage], 2 * group);
            init(&empty[stage], 2 * group);
        }
    }
    __syncthreads();
    int lane = threadIdx.x % group;
    bool makes = threadIdx.x < group;
    if (!makes) {
        for (int stage = 0; stage < stages; stage++) (void)empty[stage].arrive();
    }
    int sum = 0;
    for (int round = 0; round < rounds; round++) {
        int stage = round % stages;
        if (makes) {
            empty[stage].arrive_and_wait();
            buffer[stage][lane] = round * group + lane;  //~ race A
            (void)full[stage].arrive();
        } else {
            full[stage].arrive_and_wait();
#ifdef RACY
            (void)empty[stage].arrive();
#endif
            sum += buffer[stage][group - 1 - lane];      //~ race A
#ifndef RACY
            (void)empty[stage].arrive();
#endif
        }
    }
    if (!makes) sums[blockIdx.x * group + lane] = sum;
}

int main() {
    const int blocks = 3;
    int *sums, result[blocks * group];
    CHECK(cudaMalloc(&sums, sizeof result));
    stages_of<<<blocks, 2 * group>>>(sums);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(result, sums, sizeof result, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int at = 0; at < blocks * group; at++) {
        int sum = 0;
        for (int round = 0; round < rounds; round++) sum += round * group + group - 1 - at % group;
        right &= result[at] == sum;
    }
    return verdict(right);
}
