// A stream of its own for every thread of the host (`--default-stream per-thread`): four threads launch, copy and
// wait without a word about streams, and one hands work to the stream that all share.
//@ variants: clean
//@[clean] expect: no-race
//@ nvcc: -cudart shared -arch=sm_90 --default-stream per-thread
#include "app.h"
#include <thread>
#include <vector>

const int n = 2048;

__global__ void fill(int *data, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = first + i;
}

__global__ void twice(int *data) { data[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }

__global__ void add(const int *a, const int *b, int *sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sum[i] = a[i] + b[i];
}

int main() {
    int *data[4];
    bool done[4] = {};
    for (int *&part : data) CHECK(cudaMalloc(&part, n * sizeof(int)));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&, t] {
            std::vector<int> host(n);
            fill<<<n / 128, 128>>>(data[t], 1000 * t);
            twice<<<n / 128, 128>>>(data[t]);
            CHECK(cudaGetLastError());
            CHECK(cudaMemcpyAsync(host.data(), data[t], n * sizeof(int), cudaMemcpyDeviceToHost));
            CHECK(cudaStreamSynchronize(0));
            cudaEvent_t event;
            CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
            CHECK(cudaEventRecord(event));
            CHECK(cudaEventSynchronize(event));
            CHECK(cudaEventDestroy(event));
            bool right = true;
            for (int i = 0; i < n; i++) right = right && host[i] == 2 * (1000 * t + i);
            done[t] = right;
        });
    }
    for (std::thread &thread : threads) thread.join();
    bool right = done[0] && done[1] && done[2] && done[3];

    // The stream that waits for all others, and they for it.
    add<<<n / 128, 128, 0, cudaStreamLegacy>>>(data[0], data[1], data[2]);
    twice<<<n / 128, 128, 0, cudaStreamPerThread>>>(data[2]);
    std::vector<int> host(n);
    CHECK(cudaMemcpy(host.data(), data[2], n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right = right && host[i] == 4 * (i + 1000 + i);
    CHECK(cudaMemset(data[3], 0, n * sizeof(int)));
    CHECK(cudaMemcpy(host.data(), data[3], n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right = right && host[i] == 0;
    return verdict(right);
}
