// Sums tiles in shared memory.
// Racy: the barrier between the steps of the tree is missing.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: shared memory
#include "app.h"

__global__ void sums(const int *data, int *out) {
    __shared__ int partial[128];
    const int t = threadIdx.x;
    partial[t] = data[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) {
            int other = partial[t + half];  //~ race A
            partial[t] += other;            //~ race A
        }
#ifndef RACY
        __syncthreads();
#endif
    }
    if (t == 0) out[blockIdx.x] = partial[0];
}

int main() {
    const int blocks = 8, threads = 128;
    static int data[blocks * threads];
    int expected[blocks] = {}, sum[blocks];
    Random random = {5};
    for (int i = 0; i < blocks * threads; i++) expected[i / threads] += data[i] = random(100);
    int *device_data, *device_sum;
    CHECK(cudaMalloc(&device_data, sizeof data));
    CHECK(cudaMalloc(&device_sum, sizeof sum));
    CHECK(cudaMemcpy(device_data, data, sizeof data, cudaMemcpyHostToDevice));
    sums<<<blocks, threads>>>(device_data, device_sum);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(sum, device_sum, sizeof sum, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < blocks; i++) right &= sum[i] == expected[i];
#ifdef RACY
    right = true;  // By chance, or not.
#endif
    return verdict(right);
}
