// Waits that look as if nobody could end them, and end: the host sets a flag, the clock runs out, a loop gives up, a
// thread that works for long is to set it, or a copy brings the data.
//@ expect: no-race
//@ variants: clean
//@ not-as-on-gpu: the simulated driver is no place to wait for the host
#include <chrono>
#include <thread>
#include "app.h"

__global__ void wait_for_host(volatile int *flag, int *out) {
    while (*flag == 0) {
    }
    out[threadIdx.x] = *flag;
}

__global__ void wait_by_clock(volatile int *flag, int *out) {
    const long long start = clock64();
    while (*flag == 0 && clock64() - start < 2000000) {
    }
    out[threadIdx.x] = 7;
}

__global__ void wait_for_long(volatile int *flag, int *out) {
    int round = 0;
    while (*flag == 0 && ++round < 100000) __nanosleep(20);
    out[threadIdx.x] = round;
}

__global__ void wait_for_work(volatile int *flag, int *out) {
    if (blockIdx.x > 0) {
        while (*flag == 0) {
        }
    } else if (threadIdx.x == 0) {
        unsigned int x = 1;
        for (int i = 0; i < 3000000; i++) x = x * 1664525 + 1013904223;
        __threadfence();
        *flag = x | 1;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void wait_for_copy(const int *in, int *out) {
    __shared__ alignas(16) int tile[256];
    __shared__ alignas(8) unsigned long long bar;
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(&bar);
    const unsigned int to = (unsigned int)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at));
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned int x = 1;
        for (int i = 0; i < 300000; i++) x = x * 1664525 + 1013904223;
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at), "r"(1024 + (x & 0)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                     ::"r"(to), "l"(in), "r"(at) : "memory");
    }
    int over = 0;
    while (!over) {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(over) : "r"(at) : "memory");
    }
    out[threadIdx.x] = tile[threadIdx.x];
}

int main() {
    int *out, *zero, *in, *mapped, result[256], data[256];
    for (int i = 0; i < 256; i++) data[i] = 9 * i;
    CHECK(cudaMalloc(&out, sizeof result));
    CHECK(cudaMalloc(&zero, 4));
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMemset(zero, 0, 4));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    CHECK(cudaHostAlloc(&mapped, 4, cudaHostAllocMapped));
    *mapped = 0;
    std::thread sets([mapped] {
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        *(volatile int *)mapped = 3;
    });
    wait_for_host<<<1, 32>>>(mapped, out);
    CHECK(cudaDeviceSynchronize());
    sets.join();
    bool right = true;
    CHECK(cudaMemcpy(result, out, 128, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) right = right && result[i] == 3;
    wait_by_clock<<<1, 32>>>(zero, out);
    wait_for_long<<<1, 32>>>(zero, out);
    CHECK(cudaMemcpy(result, out, 128, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) right = right && result[i] == 100000;
    wait_for_work<<<3, 32>>>(zero, out);
    wait_for_copy<<<1, 256>>>(in, out);
    CHECK(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) right = right && result[i] == 9 * i;
    return verdict(right);
}
