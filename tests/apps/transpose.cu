// Transposes a matrix through tiles in shared memory.
// Racy: in place, so a block overwrites a tile that another block has yet to read.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

const int tile = 16;

__global__ void transpose(int n, const int *in, int *out) {
    __shared__ int buffer[tile][tile + 1];
    int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
    buffer[threadIdx.y][threadIdx.x] = in[y * n + x];  //~ race A
    __syncthreads();
    x = blockIdx.y * tile + threadIdx.x;
    y = blockIdx.x * tile + threadIdx.y;
    out[y * n + x] = buffer[threadIdx.x][threadIdx.y];  //~ race A
}

int main() {
    const int n = 96;
    static int in[n * n], out[n * n];
    for (int i = 0; i < n * n; i++) in[i] = i;
    int *device_in, *device_out;
    CHECK(cudaMalloc(&device_in, sizeof in));
#ifdef RACY
    device_out = device_in;
#else
    CHECK(cudaMalloc(&device_out, sizeof out));
#endif
    CHECK(cudaMemcpy(device_in, in, sizeof in, cudaMemcpyHostToDevice));
    transpose<<<dim3(n / tile, n / tile), dim3(tile, tile)>>>(n, device_in, device_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int y = 0; y < n; y++) {
        for (int x = 0; x < n; x++) right = right && out[x * n + y] == in[y * n + x];
    }
    return verdict(right);
}
