// The program asks for a function of the driver that the simulated device lacks, and launches another kernel because of
// that. Asking for a function that no driver has does not count.
//@ variants: clean
//@ expect: no-race
//@ exit: 75
//@ says: incomplete: cuTensorMapEncodeTiled is not available on the simulated device
//@ stdout: the program sees: cudaSuccess, 1, 0
//@ not-as-on-gpu: a GPU has the function
#include "../app.h"

__global__ void fill(int *numbers) { numbers[threadIdx.x] = 1; }

int main() {
    void *function, *none;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &none, 12000, cudaEnableDefault, &found));
    const char *error = cudaGetErrorName(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    std::printf("the program sees: %s, %d, %d\n", error, (int)found, function != nullptr);
    int *numbers;
    CHECK(cudaMalloc(&numbers, 32 * sizeof *numbers));
    if (!function) fill<<<1, 32>>>(numbers);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
