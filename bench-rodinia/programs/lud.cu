// LU decomposition in tiles: one block factors the tile on the diagonal, one block per tile to the right and below
// solves for the tiles beside it, and one block per remaining tile subtracts a product of tiles.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"

const int tile = 16;

typedef float Tile[tile][tile + 1];

__global__ void diagonal(int n, int first, float *a) {
    __shared__ Tile block;
    int row = threadIdx.y, column = threadIdx.x;
    float *here = &a[size_t(first + row) * n + first + column];
    block[row][column] = *here;
    __syncthreads();
    for (int k = 0; k < tile - 1; k++) {
        if (row > k && column == k) block[row][k] /= block[k][k];
        __syncthreads();
        if (row > k && column > k) block[row][column] -= block[row][k] * block[k][column];
        __syncthreads();
    }
    *here = block[row][column];
}

// Block 2 i makes tile i + 1 of the row of tiles, block 2 i + 1 that of the column; a thread makes one column, or
// one row, of it.
__global__ void perimeter(int n, int first, float *a) {
    __shared__ Tile corner, block;
    bool is_row = blockIdx.x % 2 == 0;
    int away = first + (blockIdx.x / 2 + 1) * tile, me = threadIdx.x;
    int top = is_row ? first : away, left = is_row ? away : first;
    for (int i = 0; i < tile; i++) {
        corner[i][me] = a[size_t(first + i) * n + first + me];
        block[i][me] = a[size_t(top + i) * n + left + me];
    }
    __syncthreads();
    for (int i = 0; i < tile; i++) {
        for (int k = 0; k < i; k++) {
            if (is_row) block[i][me] -= corner[i][k] * block[k][me];
            else block[me][i] -= block[me][k] * corner[k][i];
        }
        if (!is_row) block[me][i] /= corner[i][i];
    }
    __syncthreads();
    for (int i = 0; i < tile; i++) a[size_t(top + i) * n + left + me] = block[i][me];
}

__global__ void internal(int n, int first, float *a) {
    __shared__ Tile left, upper;
    int x = threadIdx.x, y = threadIdx.y;
    int row = first + (blockIdx.y + 1) * tile + y, column = first + (blockIdx.x + 1) * tile + x;
    left[y][x] = a[size_t(row) * n + first + x];
    upper[y][x] = a[size_t(first + y) * n + column];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < tile; k++) sum += left[y][k] * upper[k][x];
    a[size_t(row) * n + column] -= sum;
}

int main(int argc, char **argv) {
    const int n = pick(argc, argv, 80, 2048, 16384);
    Random random = {23};
    std::vector<float> a(size_t(n) * n);
    for (int i = 0; i < n; i++) {
        float sum = 0.0f;
        for (int j = 0; j < n; j++) sum += a[size_t(i) * n + j] = random.unit();
        // A dominant diagonal needs no pivoting.
        a[size_t(i) * n + i] += sum;
    }
    Buffer<float> device(a);
    for (int first = 0; first < n; first += tile) {
        diagonal<<<1, dim3(tile, tile)>>>(n, first, device);
        int rest = (n - first) / tile - 1;
        if (rest == 0) break;
        perimeter<<<2 * rest, tile>>>(n, first, device);
        internal<<<dim3(rest, rest), dim3(tile, tile)>>>(n, first, device);
    }
    CHECK(cudaGetLastError());
    std::vector<float> lu = device.download();
    // The factors are right if L (U x) = A x for some x with nothing special about it.
    std::vector<double> x(n), ux(n);
    for (double &value : x) value = random.unit();
    bool right = true;
    for (int i = 0; i < n; i++) {
        for (int j = i; j < n; j++) ux[i] += double(lu[size_t(i) * n + j]) * x[j];
    }
    for (int i = 0; i < n; i++) {
        double product = ux[i], expected = 0.0;
        for (int j = 0; j < i; j++) product += double(lu[size_t(i) * n + j]) * ux[j];
        for (int j = 0; j < n; j++) expected += double(a[size_t(i) * n + j]) * x[j];
        right = right && close(product, expected);
    }
    return verdict(right);
}
