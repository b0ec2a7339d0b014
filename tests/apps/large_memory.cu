// Three quarters of the device's memory in one piece, of which a few words are touched: the host has room for them
// and for no more. What nobody has written reads as zero.
//@ variants: clean
//@[clean] expect: no-race
#include "app.h"
#include <cstring>

const int places = 64;

__global__ void touch(unsigned *memory, size_t distance) { memory[threadIdx.x * distance] += threadIdx.x + 1; }

__global__ void collect(const unsigned *memory, size_t distance, unsigned *found) {
    found[threadIdx.x] = memory[threadIdx.x * distance];
    found[places + threadIdx.x] = memory[threadIdx.x * distance + 1];
}

// Memory that the process has in use, in MiB.
static long resident() {
    long kilobytes = 0;
    char line[256];
    FILE *file = std::fopen("/proc/self/status", "r");
    while (file && std::fgets(line, sizeof line, file)) {
        if (std::strncmp(line, "VmRSS:", 6) == 0) kilobytes = std::atol(line + 6);
    }
    if (file) std::fclose(file);
    return kilobytes / 1024;
}

int main() {
    size_t free, total;
    CHECK(cudaMemGetInfo(&free, &total));
    size_t bytes = free / 4 * 3 / 4096 * 4096, distance = bytes / sizeof(unsigned) / places;
    unsigned *memory, *found, host[2 * places];
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMalloc(&found, sizeof host));
    touch<<<1, places>>>(memory, distance);
    touch<<<1, places>>>(memory, distance);
    collect<<<1, places>>>(memory, distance, found);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, found, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < places; i++) right = right && host[i] == 2 * (i + 1) && host[places + i] == 0;
    size_t left;
    CHECK(cudaMemGetInfo(&left, &total));
    right = right && left <= free - bytes;
    // Only if it is too much: how much it is differs from run to run.
    if (resident() >= 1500) std::printf("%zu MiB of %zu, %ld MiB in use on the host\n", bytes >> 20, total >> 20, resident());
    right = right && resident() < 1500;
    // What is too large is refused, and leaves everything as it was.
    void *more;
    right = right && cudaMalloc(&more, total) == cudaErrorMemoryAllocation && cudaGetLastError() == cudaErrorMemoryAllocation;
    CHECK(cudaFree(memory));
    CHECK(cudaMemGetInfo(&left, &total));
    right = right && left >= bytes;
    return verdict(right);
}
