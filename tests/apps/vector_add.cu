// Adds one vector to another.
// Racy: blocks are laid out one thread too close, so neighbouring blocks share an element.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#ifdef RACY
#define BLOCK_STRIDE (blockDim.x - 1)
#else
#define BLOCK_STRIDE blockDim.x
#endif

__global__ void vector_add(int n, const int *x, int *y) {
    int i = blockIdx.x * BLOCK_STRIDE + threadIdx.x;
    if (i < n) {
        y[i] += x[i];  //~ race A A
    }
}

int main() {
    const int n = 10000;
    static int x[n], y[n];
    for (int i = 0; i < n; i++) {
        x[i] = i;
        y[i] = 3 * i;
    }
    int *device_x, *device_y;
    CHECK(cudaMalloc(&device_x, sizeof x));
    CHECK(cudaMalloc(&device_y, sizeof y));
    CHECK(cudaMemcpy(device_x, x, sizeof x, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_y, y, sizeof y, cudaMemcpyHostToDevice));
    vector_add<<<(n + 255) / 256, 256>>>(n, device_x, device_y);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right = right && y[i] == 4 * i;
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_y));
    return verdict(right);
}
