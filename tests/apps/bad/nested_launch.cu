// A kernel that launches a kernel: the simulated device says that it cannot, and the program gets an error; as on
// a GPU, it says that it does not check it.
//@ expect: not-checked
//@ exit: 75
//@ variants: clean
//@ nvcc: -rdc=true
//@ says: kernels that launch kernels
#include <cstdio>

__global__ void inner(int *data) { data[threadIdx.x] = threadIdx.x; }
__global__ void outer(int *data) { inner<<<1, 32>>>(data); }

int main() {
    int *data;
    cudaMalloc(&data, 32 * sizeof(int));
    outer<<<1, 1>>>(data);
    std::printf("launch: %s\n", cudaGetErrorName(cudaGetLastError()));
}
