// Asynchronous copies between the device and page-locked memory that the program uses again.
// Racy: it does not wait for the copies.
//@ needs: page-table
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: race between host and device: the host writes memory that a memory copy reads, and has not waited for the memory copy
//@[racy] says: first: cudaMemcpy or its like, called at host_copies.cu:34 main, in stream #1
//@[racy] says: second: a write by the program's own code, somewhere before its call at host_copies.cu:40 main, on the host
//@[racy] says: race between host and device: the host accesses memory that a memory copy writes, and has not waited for the memory copy
//@[racy] says: help: let the host wait for the memory copy before it writes the memory: `cudaStreamSynchronize` for stream #1
//@[racy] says: race between host and device: the host accesses memory that a memory fill writes, and has not waited for the memory fill
//@[racy] says: somewhere before its next call of CUDA, or before its end
//@ nvcc: -cudart shared -arch=sm_90 -g
#include "app.h"

__global__ void add(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] += value; }

int main() {
    const int n = 5000;
    const size_t bytes = n * sizeof(int);
    int *pinned, *again, *managed, *device;
    cudaStream_t stream;
    cudaEvent_t event;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&event));
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaMallocHost(&again, bytes));
    CHECK(cudaMallocManaged(&managed, bytes));
    CHECK(cudaMalloc(&device, bytes));
    bool right = true;

    // The buffer of a copy is filled again.
    for (int i = 0; i < n; i++) pinned[i] = i;
    CHECK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream));
#ifndef RACY
    while (cudaStreamQuery(stream) != cudaSuccess) {
    }
#endif
    for (int i = 0; i < n; i++) pinned[i] = -1;
    CHECK(cudaDeviceSynchronize());

    add<<<n / 100, 100, 0, stream>>>(device, 2);
    CHECK(cudaGetLastError());

    // The result of a copy is read.
    CHECK(cudaMemcpyAsync(again, device, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(event, stream));
#ifndef RACY
    CHECK(cudaEventSynchronize(event));
#endif
    right = right && again[7] == 9 && again[n - 1] == n + 1;
    CHECK(cudaStreamSynchronize(stream));

    // A part that no copy uses may be used.
    CHECK(cudaMemcpyAsync(device, pinned, bytes / 2, cudaMemcpyHostToDevice, stream));
    pinned[n / 2] = 3;
    right = right && pinned[n / 2 - 1] == -1;
    CHECK(cudaStreamSynchronize(stream));

    // These are waited for.
    CHECK(cudaMemset(pinned, 1, bytes));
    right = right && pinned[9] == 0x01010101;
    CHECK(cudaMemcpyAsync(again, pinned, bytes, cudaMemcpyHostToHost, stream));
    right = right && again[9] == 0x01010101;
    pinned[9] = 4;
    float elapsed;
    cudaEvent_t later;
    CHECK(cudaEventCreate(&later));
    CHECK(cudaMemcpyAsync(again, device, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(later, stream));
    cudaError_t answer;
    while ((answer = cudaEventElapsedTime(&elapsed, event, later)) == cudaErrorNotReady) {
    }
    CHECK(answer);
    right = right && again[n - 1] == n + 1;

    CHECK(cudaMemsetAsync(managed, 0, bytes, stream));
#ifndef RACY
    CHECK(cudaStreamSynchronize(stream));
#endif
    return verdict(right && managed[0] == 0);
}
