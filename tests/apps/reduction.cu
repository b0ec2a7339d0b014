// Sums an array: a tree in shared memory per block, then one addition per block to the total.
// Racy: that addition is not atomic.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

__global__ void reduce(int n, const int *data, int *total) {
    __shared__ int partial[256];
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        sum += data[i];
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
#ifdef RACY
        *total += partial[0];  //~ race A A
#else
        atomicAdd(total, partial[0]);
#endif
    }
}

int main() {
    const int n = 20000;
    static int data[n];
    int expected = 0, total;
    Random random = {1};
    for (int i = 0; i < n; i++) expected += data[i] = random(1000);
    int *device_data, *device_total;
    CHECK(cudaMalloc(&device_data, sizeof data));
    CHECK(cudaMalloc(&device_total, sizeof total));
    CHECK(cudaMemcpy(device_data, data, sizeof data, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_total, 0, sizeof total));
    reduce<<<16, 256>>>(n, device_data, device_total);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&total, device_total, sizeof total, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device_data));
    CHECK(cudaFree(device_total));
    return verdict(total == expected);
}
