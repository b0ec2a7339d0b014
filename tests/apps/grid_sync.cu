// A cooperative launch: every block fills its part, all wait for the whole grid, then read another's part.
// Racy: without the wait.
// The barrier of the grid is recognised, so that the device alone can decide.
//@[clean] expect: no-race
//@[racy] expect: race
#include <cooperative_groups.h>
#include "app.h"

__global__ void rotate(int *data, int *out) {
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = 5 * i;  //~ race A
#ifndef RACY
    cooperative_groups::this_grid().sync();
#endif
    out[i] = data[(i + blockDim.x) % n];  //~ race A
}

int main() {
    const int blocks = 6, threads = 64, n = blocks * threads;
    int out[n], *device_data, *device_out, cooperative;
    CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
    if (!cooperative) return 2;
    CHECK(cudaMalloc(&device_data, sizeof out));
    CHECK(cudaMalloc(&device_out, sizeof out));
    void *parameters[] = {&device_data, &device_out};
    CHECK(cudaLaunchCooperativeKernel((void *)rotate, dim3(blocks), dim3(threads), parameters, 0, 0));
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right = right && out[i] == 5 * ((i + threads) % n);
    return verdict(right);
}
