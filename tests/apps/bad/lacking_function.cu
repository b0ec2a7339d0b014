// A function that the simulated device lacks says so. The program may go on otherwise than on a GPU.
//@ variants: clean
//@ expect: no-race
//@ exit: 75
//@ says: incomplete: cudaIpcGetMemHandle is not available on the simulated device
//@ stdout: the program sees: cudaErrorNotSupported, cudaErrorNotSupported
//@ not-as-on-gpu: a GPU has the function
#include "../app.h"

__global__ void fill(int *numbers) { numbers[threadIdx.x] = 1; }

int main() {
    int *numbers;
    CHECK(cudaMalloc(&numbers, 32 * sizeof *numbers));
    cudaIpcMemHandle_t handle;
    const char *first = cudaGetErrorName(cudaIpcGetMemHandle(&handle, numbers));
    std::printf("the program sees: %s, %s\n", first, cudaGetErrorName(cudaGetLastError()));
    fill<<<1, 32>>>(numbers);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
