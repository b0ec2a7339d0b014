// Sparse linear algebra: the conjugate gradient method on a Poisson matrix in compressed rows, a warp per row for
// the product, dot products by shuffles and one atomic per block.
// Racy: the blocks add to the dot product without an atomic.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"
#include <cmath>
#include <vector>

const int side = 12, rows = side * side;

// y = A x, a warp per row.
__global__ void product(const int *start, const int *column, const double *value, const double *x, double *y) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    double sum = 0;
    for (int at = start[row] + lane; at < start[row + 1]; at += 32) sum += value[at] * x[column[at]];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0) y[row] = sum;
}

__global__ void dot(const double *x, const double *y, double *result) {
    __shared__ double parts[4];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = i < rows ? x[i] * y[i] : 0;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        double all = parts[0] + parts[1] + parts[2] + parts[3];
#ifdef RACY
        *result += all;  //~ race A A
#else
        atomicAdd(result, all);
#endif
    }
}

// y = y + sign * (top / bottom) * x
__global__ void step(const double *top, const double *bottom, double sign, const double *x, double *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) y[i] += sign * *top / *bottom * x[i];
}

// p = r + (top / bottom) * p
__global__ void turn(const double *top, const double *bottom, const double *r, double *p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) p[i] = r[i] + *top / *bottom * p[i];
}

template <typename T>
T *device(const std::vector<T> &host) {
    T *copy;
    CHECK(cudaMalloc(&copy, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(copy, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return copy;
}

int main() {
    std::vector<int> start = {0}, column;
    std::vector<double> value, right_side(rows), zero(rows, 0);
    for (int row = 0; row < rows; row++) {
        int i = row / side, j = row % side;
        auto add = [&](bool there, int at, double x) {
            if (there) column.push_back(at), value.push_back(x);
        };
        add(i > 0, row - side, -1);
        add(j > 0, row - 1, -1);
        add(true, row, 4);
        add(j < side - 1, row + 1, -1);
        add(i < side - 1, row + side, -1);
        start.push_back(column.size());
        right_side[row] = 1 + row % 5;
    }
    int *device_start = device(start), *device_column = device(column);
    double *device_value = device(value), *x = device(zero), *r = device(right_side), *p = device(right_side),
           *ap = device(zero), *sums = device(std::vector<double>(3, 0));
    double *old_rr = sums, *new_rr = sums + 1, *pap = sums + 2;
    const int threads = 128, blocks = (rows + threads - 1) / threads;
    dot<<<blocks, threads>>>(r, r, old_rr);
    for (int round = 0; round < 24; round++) {
        product<<<(rows * 32 + threads - 1) / threads, threads>>>(device_start, device_column, device_value, p, ap);
        CHECK(cudaMemset(pap, 0, sizeof(double)));
        dot<<<blocks, threads>>>(p, ap, pap);
        step<<<blocks, threads>>>(old_rr, pap, 1, p, x);
        step<<<blocks, threads>>>(old_rr, pap, -1, ap, r);
        CHECK(cudaMemset(new_rr, 0, sizeof(double)));
        dot<<<blocks, threads>>>(r, r, new_rr);
        turn<<<blocks, threads>>>(new_rr, old_rr, r, p);
        CHECK(cudaGetLastError());
        std::swap(old_rr, new_rr);
    }
    std::vector<double> solution(rows);
    CHECK(cudaMemcpy(solution.data(), x, rows * sizeof(double), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int at = start[row]; at < start[row + 1]; at++) sum += value[at] * solution[column[at]];
        worst = std::fmax(worst, std::fabs(sum - right_side[row]));
    }
    return verdict(worst < 1e-3);
}
