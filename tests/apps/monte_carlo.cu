// Monte Carlo: a counter-based generator per thread, sums by shuffles, one atomic per warp.
// Racy: threads of a block share a generator's state.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

const int threads = 128, blocks = 6, rounds = 40;

// A number from a key and a counter.
__host__ __device__ unsigned mix(unsigned key, unsigned counter) {
    unsigned x = key * 0x9e3779b9u + counter * 0x85ebca6bu;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

__host__ __device__ bool inside(unsigned key, unsigned counter) {
    float x = mix(key, counter) * 0x1p-32f, y = mix(key + 1, counter) * 0x1p-32f;
    return x * x + y * y < 1;
}

__global__ void throw_darts(int *hits, unsigned *counters) {
    unsigned thread = blockIdx.x * threads + threadIdx.x;
    int found = 0;
    for (int round = 0; round < rounds; round++) {
#ifdef RACY
        unsigned counter = counters[blockIdx.x]++;  //~ race A A, same-value B B
#else
        unsigned counter = round;
#endif
        found += inside(2 * thread, counter);
    }
    for (int step = 16; step > 0; step /= 2) found += __shfl_down_sync(~0u, found, step);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, found);
}

int main() {
    int *hits, result, expected = 0;
    unsigned *counters;
    CHECK(cudaMalloc(&hits, sizeof(int)));
    CHECK(cudaMalloc(&counters, blocks * sizeof(unsigned)));
    CHECK(cudaMemset(hits, 0, sizeof(int)));
    CHECK(cudaMemset(counters, 0, blocks * sizeof(unsigned)));
    throw_darts<<<blocks, threads>>>(hits, counters);
    CHECK(cudaMemcpy(&result, hits, sizeof(int), cudaMemcpyDeviceToHost));
    for (unsigned thread = 0; thread < threads * blocks; thread++)
        for (int round = 0; round < rounds; round++) expected += inside(2 * thread, round);
    return verdict(result == expected);
}
