// Inclusive prefix sum: each block scans its part, then adds the sums of the blocks before it.
// Racy: both steps in one launch, although nothing makes a block wait for the others' sums.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

const int block = 128;

__device__ int scan_block(const int *data, int *sums) {
    __shared__ int buffer[block];
    buffer[threadIdx.x] = data[blockIdx.x * block + threadIdx.x];
    __syncthreads();
    for (int distance = 1; distance < block; distance *= 2) {
        int left = threadIdx.x >= distance ? buffer[threadIdx.x - distance] : 0;
        __syncthreads();
        buffer[threadIdx.x] += left;
        __syncthreads();
    }
    if (threadIdx.x == block - 1) {
        sums[blockIdx.x] = buffer[threadIdx.x];  //~ race A
    }
    return buffer[threadIdx.x];
}

__device__ int sum_before(const int *sums) {
    int sum = 0;
    for (int i = 0; i < blockIdx.x; i++) {
        sum += sums[i];  //~ race A
    }
    return sum;
}

#ifdef RACY
__global__ void scan(const int *data, int *sums, int *out) {
    int inside = scan_block(data, sums);
    out[blockIdx.x * block + threadIdx.x] = inside + sum_before(sums);
}
#else
__global__ void scan_parts(const int *data, int *sums, int *out) {
    out[blockIdx.x * block + threadIdx.x] = scan_block(data, sums);
}

__global__ void add_offsets(const int *sums, int *out) {
    out[blockIdx.x * block + threadIdx.x] += sum_before(sums);
}
#endif

int main() {
    const int blocks = 24, n = blocks * block;
    static int data[n], out[n];
    Random random = {3};
    for (int i = 0; i < n; i++) data[i] = random(100);
    int *device_data, *device_sums, *device_out;
    CHECK(cudaMalloc(&device_data, sizeof data));
    CHECK(cudaMalloc(&device_sums, blocks * sizeof *device_sums));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemcpy(device_data, data, sizeof data, cudaMemcpyHostToDevice));
#ifdef RACY
    scan<<<blocks, block>>>(device_data, device_sums, device_out);
#else
    scan_parts<<<blocks, block>>>(device_data, device_sums, device_out);
    add_offsets<<<blocks, block>>>(device_sums, device_out);
#endif
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0, sum = 0; i < n; i++) {
        sum += data[i];
        right = right && out[i] == sum;
    }
    return verdict(right);
}
