// A kernel fills and copies memory by the device runtime, some of it from the device's own heap.
// Racy: it changes the source once it has asked for the copy.
//@[clean] expect: no-race
//@[racy] expect: race
//@ unseen-in-fast: order between kernels and the work that they launch not checked
//@ nvcc: -rdc=true
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
#include "app.h"

__global__ void gather(const int *from, const int *heap, int *to) {
    to[threadIdx.x] = from[threadIdx.x] + heap[threadIdx.x];
}

__global__ void root(int *from, int *to, int *result, int *error) {
    int *heap;
    cudaError_t wrong = cudaMalloc(&heap, 64 * sizeof(int));
    from[0] = 9;
    for (int i = 1; i < 64; i++) from[i] = i;
    // In the order of the block's stream.
    cudaMemsetAsync(heap, 1, 64 * sizeof(int), 0);
    cudaMemcpyAsync(to, from, 64 * sizeof(int), cudaMemcpyDeviceToDevice, 0);
    gather<<<1, 64>>>(to, heap, result);
#ifdef RACY
    from[0] = 10;  //~ race-with-call A
#endif
    // A launch that cannot be made, and what becomes of it.
    gather<<<1, 2048>>>(to, heap, result);
    error[0] = cudaGetLastError();
    error[1] = cudaGetLastError();
    int threads = 0, device = 7;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, device);
    error[2] = wrong + threads + device;
}

int main() {
    int *from, *to, *result, *error, host[64], errors[3];
    CHECK(cudaMalloc(&from, sizeof host));
    CHECK(cudaMalloc(&to, sizeof host));
    CHECK(cudaMalloc(&result, sizeof host));
    CHECK(cudaMalloc(&error, sizeof errors));
    root<<<1, 1>>>(from, to, result, error);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, result, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(errors, error, sizeof errors, cudaMemcpyDeviceToHost));
    bool right = errors[0] == cudaErrorInvalidConfiguration && errors[1] == cudaSuccess && errors[2] == 1024;
    for (int i = 1; i < 64; i++) right = right && host[i] == i + 0x01010101;
    return verdict(right && host[0] == 9 + 0x01010101);
}
