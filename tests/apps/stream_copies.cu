// Copies and fills beside kernels: what waits for what, when streams do not care for the default stream and when
// they do.
// Racy: nobody waits before the results are copied, and a fill is not waited for.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: error[CR014]
//@[racy] says: first: cudaMemset or its like, called at stream_copies.cu:41 main, in the default stream
//@[racy] says: second: cudaMemcpy or its like, called at stream_copies.cu:50 main, in the default stream
//@ nvcc: -cudart shared -arch=sm_90 -g
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include "app.h"

__global__ void add(int *data, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int old = data[i];     //~ race-with-call B
        data[i] = old + step;  //~ race-with-call A
    }
}

// The same, where everything goes with the default stream.
__global__ void add_in_order(int *data, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += step;
}

int main() {
    const int n = 4096, blocks = n / 128;
    const size_t bytes = n * sizeof(int);
    int *data, *other, *pinned, *plain = (int *)std::malloc(bytes);
    cudaStream_t alone, blocking;
    CHECK(cudaMalloc(&data, bytes));
    CHECK(cudaMalloc(&other, bytes));
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaStreamCreateWithFlags(&alone, cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&blocking));
    bool right = true;

    // A fill does not make the host wait.
    CHECK(cudaMemset(data, 0, bytes));
#ifndef RACY
    CHECK(cudaDeviceSynchronize());
#endif
    add<<<blocks, 128, 0, alone>>>(data, n, 1);
#ifndef RACY
    CHECK(cudaStreamSynchronize(alone));
#endif
    // Neither does a copy wait for a stream that does not go with the default stream.
    CHECK(cudaMemcpy(plain, data, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) right = right && plain[i] == 1;

    // Two kernels' worth of copies between two streams.
    CHECK(cudaMemcpyAsync(pinned, data, bytes, cudaMemcpyDeviceToHost, alone));
    CHECK(cudaStreamSynchronize(alone));
    add<<<blocks, 128, 0, alone>>>(data, n, 1);
#ifndef RACY
    CHECK(cudaStreamSynchronize(alone));
#endif
    CHECK(cudaMemcpyAsync(other, data, bytes, cudaMemcpyDeviceToDevice, blocking));
    CHECK(cudaDeviceSynchronize());

    // With the default stream: a fill, a kernel, a copy, in the order of the program.
    CHECK(cudaMemset(data, 0, bytes));
    add_in_order<<<blocks, 128, 0, blocking>>>(data, n, 3);
    CHECK(cudaMemcpy(plain, data, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right = right && plain[i] == 3;
    // Part of the data in each of two streams.
    for (int i = 0; i < n; i++) pinned[i] = i;
    CHECK(cudaMemcpyAsync(data, pinned, bytes / 2, cudaMemcpyHostToDevice, alone));
    CHECK(cudaMemcpyAsync(data + n / 2, pinned + n / 2, bytes / 2, cudaMemcpyHostToDevice, blocking));
    add_in_order<<<blocks / 2, 128, 0, alone>>>(data, n / 2, 1);
    add_in_order<<<blocks / 2, 128, 0, blocking>>>(data + n / 2, n / 2, 1);
    // To memory that is not page-locked: done when the call returns.
    CHECK(cudaMemcpyAsync(plain, data, bytes / 2, cudaMemcpyDeviceToHost, alone));
    CHECK(cudaMemcpyAsync(plain + n / 2, data + n / 2, bytes / 2, cudaMemcpyDeviceToHost, blocking));
    add_in_order<<<blocks, 128>>>(data, n, 1);
    CHECK(cudaMemcpy(pinned, data, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right = right && plain[i] == i + 1 && pinned[i] == i + 2;

    CHECK(cudaStreamDestroy(alone));
    CHECK(cudaStreamDestroy(blocking));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(data));
    CHECK(cudaFree(other));
    std::free(plain);
    return verdict(right);
}
