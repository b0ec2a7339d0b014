// CUB: device-wide algorithms, and the collectives of a block and of a warp in a kernel of one's own.
//@ variants: clean
//@ nvcc: -std=c++17
//@ expect: no-race
#include "app.h"

#include <algorithm>
#include <cub/cub.cuh>
#include <numeric>
#include <vector>

const int n = 4000, bins = 16, threads = 128, tiles = n / threads;

struct Larger {
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};

// Each block orders its tile, sums it up, and finds where its numbers would go.
__global__ void tile(const int *in, int *sorted, int *places, int *largest, int *sum) {
    using Sort = cub::BlockRadixSort<int, threads, 1>;
    using Scan = cub::BlockScan<int, threads>;
    using Reduce = cub::BlockReduce<int, threads>;
    using Largest = cub::WarpReduce<int>;
    __shared__ union {
        typename Sort::TempStorage sort;
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
        typename Largest::TempStorage largest[threads / 32];
    } storage;
    int at = blockIdx.x * threads + threadIdx.x;
    int item[1] = {in[at]};
    Sort(storage.sort).Sort(item);
    sorted[at] = item[0];
    __syncthreads();
    int place;
    Scan(storage.scan).ExclusiveSum(item[0], place);
    places[at] = place;
    __syncthreads();
    int total = Reduce(storage.reduce).Sum(item[0]);
    if (threadIdx.x == 0) atomicAdd(sum, total);
    __syncthreads();
    int warp = threadIdx.x / 32;
    int most = Largest(storage.largest[warp]).Reduce(item[0], Larger());
    if (threadIdx.x % 32 == 0) largest[at / 32] = most;
}

// Calls an algorithm twice: once for the size of its storage, then to run.
template <class Algorithm>
void with_storage(Algorithm algorithm) {
    size_t bytes = 0;
    CHECK(algorithm(nullptr, bytes));
    void *storage;
    CHECK(cudaMalloc(&storage, bytes));
    CHECK(algorithm(storage, bytes));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(storage));
}

int *device(int length) {
    int *memory;
    CHECK(cudaMalloc(&memory, length * sizeof(int)));
    return memory;
}

std::vector<int> host(const int *memory, int length) {
    std::vector<int> out(length);
    CHECK(cudaMemcpy(out.data(), memory, length * sizeof(int), cudaMemcpyDeviceToHost));
    return out;
}

int main() {
    Random random{3};
    std::vector<int> input(n);
    for (int &x : input) x = random(1000);
    int *in = device(n), *out = device(n), *one = device(1), *counts = device(bins);
    CHECK(cudaMemcpy(in, input.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    bool right = true;
    std::vector<int> sums(n), histogram(bins);
    std::partial_sum(input.begin(), input.end(), sums.begin());
    for (int x : input) histogram[x * bins / 1000]++;

    with_storage([&](void *storage, size_t &bytes) {
        return cub::DeviceScan::InclusiveSum(storage, bytes, in, out, n);
    });
    right &= host(out, n) == sums;
    with_storage([&](void *storage, size_t &bytes) {
        return cub::DeviceReduce::Max(storage, bytes, in, one, n);
    });
    right &= host(one, 1)[0] == *std::max_element(input.begin(), input.end());
    with_storage([&](void *storage, size_t &bytes) {
        return cub::DeviceHistogram::HistogramEven(storage, bytes, in, counts, bins + 1, 0, 1000, n);
    });
    right &= host(counts, bins) == histogram;

    int *places = device(n), *largest = device(n / 32);
    CHECK(cudaMemset(one, 0, sizeof(int)));
    tile<<<tiles, threads>>>(in, out, places, largest, one);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> sorted = host(out, n), place = host(places, n), most = host(largest, n / 32);
    int total = 0;
    for (int block = 0; block < tiles; block++) {
        auto begin = input.begin() + block * threads;
        std::vector<int> here(begin, begin + threads), before(threads);
        std::sort(here.begin(), here.end());
        std::exclusive_scan(here.begin(), here.end(), before.begin(), 0);
        for (int thread = 0; thread < threads; thread++) {
            int at = block * threads + thread;
            right &= sorted[at] == here[thread] && place[at] == before[thread];
            if (thread % 32 == 31) right &= most[at / 32] == here[thread];
        }
        total += before.back() + here.back();
    }
    right &= host(one, 1)[0] == total;
    return verdict(right);
}
