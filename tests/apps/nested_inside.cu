// A kernel that a kernel launches reads what another of its threads writes. Racy: without a barrier in between.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] unseen-in-fast: order between kernels and the work that they launch not checked
//@[racy] says: launched by outer(int*, int) at
//@ nvcc: -rdc=true
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
#include "app.h"

__global__ void rotate(int *data, int *scratch) {
    scratch[threadIdx.x] = data[threadIdx.x];  //~ race A
#ifndef RACY
    __syncthreads();
#endif
    data[threadIdx.x] = scratch[(threadIdx.x + 1) % blockDim.x];  //~ race A
}

// Both launches are in the block's stream.
__global__ void outer(int *data, int times) {
    for (int i = 0; i < times; i++) rotate<<<1, 64>>>(data, data + 64);
}

int main() {
    int *data, host[64];
    for (int i = 0; i < 64; i++) host[i] = i * i;
    CHECK(cudaMalloc(&data, 2 * sizeof host));
    CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    outer<<<1, 1>>>(data, 2);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 64; i++) right = right && host[i] == (i + 2) % 64 * ((i + 2) % 64);
    return verdict(right);
}
