// Blocks that stay: they relax a ring of cells, and meet at a barrier of their own between the steps.
// Racy: who leaves the barrier has no fence behind the flag.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#include <vector>

const int threads = 64, blocks = 4, n = threads * blocks, steps = 5;

__device__ void meet(int *arrived, volatile int *phase, int step) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(arrived, 1) == blocks - 1) {
            *arrived = 0;
            __threadfence();
            *phase = step + 1;
        } else {
            while (*phase <= step) {
            }
        }
#ifndef RACY
        __threadfence();
#endif
    }
    __syncthreads();
}

__global__ void relax(int *cells, int *arrived, int *phase) {
    int at = blockIdx.x * threads + threadIdx.x;
    for (int step = 0; step < steps; step++) {
        const int *from = cells + step % 2 * n;
        int *to = cells + (step + 1) % 2 * n;
        to[at] = from[at] + from[(at + 1) % n] % 7 + from[(at + n - 1) % n] % 5;  //~ race A A
        meet(arrived, phase, step);
    }
}

int main() {
    std::vector<int> now(n), next(n);
    for (int at = 0; at < n; at++) now[at] = at * 37 % 101;
    int *cells, *arrived, *phase, result[n];
    CHECK(cudaMalloc(&cells, 2 * sizeof result));
    CHECK(cudaMalloc(&arrived, sizeof(int)));
    CHECK(cudaMalloc(&phase, sizeof(int)));
    CHECK(cudaMemcpy(cells, now.data(), sizeof result, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(arrived, 0, sizeof(int)));
    CHECK(cudaMemset(phase, 0, sizeof(int)));
    relax<<<blocks, threads>>>(cells, arrived, phase);
    CHECK(cudaMemcpy(result, cells + steps % 2 * n, sizeof result, cudaMemcpyDeviceToHost));
    for (int step = 0; step < steps; step++) {
        for (int at = 0; at < n; at++)
            next[at] = now[at] + now[(at + 1) % n] % 7 + now[(at + n - 1) % n] % 5;
        now.swap(next);
    }
    bool right = true;
    for (int at = 0; at < n; at++) right &= result[at] == now[at];
    return verdict(right);
}
