// Two streams have thousands of launches each between two stores to the same words.
// Racy: nothing orders the two streams, and the first store is found however long ago it was.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include "app.h"

__global__ void first(int *data) {
    data[threadIdx.x] = 1;  //~ race A
}

__global__ void last(int *data) {
    data[threadIdx.x] = 2;  //~ race A
}

__global__ void add(int *data, int value) {
    data[blockIdx.x * blockDim.x + threadIdx.x] += value;
}

int main() {
    const int rounds = 1500, threads = 32;
    int *words, *one, *two, host[2];
    cudaStream_t a, b;
    CHECK(cudaMalloc(&words, threads * sizeof *words));
    CHECK(cudaMalloc(&one, 2 * threads * sizeof *one));
    CHECK(cudaMalloc(&two, 2 * threads * sizeof *two));
    CHECK(cudaMemset(one, 0, 2 * threads * sizeof *one));
    CHECK(cudaMemset(two, 0, 2 * threads * sizeof *two));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));

    first<<<1, threads, 0, a>>>(words);
#ifndef RACY
    CHECK(cudaStreamSynchronize(a));
#endif
    for (int i = 0; i < rounds; i++) {
        add<<<2, threads, 0, a>>>(one, i);
        add<<<2, threads, 0, b>>>(two, i);
    }
    last<<<1, threads, 0, b>>>(words);
    CHECK(cudaDeviceSynchronize());

    CHECK(cudaMemcpy(host, one, sizeof *host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(host + 1, two + 2 * threads - 1, sizeof *host, cudaMemcpyDeviceToHost));
    const int sum = rounds * (rounds - 1) / 2;
    return verdict(host[0] == sum && host[1] == sum);
}
