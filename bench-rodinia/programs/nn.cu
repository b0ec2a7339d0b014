// Nearest neighbours: a kernel gives every record its distance from a place, and the host picks the nearest ones.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"
#include <algorithm>

const int wanted = 10, threads = 256;

struct Place {
    float latitude, longitude;
};

__global__ void distances(int count, Place target, const Place *places, float *result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float dx = places[i].latitude - target.latitude, dy = places[i].longitude - target.longitude;
    result[i] = sqrtf(dx * dx + dy * dy);
}

int main(int argc, char **argv) {
    const int count = pick(argc, argv, 20000, 1 << 22, 1 << 25);
    Random random = {29};
    const Place target = {30.0f, 90.0f};
    std::vector<Place> places(count);
    for (Place &place : places) place = {180.0f * random.unit() - 90.0f, 360.0f * random.unit() - 180.0f};
    Buffer<Place> device_places(places);
    Buffer<float> result(count);
    distances<<<blocks(count, threads), threads>>>(count, target, device_places, result);
    CHECK(cudaGetLastError());
    std::vector<float> found = result.download(), expected(count);
    bool right = true;
    for (int i = 0; i < count; i++) {
        double dx = places[i].latitude - target.latitude, dy = places[i].longitude - target.longitude;
        expected[i] = float(std::sqrt(dx * dx + dy * dy));
        right = right && close(found[i], expected[i], 1e-5);
    }
    std::partial_sort(found.begin(), found.begin() + wanted, found.end());
    std::partial_sort(expected.begin(), expected.begin() + wanted, expected.end());
    for (int i = 0; i < wanted; i++) right = right && close(found[i], expected[i], 1e-5);
    return verdict(right);
}
