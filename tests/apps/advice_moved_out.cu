// A loop that reads and writes shared memory in one statement, without a barrier. The compiler then takes reads and writes
// out of the loop; the next iteration needs a barrier all the same. What the report advises, the clean variant does.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: put `__syncthreads()` after the statement at advice_moved_out.cu:26, and inside the statement at advice_moved_out.cu:26: read into a variable first, and write after the barrier
//@[racy] says: SUMMARY: cudarun-check: 1 race (1 error)
#include "app.h"

const int kThreads = 128;

__global__ void spread(int *data, int steps)
{
    __shared__ int s[2][kThreads + 2];
    int t = threadIdx.x + 1;
    s[0][t] = data[t - 1];
    if (t == 1) s[0][0] = s[1][0] = s[0][kThreads + 1] = s[1][kThreads + 1] = 0;
    __syncthreads();
    for (int k = 0; k < steps; k++) {
#ifndef RACY
        int sum = s[k & 1][t - 1] + s[k & 1][t + 1];
        __syncthreads();
        s[(k + 1) & 1][t] = sum;
        __syncthreads();
#else
        s[(k + 1) & 1][t] = s[k & 1][t - 1] + s[k & 1][t + 1];
#endif
    }
    data[t - 1] = s[steps & 1][t];
}

int main()
{
    const int steps = 4;
    int *data, now[kThreads + 2] = {}, next[kThreads + 2] = {};
    CHECK(cudaMallocManaged(&data, kThreads * sizeof *data));
    for (int t = 0; t < kThreads; t++) data[t] = now[t + 1] = t * t;
    spread<<<1, kThreads>>>(data, steps);
    CHECK(cudaDeviceSynchronize());
    for (int k = 0; k < steps; k++) {
        for (int t = 1; t <= kThreads; t++) next[t] = now[t - 1] + now[t + 1];
        for (int t = 1; t <= kThreads; t++) now[t] = next[t];
    }
    bool right = true;
    for (int t = 0; t < kThreads; t++) right = right && data[t] == now[t + 1];
    return verdict(right);
}
