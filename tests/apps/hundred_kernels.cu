// A program with a hundred kernels, of which it launches a few: the others cost nothing but their text.
// It says how long it took from its first call to the end of its first launch.
//@ variants: clean
//@[clean] expect: no-race
//@ not-assembled: a hundred kernels of one kind would fill the table of registers
#include "app.h"
#include <chrono>
#include <utility>

template <int K>
__global__ void scaled_sums(const float *in, float *out, int n) {
    __shared__ float tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int step = 0; step < n; step += 128) {
        tile[threadIdx.x] = in[step + threadIdx.x] * (K + 1);
        __syncthreads();
#pragma unroll 2
        for (int j = 0; j < 128; j++) sum += K % 2 ? tile[j] - j : tile[j] + j * (K % 7);
        __syncthreads();
    }
    out[i] = sum;
}

using Kernel = void (*)(const float *, float *, int);

template <int... K>
static Kernel choose(int which, std::integer_sequence<int, K...>) {
    Kernel all[] = {scaled_sums<K>...};
    return all[which];
}

int main() {
    auto begin = std::chrono::steady_clock::now();
    const int n = 256;
    float host[n], *in, *out;
    for (int i = 0; i < n; i++) host[i] = i % 4;
    CHECK(cudaMalloc(&in, sizeof host));
    CHECK(cudaMalloc(&out, sizeof host));
    CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    bool right = true;
    for (int which : {0, 57, 99}) {
        choose(which, std::make_integer_sequence<int, 100>())<<<n / 128, 128>>>(in, out, n);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        if (which == 0) {
            std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
            std::fprintf(stderr, "first launch after %.1f ms\n", took.count());
        }
        CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
        float want = 0;
        for (int i = 0; i < n; i++) {
            float x = float(i % 4) * (which + 1);
            want += which % 2 ? x - i % 128 : x + i % 128 * (which % 7);
        }
        for (float x : host) right = right && x == want;
    }
    return verdict(right);
}
