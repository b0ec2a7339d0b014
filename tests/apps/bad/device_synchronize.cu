// A kernel that waits for what it has launched, by the older interface of the device runtime: no sm_90 can, and the
// simulated device says so. Kernels that do not come to the call run.
//@ expect: not-checked
//@ exit: 75
//@ variants: clean
//@ nvcc: -rdc=true -cudart shared -arch=sm_80 -DCUDA_FORCE_CDP1_IF_SUPPORTED
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
//@ says: a call of cudaDeviceSynchronize, which the simulated device's device runtime does not have
//@ stdout: inner: 31, outer: cudaErrorNotSupported
#include <cstdio>

__global__ void inner(int *data) { data[threadIdx.x] = threadIdx.x; }
__global__ void outer(int *data, bool waits) {
    inner<<<1, 32>>>(data);
    if (waits) cudaDeviceSynchronize();
}

int main() {
    int *data, last = 0;
    cudaMalloc(&data, 32 * sizeof(int));
    outer<<<1, 1>>>(data, false);
    cudaMemcpy(&last, data + 31, sizeof last, cudaMemcpyDeviceToHost);
    outer<<<1, 1>>>(data, true);
    cudaError_t error = cudaGetLastError();
    std::printf("inner: %d, outer: %s\n", last, cudaGetErrorName(error));
}
