// Occupancy in all forms, and a launch of the size that it proposes.
//@ variants: clean
//@[clean] expect: no-race
#include "app.h"

__global__ void scale(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * 2 + 1;
}

__global__ void __launch_bounds__(256) bounded(float *data, int n) {
    __shared__ float room[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    room[threadIdx.x] = i;
    if (i < n) data[i] = room[threadIdx.x];
}

struct Room {
    __host__ __device__ size_t operator()(int threads) const { return threads * 64; }
};

int main() {
    bool right = true;
    int blocks, multiprocessors;
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 1024, 0));
    // The device has as many registers as PTX names, so that fewer blocks may fit than on a GPU.
    right = right && blocks >= 1 && blocks <= 2;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 64, 0));
    right = right && blocks >= 8 && blocks <= 32;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, scale, 128, 40 * 1024,
                                                                 cudaOccupancyDisableCachingOverride));
    right = right && blocks == 5;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 512, 0));
    right = right && blocks == 0;
    size_t room;
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&room, scale, 4, 128));
    right = right && room > 32 * 1024 && room < 60 * 1024;

    int least, size;
    CHECK(cudaOccupancyMaxPotentialBlockSize(&least, &size, scale, 0, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, size, 0));
    right = right && size % 32 == 0 && size <= 1024 && blocks * size >= 1024 && least == blocks * multiprocessors;
    CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&least, &size, scale, Room()));
    right = right && size >= 32 && size <= 1024;
    CHECK(cudaOccupancyMaxPotentialBlockSize(&least, &size, bounded, 0, 0));
    right = right && size == 256;

    const int n = 3000;
    static float host[n];
    float *data;
    CHECK(cudaMalloc(&data, sizeof host));
    for (int i = 0; i < n; i++) host[i] = i;
    CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    scale<<<(n + size - 1) / size, size>>>(data, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right = right && host[i] == 2 * i + 1;
    CHECK(cudaFree(data));
    return verdict(right);
}
