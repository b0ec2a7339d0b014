// Threads of the host launch into streams of their own. One waits for its launch and tells another one, by means that
// nobody sees; a third is joined, which ends what it has waited for.
// Racy: the first tells the second one without having waited.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] says: 1 pair of conflicting launches assumed to be ordered by threads of the host
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[clean] not-as-on-gpu: races between launches are looked for by listening to the simulated device
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include <atomic>
#include <thread>

#include "app.h"

__global__ void put(int *data, int value) {
    data[threadIdx.x] = value;  //~ race A
}

__global__ void add(int *data, int value) {
    data[threadIdx.x] += value;  //~ race A
}

static cudaStream_t stream() {
    cudaStream_t made;
    CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
}

int main() {
    const int n = 64;
    int *data, host[n];
    CHECK(cudaMalloc(&data, n * sizeof *data));
    std::atomic<int> step{0};
    auto until = [&](int reached) {
        while (step.load() < reached) std::this_thread::yield();
    };
    std::thread second([&] {
        cudaStream_t own = stream();
        step = 1;
        until(2);
        add<<<1, n, 0, own>>>(data, 1);
        step = 3;
        CHECK(cudaStreamSynchronize(own));
    });
    std::thread first([&] {
        cudaStream_t own = stream();
        until(1);
        put<<<1, n, 0, own>>>(data, 1);
#ifndef RACY
        CHECK(cudaStreamSynchronize(own));
#endif
        step = 2;
        until(3);
        CHECK(cudaStreamSynchronize(own));
    });
    first.join();
    second.join();
    // What the threads have waited for, whoever has joined them knows.
    std::thread third([&] {
        cudaStream_t own = stream();
        add<<<1, n, 0, own>>>(data, 2);
        CHECK(cudaStreamSynchronize(own));
    });
    third.join();
    cudaStream_t own = stream();
    add<<<1, n, 0, own>>>(data, 3);
    CHECK(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, own));
    CHECK(cudaStreamSynchronize(own));
    bool right = true;
    for (int value : host) right &= value == 7;
    return verdict(right);
}
