// A tiled matrix product without the barrier behind the use of a tile. A row of the first tile is shared by
// lanes of one warp, a column of the second by all warps: one barrier of the block repairs both races.
//
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: help: put `__syncthreads()` after the end of the loop at advice_tile_barrier.cu:22
//@[racy] says: = same cause:
#include "app.h"

const int kSize = 32, kTile = 8;

__global__ void product(const int *a, const int *b, int *c)
{
    __shared__ int left[kTile][kTile], right[kTile][kTile];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
    int sum = 0;
    for (int tile = 0; tile < kSize / kTile; tile++) {
        left[y][x] = a[row * kSize + tile * kTile + x];       //~ race A
        right[y][x] = b[(tile * kTile + y) * kSize + column];  //~ race B
        __syncthreads();
        for (int k = 0; k < kTile; k++)
            sum += left[y][k] * right[k][x];  //~ race A, race B
#ifndef RACY
        __syncthreads();
#endif
    }
    c[row * kSize + column] = sum;
}

int main()
{
    static int a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];
    for (int i = 0; i < kSize * kSize; i++) a[i] = i % 7, b[i] = i % 5;
    int *da, *db, *dc;
    CHECK(cudaMalloc(&da, sizeof a));
    CHECK(cudaMalloc(&db, sizeof b));
    CHECK(cudaMalloc(&dc, sizeof c));
    CHECK(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice));
    product<<<dim3(kSize / kTile, kSize / kTile), dim3(kTile, kTile)>>>(da, db, dc);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kSize; i++)
        for (int j = 0; j < kSize; j++) {
            int sum = 0;
            for (int k = 0; k < kSize; k++) sum += a[i * kSize + k] * b[k * kSize + j];
            right &= sum == c[i * kSize + j];
        }
    return verdict(right);
}
