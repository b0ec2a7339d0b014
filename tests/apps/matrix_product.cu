// C = A * B with tiles in shared memory; the size may be given as an argument (a multiple of 16).
// Racy: the product is written over A while other blocks still read it.
//@[clean] expect: no-race
//@[racy] expect: race
//@ bench-args: 64
//@ bench-args: 128
//@ bench-args: 256
#include "app.h"

const int tile = 16;

__global__ void multiply(int n, const float *a, const float *b, float *c) {
    __shared__ float tile_a[tile][tile], tile_b[tile][tile];
    int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < n; first += tile) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * n + first + threadIdx.x];  //~ race A
        tile_b[threadIdx.y][threadIdx.x] = b[(first + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < tile; k++) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;  //~ race A
}

int main(int argc, char **argv) {
    int n = argc > 1 ? std::atoi(argv[1]) : 64;
    if (n <= 0 || n % tile != 0) {
        std::printf("the size must be a positive multiple of %d\n", tile);
        return 2;
    }
    size_t bytes = sizeof(float) * n * n;
    float *a = (float *)std::malloc(bytes), *b = (float *)std::malloc(bytes), *c = (float *)std::malloc(bytes);
    Random random = {2};
    for (int i = 0; i < n * n; i++) {
        a[i] = random(8);
        b[i] = random(8);
    }
    float *device_a, *device_b, *device_c;
    CHECK(cudaMalloc(&device_a, bytes));
    CHECK(cudaMalloc(&device_b, bytes));
#ifdef RACY
    device_c = device_a;
#else
    CHECK(cudaMalloc(&device_c, bytes));
#endif
    CHECK(cudaMemcpy(device_a, a, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b, bytes, cudaMemcpyHostToDevice));
    multiply<<<dim3(n / tile, n / tile), dim3(tile, tile)>>>(n, device_a, device_b, device_c);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(c, device_c, bytes, cudaMemcpyDeviceToHost));
    // All products and sums are small integers, so they are exact in any order.
    bool right = true;
    for (int row = 0; row < n; row += 1 + n / 64) {
        for (int column = 0; column < n; column += 1 + n / 64) {
            float sum = 0.0f;
            for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
            right = right && c[row * n + column] == sum;
        }
    }
    CHECK(cudaDeviceReset());
    std::free(a);
    std::free(b);
    std::free(c);
    return verdict(right);
}
