// The lanes of each warp hand values to each other through global memory.
// Racy: without __syncwarp; that lanes run together is an accident, not an order.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#ifdef RACY
#define SYNC()
#else
#define SYNC() __syncwarp()
#endif

__global__ void reverse(int *data, int *out) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32, lane = threadIdx.x % 32;
    data[warp + lane] = 100 * warp + lane;  //~ race A
    SYNC();
    out[warp + lane] = data[warp + 31 - lane];  //~ race A
}

int main() {
    const int blocks = 3, threads = 128, n = blocks * threads;
    int out[n], *device_data, *device_out;
    CHECK(cudaMalloc(&device_data, sizeof out));
    CHECK(cudaMalloc(&device_out, sizeof out));
    reverse<<<blocks, threads>>>(device_data, device_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right = right && out[i] == 100 * (i / 32 * 32) + 31 - i % 32;
    return verdict(right);
}
