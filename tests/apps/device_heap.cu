// The device's own heap: arrays and objects with virtual functions, and its limit.
//@ variants: clean
//@ expect: no-race
//@ not-on-gpu: no driver says where the heap lies, so the accesses to it count as not covered
#include "app.h"

#include <cstring>
#include <new>

struct Shape {
    __device__ virtual ~Shape() {}
    __device__ virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    int *destroyed;
    __device__ Square(int side, int *destroyed) : side(side), destroyed(destroyed) {}
    __device__ ~Square() override { atomicAdd(destroyed, 1); }
    __device__ int area() const override { return side * side; }
};
struct Strip : Shape {
    int lengths[8];
    __device__ Strip(int length) {
        for (int i = 0; i < 8; i++) lengths[i] = length + i;
    }
    __device__ int area() const override {
        int sum = 0;
        for (int length : lengths) sum += length;
        return sum;
    }
};

// Both kernels run as one block, and no thread frees memory before all threads have theirs: on a GPU a kernel that calls through pointers is
// left to the cells, which do not see that the heap has given the same memory to two threads, one after the other,
// and call what they do to it possible races.
__global__ void objects(int *areas, int *destroyed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Shape *shape = i % 2 == 0 ? static_cast<Shape *>(new Square(i, destroyed)) : new Strip(i);
    areas[i] = shape->area();
    __syncthreads();
    delete shape;
    alignas(Strip) unsigned char place[sizeof(Strip)];
    Strip *local = new (place) Strip(1);
    areas[i] += local->area();
}

__global__ void arrays(int *sums, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int *first = static_cast<int *>(malloc(length * sizeof(int)));
    int *second = new int[length];
    memset(first, 0xff, length * sizeof(int));
    for (int j = 0; j < length; j++) first[j] += i + j;
    memcpy(second, first, length * sizeof(int));
    sums[i] = 0;
    for (int j = 0; j < length; j++) sums[i] += second[j];
    __syncthreads();
    delete[] second;
    free(first);
}

// How many pieces the heap has room for; all of them are given back.
__global__ void fill(int *pieces, size_t bytes) {
    void *last = nullptr;
    *pieces = 0;
    while (void *piece = malloc(bytes)) {
        *static_cast<void **>(piece) = last;
        last = piece;
        *pieces += 1;
    }
    while (last != nullptr) {
        void *next = *static_cast<void **>(last);
        free(last);
        last = next;
    }
}

int main() {
    const int n = 256, length = 9, megabytes = 20;
    size_t limit;
    CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    bool right = limit == 8 << 20;
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, megabytes << 20));
    CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    right &= limit == megabytes << 20;
    int *values, *pieces;
    CHECK(cudaMallocManaged(&values, n * sizeof(int)));
    CHECK(cudaMallocManaged(&pieces, sizeof(int)));
    *pieces = 0;
    objects<<<1, n>>>(values, pieces);
    CHECK(cudaDeviceSynchronize());
    right &= *pieces == n / 2;
    for (int i = 0; i < n; i++) right &= values[i] == (i % 2 == 0 ? i * i : 8 * i + 28) + 36;
    arrays<<<1, n>>>(values, length);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) right &= values[i] == length * (i - 1) + length * (length - 1) / 2;
    // All of the heap, twice; a real one keeps a little for itself.
    for (int again = 0; again < 2; again++) {
        fill<<<1, 1>>>(pieces, 1 << 18);
        CHECK(cudaDeviceSynchronize());
        std::printf("%d pieces\n", *pieces);
        right &= *pieces <= 4 * megabytes && *pieces > 3 * megabytes;
    }
    return verdict(right);
}
