// A kernel that launches a kernel: the simulated device says that it cannot, and the program gets an error.
//@ expect: not-checked
//@ exit: 75
//@ variants: clean
//@ nvcc: -rdc=true
//@ not-as-on-gpu: it is told of relocatable code in general there
//@ says: kernels that launch kernels do not run on the simulated device
#include <cstdio>

__global__ void inner(int *data) { data[threadIdx.x] = threadIdx.x; }
__global__ void outer(int *data) { inner<<<1, 32>>>(data); }

int main() {
    int *data;
    cudaMalloc(&data, 32 * sizeof(int));
    outer<<<1, 1>>>(data);
    std::printf("launch: %s\n", cudaGetErrorName(cudaGetLastError()));
}
