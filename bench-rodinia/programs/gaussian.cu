// Gaussian elimination without pivoting: for each column one kernel makes the multipliers, and another takes the
// multiple of the pivot's row from every row below. The host substitutes back.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"

const int tile = 16;

__global__ void multipliers(int n, int pivot, const float *a, float *m) {
    int row = pivot + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) m[row] = a[size_t(row) * n + pivot] / a[size_t(pivot) * n + pivot];
}

__global__ void eliminate(int n, int pivot, float *a, float *b, const float *m) {
    int column = pivot + blockIdx.x * tile + threadIdx.x;
    int row = pivot + 1 + blockIdx.y * tile + threadIdx.y;
    if (row >= n || column >= n) return;
    a[size_t(row) * n + column] -= m[row] * a[size_t(pivot) * n + column];
    if (column == pivot) b[row] -= m[row] * b[pivot];
}

int main(int argc, char **argv) {
    const int n = pick(argc, argv, 48, 2048, 8192);
    Random random = {3};
    std::vector<float> a(size_t(n) * n), b(n);
    for (int i = 0; i < n; i++) {
        float sum = 0.0f;
        for (int j = 0; j < n; j++) sum += a[size_t(i) * n + j] = random.unit();
        // A dominant diagonal needs no pivoting.
        a[size_t(i) * n + i] += sum;
        b[i] = random.unit();
    }
    Buffer<float> device_a(a), device_b(b), m(n);
    for (int pivot = 0; pivot + 1 < n; pivot++) {
        int rows = n - pivot - 1;
        multipliers<<<blocks(rows, 256), 256>>>(n, pivot, device_a, m);
        dim3 grid(blocks(n - pivot, tile), blocks(rows, tile));
        eliminate<<<grid, dim3(tile, tile)>>>(n, pivot, device_a, device_b, m);
    }
    CHECK(cudaGetLastError());
    std::vector<float> upper = device_a.download(), x = device_b.download();
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) x[i] -= upper[size_t(i) * n + j] * x[j];
        x[i] /= upper[size_t(i) * n + i];
    }
    // The solution is right if it solves the system.
    bool right = true;
    for (int i = 0; i < n; i++) {
        double sum = 0.0;
        for (int j = 0; j < n; j++) sum += double(a[size_t(i) * n + j]) * x[j];
        right = right && close(sum, b[i]);
    }
    return verdict(right);
}
