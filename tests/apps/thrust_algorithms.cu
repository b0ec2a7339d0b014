// The parallel algorithms of Thrust on device vectors, each against its host counterpart.
//@ variants: clean
//@ nvcc: -std=c++17
//@ expect: no-race
#include "app.h"

#include <algorithm>
#include <numeric>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <vector>

const int n = 3000, bins = 32;

struct Odd {
    __host__ __device__ bool operator()(int x) const { return x % 2 == 1; }
};

struct Square {
    __host__ __device__ long operator()(int x) const { return long(x) * x; }
};

std::vector<int> host(const thrust::device_vector<int> &vector, long length) {
    std::vector<int> out(length);
    thrust::copy(vector.begin(), vector.begin() + length, out.begin());
    return out;
}

int main() {
    Random random{7};
    std::vector<int> input(n);
    for (int &x : input) x = random(bins);
    const thrust::device_vector<int> data(input.begin(), input.end());
    bool right = true;

    long squares = thrust::transform_reduce(data.begin(), data.end(), Square(), 0L, thrust::plus<long>());
    long expected = 0;
    for (int x : input) expected += long(x) * x;
    right &= squares == expected;

    thrust::device_vector<int> sums(n);
    thrust::exclusive_scan(data.begin(), data.end(), sums.begin());
    std::vector<int> partial(n);
    std::exclusive_scan(input.begin(), input.end(), partial.begin(), 0);
    right &= host(sums, n) == partial;

    thrust::device_vector<int> odd(n);
    auto end = thrust::copy_if(data.begin(), data.end(), odd.begin(), Odd());
    std::vector<int> odd_host;
    std::copy_if(input.begin(), input.end(), std::back_inserter(odd_host), Odd());
    right &= end - odd.begin() == long(odd_host.size()) && host(odd, odd_host.size()) == odd_host;

    thrust::device_vector<int> keys = data, places(n);
    thrust::copy_n(thrust::counting_iterator<int>(0), n, places.begin());
    thrust::stable_sort_by_key(keys.begin(), keys.end(), places.begin());
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return input[a] < input[b]; });
    right &= host(places, n) == order;

    // A histogram from sorted keys, in two ways.
    thrust::device_vector<int> bin(bins), count(bins), ends(bins);
    auto last = thrust::reduce_by_key(keys.begin(), keys.end(), thrust::constant_iterator<int>(1),
                                      bin.begin(), count.begin());
    thrust::upper_bound(keys.begin(), keys.end(), thrust::counting_iterator<int>(0),
                        thrust::counting_iterator<int>(bins), ends.begin());
    std::vector<int> histogram(bins), up_to(bins);
    for (int x : input) histogram[x]++;
    std::partial_sum(histogram.begin(), histogram.end(), up_to.begin());
    right &= last.first - bin.begin() == bins && host(count, bins) == histogram;
    right &= host(ends, bins) == up_to;

    return verdict(right);
}
