// A program looks at its memory after its kernel has failed: the wait has failed too, but it was one.
//@ variants: clean
//@ expect: no-race
//@ exit: 75
//@ not-on-gpu: a failed kernel leaves managed memory out of reach
#include "app.h"

__global__ void fails(int *data) {
    data[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) __trap();
}

int main() {
    int *data;
    CHECK(cudaMallocManaged(&data, 1024 * sizeof *data));
    fails<<<1, 1024>>>(data);
    cudaError_t error = cudaDeviceSynchronize();
    return verdict(error == cudaErrorLaunchFailure && data[5] == 1);
}
