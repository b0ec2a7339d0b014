// Kernels of the same name in two translation units, each with its own module and its own static variable.
// The race is in the other file.
//@[clean] expect: no-race
//@[racy] expect: race
//@ with: two_files_other.inc.cu
#include "app.h"

int fill_other(int *data, int n);

static __device__ int filled;

static __global__ void fill(int *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] = 2 * i;
        atomicAdd(&filled, 1);
    }
}

int main() {
    const int n = 500;
    int data[n], count;
    int *device_data;
    CHECK(cudaMalloc(&device_data, sizeof data));
    fill<<<4, 128>>>(device_data, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyFromSymbol(&count, filled, sizeof count));
    CHECK(cudaMemcpy(data, device_data, sizeof data, cudaMemcpyDeviceToHost));
    bool right = count == n;
    for (int i = 0; i < n; i++) right = right && data[i] == 2 * i;
    right = fill_other(device_data, n) == n / 2 && right;
    CHECK(cudaMemcpy(data, device_data, sizeof data, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right = right && data[i] == (i % 2 ? 2 * i : 3 * i);
    return verdict(right);
}
