// Counts how often each byte value occurs.
// Racy: the counter is incremented without an atomic, so increments get lost.
//@ demo: the racy variant is what `cargo xtask demo` shows
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

__global__ void histogram(const unsigned char *data, int n, unsigned *counts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
#ifdef RACY
        unsigned count = counts[data[i]];  //~ race A
        counts[data[i]] = count + 1;       //~ race A, may B B
#else
        atomicAdd(&counts[data[i]], 1);
#endif
    }
}

int main() {
    const int n = 8192;
    static unsigned char data[n];
    unsigned expected[256] = {}, counts[256];
    Random random = {4};
    for (int i = 0; i < n; i++) expected[data[i] = random(256)]++;
    unsigned char *device_data;
    unsigned *device_counts;
    CHECK(cudaMalloc(&device_data, sizeof data));
    CHECK(cudaMalloc(&device_counts, sizeof counts));
    CHECK(cudaMemcpy(device_data, data, sizeof data, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_counts, 0, sizeof counts));
    histogram<<<n / 256, 256>>>(device_data, n, device_counts);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(counts, device_counts, sizeof counts, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 256; i++) right = right && counts[i] == expected[i];
    CHECK(cudaFree(device_data));
    CHECK(cudaFree(device_counts));
    return verdict(right);
}
