// libcu++: blocks hand a row of numbers on, one after the other, by a flag that cuda::atomic_ref sets.
// Racy: the flag is set and seen without order, so the numbers may not be there yet.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#include <cuda/atomic>

const int blocks = 6, threads = 64;
#ifdef RACY
const auto set = cuda::memory_order_relaxed, seen = cuda::memory_order_relaxed;
#else
const auto set = cuda::memory_order_release, seen = cuda::memory_order_acquire;
#endif

__global__ void hand_on(int *rows, int *turn) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(*turn);
    int block = blockIdx.x, thread = threadIdx.x;
    if (thread == 0) {
        while (flag.load(seen) != block) {
        }
    }
    __syncthreads();
    int before = block == 0 ? thread : rows[(block - 1) * threads + thread];  //~ race A
    rows[block * threads + thread] = 2 * before + 1;                          //~ race A
    __syncthreads();
    if (thread == 0) flag.store(block + 1, set);
}

int main() {
    int *rows, *turn, result[blocks * threads];
    CHECK(cudaMalloc(&rows, sizeof result));
    CHECK(cudaMalloc(&turn, sizeof(int)));
    CHECK(cudaMemset(turn, 0, sizeof(int)));
    hand_on<<<blocks, threads>>>(rows, turn);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(result, rows, sizeof result, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int thread = 0; thread < threads; thread++) {
        int value = thread;
        for (int block = 0; block < blocks; block++) {
            value = 2 * value + 1;
            right &= result[block * threads + thread] == value;
        }
    }
    return verdict(right);
}
