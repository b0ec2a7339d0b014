// Multiplies 32 by 32 matrices of halves by wmma, from tiles in shared memory.
// Racy: a warp may read a tile that other warps are still filling.
//@[clean] expect: no-race
//@[racy] expect: race
#include <mma.h>

#include "app.h"

using namespace nvcuda;

const int n = 32, tile = 16;

__global__ void product(const half *a, const half *b, float *c) {
    __shared__ half left[n * tile], right[tile * n];
    __shared__ float result[n * n];
    int warp = threadIdx.x / 32;
    int row = warp / 2 * tile, column = warp % 2 * tile;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 1.0f);
    for (int k = 0; k < n; k += tile) {
        for (int i = threadIdx.x; i < n * tile; i += blockDim.x) {
            left[i] = a[i / tile * n + k + i % tile];  //~ race A
            right[i] = b[(k + i / n) * n + i % n];     //~ race B
        }
#ifndef RACY
        __syncthreads();
#endif
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
        wmma::load_matrix_sync(x, left + row * tile, tile);  //~ race A
        wmma::load_matrix_sync(y, right + column, n);        //~ race B
        for (int i = 0; i < x.num_elements; i++) x.x[i] = __hmul(x.x[i], __float2half(2.0f));
        wmma::mma_sync(sum, x, y, sum);
        __syncthreads();
    }
    wmma::store_matrix_sync(result + row * n + column, sum, n, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) c[i] = result[i];
}

int main() {
    static half a[n * n], b[n * n];
    static float c[n * n];
    for (int i = 0; i < n * n; i++) {
        a[i] = __float2half(float(i % 7 - 3));
        b[i] = __float2half(float(i % 5 - 2));
    }
    half *device_a, *device_b;
    float *device_c;
    CHECK(cudaMalloc(&device_a, sizeof a));
    CHECK(cudaMalloc(&device_b, sizeof b));
    CHECK(cudaMalloc(&device_c, sizeof c));
    CHECK(cudaMemcpy(device_a, a, sizeof a, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b, sizeof b, cudaMemcpyHostToDevice));
    product<<<1, 128>>>(device_a, device_b, device_c);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int y = 0; y < n; y++) {
        for (int x = 0; x < n; x++) {
            float sum = 1;
            for (int k = 0; k < n; k++) sum += 2 * __half2float(a[y * n + k]) * __half2float(b[k * n + x]);
            right = right && c[y * n + x] == sum;
        }
    }
    return verdict(right);
}
