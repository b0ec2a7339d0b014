// Particle filter: particles follow an object through the frames of a noisy film.
// Per frame: every particle moves at random and is weighed by the pixels around it; a scan in shared memory within
// blocks, one over the blocks' sums and a last one that joins them give the running sum of the weights; every new
// particle looks up the old one that it descends from, at evenly spaced sums.
// Weights are whole numbers, so that the CPU makes the very same choices.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"
#include <algorithm>

const int threads = 128, edge = 64, radius = 2;

struct Position {
    int x, y;
};

__host__ __device__ unsigned next(unsigned &seed) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 16;
}

// Where the object is in a frame.
__host__ __device__ Position object(int frame) {
    return {16 + frame, 20 + frame / 2};
}

__host__ __device__ void move(Position &at, unsigned &seed) {
    at.x += 1 + int(next(seed) % 5) - 2;
    at.y += int(next(seed) % 5) - 2;
}

// The brighter the surroundings, the heavier.
__host__ __device__ unsigned weigh(Position at, const unsigned char *image) {
    unsigned sum = 0;
    for (int dy = -radius; dy <= radius; dy++) {
        for (int dx = -radius; dx <= radius; dx++) {
            int x = at.x + dx, y = at.y + dy;
            if (x >= 0 && x < edge && y >= 0 && y < edge) sum += image[y * edge + x];
        }
    }
    return 1 + sum * sum / 64;
}

__global__ void likelihood(int count, const unsigned char *image, Position *particles, unsigned *seeds,
                           unsigned *weights) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    move(particles[i], seeds[i]);
    weights[i] = weigh(particles[i], image);
}

__global__ void scan_blocks(int count, const unsigned *weights, unsigned long long *running,
                            unsigned long long *sums) {
    __shared__ unsigned long long partial[threads];
    int me = threadIdx.x, i = blockIdx.x * threads + me;
    partial[me] = i < count ? weights[i] : 0;
    __syncthreads();
    for (int distance = 1; distance < threads; distance *= 2) {
        unsigned long long before = me >= distance ? partial[me - distance] : 0;
        __syncthreads();
        partial[me] += before;
        __syncthreads();
    }
    if (i < count) running[i] = partial[me];
    if (me == threads - 1) sums[blockIdx.x] = partial[me];
}

// One block: each thread adds up a stretch, and then starts from what the threads before it have.
__global__ void scan_sums(int count, unsigned long long *sums) {
    __shared__ unsigned long long stretch[threads];
    int me = threadIdx.x, length = (count + threads - 1) / threads;
    int first = min(me * length, count), end = min(first + length, count);
    unsigned long long sum = 0;
    for (int i = first; i < end; i++) sum += sums[i];
    stretch[me] = sum;
    __syncthreads();
    unsigned long long before = 0;
    for (int i = 0; i < me; i++) before += stretch[i];
    for (int i = first; i < end; i++) sums[i] = before += sums[i];
}

__global__ void join(int count, unsigned long long *running, const unsigned long long *sums) {
    int i = blockIdx.x * threads + threadIdx.x;
    if (i < count && blockIdx.x > 0) running[i] += sums[blockIdx.x - 1];
}

// The first particle whose running sum is above `at`.
__host__ __device__ int find(int count, const unsigned long long *running, unsigned long long at) {
    int low = 0, high = count - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (running[middle] > at) high = middle;
        else low = middle + 1;
    }
    return low;
}

__global__ void resample(int count, const unsigned long long *running, const Position *from, Position *to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = from[find(count, running, running[count - 1] / count * i)];
}

std::vector<unsigned char> film(int frame, Random &random) {
    std::vector<unsigned char> image(edge * edge);
    Position at = object(frame);
    for (int i = 0; i < edge * edge; i++) {
        int dx = i % edge - at.x, dy = i / edge - at.y;
        image[i] = (dx * dx + dy * dy <= 4 * radius * radius ? 20 : 2) + random(4);
    }
    return image;
}

int main(int argc, char **argv) {
    const int count = pick(argc, argv, 1500, 1 << 20, 1 << 22), frames = pick(argc, argv, 3, 10, 10);
    const int grid = blocks(count, threads);
    Random random = {41};
    std::vector<Position> particles(count, object(0));
    std::vector<unsigned> seeds(count);
    for (unsigned &seed : seeds) seed = random(1 << 24);
    Buffer<Position> from(particles), to(count);
    Buffer<unsigned> device_seeds(seeds), weights(count);
    Buffer<unsigned long long> running(count), sums(grid);
    Buffer<unsigned char> image(edge * edge);
    std::vector<std::vector<unsigned char>> images;
    for (int frame = 1; frame <= frames; frame++) {
        images.push_back(film(frame, random));
        image.upload(images.back());
        likelihood<<<grid, threads>>>(count, image, from, device_seeds, weights);
        scan_blocks<<<grid, threads>>>(count, weights, running, sums);
        scan_sums<<<1, threads>>>(grid, sums);
        join<<<grid, threads>>>(count, running, sums);
        resample<<<grid, threads>>>(count, running, from, to);
        swap(from, to);
    }
    CHECK(cudaGetLastError());

    std::vector<unsigned long long> sum(count);
    std::vector<Position> chosen(count);
    for (const std::vector<unsigned char> &pixels : images) {
        for (int i = 0; i < count; i++) {
            move(particles[i], seeds[i]);
            sum[i] = (i > 0 ? sum[i - 1] : 0) + weigh(particles[i], pixels.data());
        }
        for (int i = 0; i < count; i++) chosen[i] = particles[find(count, sum.data(), sum[count - 1] / count * i)];
        particles.swap(chosen);
    }
    std::vector<Position> found = from.download();
    bool right = true;
    long long x = 0, y = 0;
    for (int i = 0; i < count; i++) {
        right = right && found[i].x == particles[i].x && found[i].y == particles[i].y;
        x += found[i].x;
        y += found[i].y;
    }
    Position end = object(frames);
    std::printf("found (%.1f, %.1f), the object is at (%d, %d)\n", double(x) / count, double(y) / count, end.x, end.y);
    return verdict(right);
}
