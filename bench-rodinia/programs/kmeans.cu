// K-means: a kernel turns the points over, so that a feature of neighbouring points lies side by side; another finds
// each point's nearest centre and says whether it has changed. The host moves the centres.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"

const int features = 8, clusters = 5, threads = 256;

__global__ void transpose(int points, const float *rows, float *columns) {
    int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= points) return;
    for (int f = 0; f < features; f++) columns[size_t(f) * points + point] = rows[size_t(point) * features + f];
}

__constant__ float centres[clusters * features];

__global__ void assign(int points, const float *columns, int *nearest, int *changed) {
    int point = blockIdx.x * blockDim.x + threadIdx.x;
    bool moved = false;
    if (point < points) {
        int best = -1;
        float least = 0.0f;
        for (int c = 0; c < clusters; c++) {
            float distance = 0.0f;
            for (int f = 0; f < features; f++) {
                float d = columns[size_t(f) * points + point] - centres[c * features + f];
                distance += d * d;
            }
            if (best < 0 || distance < least) {
                best = c;
                least = distance;
            }
        }
        moved = nearest[point] != best;
        nearest[point] = best;
    }
    int count = __syncthreads_count(moved);
    if (threadIdx.x == 0 && count > 0) atomicAdd(changed, count);
}

// Features are whole numbers below 256, so that distances from rounded centres are exact.
std::vector<float> means(int points, const std::vector<float> &data, const std::vector<int> &nearest,
                         const std::vector<float> &old) {
    std::vector<double> sums(old.size());
    std::vector<int> sizes(clusters);
    for (int p = 0; p < points; p++) {
        sizes[nearest[p]]++;
        for (int f = 0; f < features; f++) sums[nearest[p] * features + f] += data[size_t(p) * features + f];
    }
    std::vector<float> made(old);
    for (size_t i = 0; i < made.size(); i++) {
        int size = sizes[i / features];
        if (size > 0) made[i] = float(std::floor(sums[i] / size));
    }
    return made;
}

int main(int argc, char **argv) {
    const int points = pick(argc, argv, 4000, 1 << 20, 1 << 22), rounds = pick(argc, argv, 4, 10, 10);
    Random random = {17};
    std::vector<float> data(size_t(points) * features), first(clusters * features);
    for (float &x : data) x = float(random(256));
    first.assign(data.begin(), data.begin() + first.size());

    Buffer<float> rows(data), columns(data.size());
    Buffer<int> device_nearest(std::vector<int>(points, -1)), changed(1);
    transpose<<<blocks(points, threads), threads>>>(points, rows, columns);
    std::vector<float> centre = first;
    std::vector<int> counts;
    for (int round = 0; round < rounds; round++) {
        CHECK(cudaMemcpyToSymbol(centres, centre.data(), centre.size() * sizeof(float)));
        changed.zero();
        assign<<<blocks(points, threads), threads>>>(points, columns, device_nearest, changed);
        CHECK(cudaGetLastError());
        centre = means(points, data, device_nearest.download(), centre);
        counts.push_back(changed.download()[0]);
    }

    std::vector<int> nearest(points, -1);
    bool right = true;
    std::vector<float> reference = first;
    for (int round = 0; round < rounds; round++) {
        int moved = 0;
        for (int p = 0; p < points; p++) {
            int best = -1;
            float least = 0.0f;
            for (int c = 0; c < clusters; c++) {
                float distance = 0.0f;
                for (int f = 0; f < features; f++) {
                    float d = data[size_t(p) * features + f] - reference[c * features + f];
                    distance += d * d;
                }
                if (best < 0 || distance < least) {
                    best = c;
                    least = distance;
                }
            }
            moved += nearest[p] != best;
            nearest[p] = best;
        }
        right = right && counts[round] == moved;
        reference = means(points, data, nearest, reference);
    }
    return verdict(right && device_nearest.download() == nearest && centre == reference);
}
