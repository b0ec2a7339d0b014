// The host reads managed memory and does not wait for the kernel that writes it; and it fills a page-locked buffer again
// that is still being copied.
//@ needs: page-table
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR015]: race between host and device: the host accesses memory that a kernel writes, and has not waited for the kernel
//@[racy] says: error[CR015]: race between host and device: the host writes memory that a memory copy reads, and has not waited for the memory copy
//@[racy] says: SUMMARY: cudarun-check: 2 races (2 errors)
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

void send(int *device, int *pinned, cudaStream_t stream) {
    for (int part = 0; part < 2; ++part) {
        for (int n = 0; n < 64; ++n) pinned[n] = part + n;
        cudaMemcpyAsync(device + 64 * part, pinned, 64 * sizeof *pinned, cudaMemcpyHostToDevice, stream);
#ifndef RACY
        cudaStreamSynchronize(stream);
#endif
    }
}

int main() {
    int *data, *device, *pinned, sent[128];
    cudaStream_t stream;
    CHECK(cudaMallocManaged(&data, 64 * sizeof *data));
    CHECK(cudaMallocHost(&pinned, 64 * sizeof *pinned));
    CHECK(cudaMalloc(&device, sizeof sent));
    CHECK(cudaStreamCreate(&stream));
    bool right = sum(data) == 64 * 63 / 2;
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    send(device, pinned, stream);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(sent, device, sizeof sent, cudaMemcpyDeviceToHost));
    for (int n = 0; n < 128; ++n) right = right && sent[n] == n / 64 + n % 64;
    return verdict(right);
}
