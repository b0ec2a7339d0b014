// Launches that ask for more than a device has, and whose errors the program ignores.
//@ variants: clean
//@ expect: no-race
//@ says: with grid (1,1,1), block (2048,1,1) and 0 bytes of dynamic shared memory
//@ says: with grid (0,1,1), block (64,1,1) and 0 bytes of dynamic shared memory
//@ says: 2 launches refused
#include "app.h"

__global__ void fill(int *data, int value) {
    data[threadIdx.x] = value;
}

int main() {
    int *data;
    int host[64];
    CHECK(cudaMalloc(&data, sizeof host));
    fill<<<1, 64>>>(data, 7);
    fill<<<1, 2048>>>(data, 8);
    bool large = cudaGetLastError() == cudaErrorInvalidConfiguration;
    fill<<<0, 64>>>(data, 9);
    bool none = cudaGetLastError() == cudaErrorInvalidConfiguration;
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    bool right = large && none;
    for (int value : host) right = right && value == 7;
    return verdict(right);
}
