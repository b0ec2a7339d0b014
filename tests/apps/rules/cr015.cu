// The host reads managed memory and does not wait for the kernel that writes it.
//@ needs: page-table
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR015]
#include "../app.h"

// The example:
__global__ void fill(int *data) { data[threadIdx.x] = threadIdx.x; }

int sum(int *data) {
    fill<<<1, 64>>>(data);
#ifndef RACY
    cudaDeviceSynchronize();
#endif
    int all = 0;
    for (int n = 0; n < 64; ++n) all += data[n];
    return all;
}

int main() {
    int *data;
    CHECK(cudaMallocManaged(&data, 64 * sizeof *data));
    int all = sum(data);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return verdict(all == 64 * 63 / 2);
}
