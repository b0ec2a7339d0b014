// A bitonic network sorts each block's numbers in shared memory, then merges across blocks in global memory.
// Racy: no barrier between the steps of the network within a block.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#include <algorithm>

const int threads = 128, part = 2 * threads, n = 4 * part;

__device__ void order(int &a, int &b, bool up) {
    if ((a > b) == up) {
        int swap = a;
        a = b;
        b = swap;
    }
}

// The steps of size `size` with distances below a block's part.
__global__ void sort_parts(int *data, int first, int last) {
    __shared__ int here[part];
    int start = blockIdx.x * part, thread = threadIdx.x;
    here[thread] = data[start + thread];
    here[thread + threads] = data[start + thread + threads];
    __syncthreads();
    for (int size = first; size <= last; size *= 2) {
        for (int step = min(size, part) / 2; step > 0; step /= 2) {
            int low = 2 * thread - thread % step;
            bool up = ((start + low) & size) == 0;
            int a = here[low], b = here[low + step];  //~ race A, race B
            order(a, b, up);
            here[low] = a;                            //~ race A, race C, may D D
            here[low + step] = b;                     //~ race B, race C, may E E
#ifndef RACY
            __syncthreads();
#endif
        }
    }
    __syncthreads();
    data[start + thread] = here[thread];
    data[start + thread + threads] = here[thread + threads];
}

__global__ void merge(int *data, int size, int step) {
    int thread = blockIdx.x * threads + threadIdx.x;
    int low = 2 * thread - thread % step;
    order(data[low], data[low + step], (low & size) == 0);
}

int main() {
    static int input[n], result[n];
    Random random{9};
    for (int &x : input) x = random(10000);
    int *data;
    CHECK(cudaMalloc(&data, sizeof input));
    CHECK(cudaMemcpy(data, input, sizeof input, cudaMemcpyHostToDevice));
    sort_parts<<<n / part, threads>>>(data, 2, part);
    for (int size = 2 * part; size <= n; size *= 2) {
        for (int step = size / 2; step >= part; step /= 2) merge<<<n / part, threads>>>(data, size, step);
        sort_parts<<<n / part, threads>>>(data, size, size);
    }
    CHECK(cudaMemcpy(result, data, sizeof result, cudaMemcpyDeviceToHost));
    std::sort(input, input + n);
    return verdict(std::equal(input, input + n, result));
}
