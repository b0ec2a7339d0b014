// A block prepares data, and one of its threads launches a kernel that works on it; the sum is taken by a kernel that is
// launched behind the grid. Racy: the launch is not behind the barrier, so the kernel reads what others still write.
//@[clean] expect: no-race
//@[racy] expect: race
//@ unseen-in-fast: order between kernels and the work that they launch not checked
//@[racy] says: help: make the access of the launching kernel before the launch, with `__syncthreads()` in between
//@[racy] says: launched by prepare(int*, int*, int*, int) at
//@ nvcc: -rdc=true
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
#include "app.h"

__global__ void square(const int *data, int *squares, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) squares[i] = data[i] * data[i];  //~ race A
}

__global__ void add(const int *squares, int *sum, int n) {
    int total = 0;
    for (int i = 0; i < n; i++) total += squares[i];
    *sum = total;
}

__global__ void prepare(int *data, int *squares, int *sum, int n) {
    data[threadIdx.x] = threadIdx.x + 1;  //~ race A
#ifndef RACY
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
        square<<<(n + 31) / 32, 32>>>(data, squares, n);
        add<<<1, 1, 0, cudaStreamTailLaunch>>>(squares, sum, n);
    }
    // Nobody else has to do with this.
    data[n + threadIdx.x] = 0;
}

int main() {
    const int n = 96;
    int *data, *squares, *sum, host = 0, expected = 0;
    CHECK(cudaMalloc(&data, 2 * n * sizeof(int)));
    CHECK(cudaMalloc(&squares, n * sizeof(int)));
    CHECK(cudaMalloc(&sum, sizeof(int)));
    prepare<<<1, n>>>(data, squares, sum, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&host, sum, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 1; i <= n; i++) expected += i * i;
    return verdict(host == expected);
}
