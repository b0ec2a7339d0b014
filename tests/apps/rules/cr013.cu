// A bulk copy reads shared memory that threads have written, without a fence between the proxies.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR013]
#include "../app.h"
#include <cuda/ptx>

// The example:
__global__ void store(const int *in, int *out) {
    __shared__ alignas(16) int tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
#ifndef RACY
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out, tile, sizeof tile);
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>());
    }
}

int main() {
    int data[64], *in, *out;
    for (int i = 0; i < 64; i++) data[i] = i;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof data));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    store<<<1, 64>>>(in, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(data, out, sizeof data, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 64; i++) right &= data[i] == i;
    return verdict(right);
}
