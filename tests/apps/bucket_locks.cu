// Threads count words in buckets, each under its bucket's lock, and write down who came last.
//@ variants: clean
//@[clean] expect: no-race
#include "app.h"

const int buckets = 5;

struct Bucket {
    int count, last;
};

__global__ void count(int *locks, Bucket *all) {
    int word = blockIdx.x * blockDim.x + threadIdx.x;
    Bucket *bucket = &all[word % buckets];
    int *lock = &locks[word % buckets];
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            int before = bucket->count;
            bucket->count = before + 1;
            bucket->last = word;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

int main() {
    const int blocks = 4, threads = 50;
    int *locks, words = 0;
    Bucket all[buckets], *device_all;
    CHECK(cudaMalloc(&locks, buckets * sizeof *locks));
    CHECK(cudaMalloc(&device_all, sizeof all));
    CHECK(cudaMemset(locks, 0, buckets * sizeof *locks));
    CHECK(cudaMemset(device_all, 0, sizeof all));
    count<<<blocks, threads>>>(locks, device_all);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(all, device_all, sizeof all, cudaMemcpyDeviceToHost));
    for (int b = 0; b < buckets; b++) words += all[b].count;
    return verdict(words == blocks * threads);
}
