// Sums an array: every block publishes a partial sum, the last one to do so adds them up and resets
// the counter for the next launch.
// Racy: the block that adds up has not acquired what the others released.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

__device__ unsigned finished;

__global__ void sum(int n, const int *data, int *partial, int *total) {
    __shared__ int sums[64];
    __shared__ bool last;
    const int t = threadIdx.x;
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) mine += data[i];
    sums[t] = mine;
    __syncthreads();
    if (t == 0) {
        int all = 0;
        for (int i = 0; i < 64; i++) all += sums[i];
        partial[blockIdx.x] = all;  //~ race A
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        last = atomicInc(&finished, gridDim.x) == gridDim.x - 1;
#ifndef RACY
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
    }
    __syncthreads();
    if (last && t == 0) {
        int all = 0;
        for (int i = 0; i < gridDim.x; i++) {
            all += partial[i];  //~ race A
        }
        *total = all;
        finished = 0;
    }
}

int main() {
    const int n = 5000, blocks = 12;
    static int data[n];
    int expected = 0, total = 0;
    Random random = {9};
    for (int i = 0; i < n; i++) expected += data[i] = random(50);
    int *device_data, *device_partial, *device_total;
    CHECK(cudaMalloc(&device_data, sizeof data));
    CHECK(cudaMalloc(&device_partial, blocks * sizeof(int)));
    CHECK(cudaMalloc(&device_total, sizeof total));
    CHECK(cudaMemcpy(device_data, data, sizeof data, cudaMemcpyHostToDevice));
    bool right = true;
    for (int launch = 0; launch < 2; launch++) {
        sum<<<blocks, 64>>>(n, device_data, device_partial, device_total);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(&total, device_total, sizeof total, cudaMemcpyDeviceToHost));
        right &= total == expected;
    }
    return verdict(right);
}
