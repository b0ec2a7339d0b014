// Only machine code, no PTX (not even in the debug information): nothing can be checked, and the kernels are named.
//@ variants: clean
//@ expect: not-checked
//@ nvcc: -gencode arch=compute_90,code=sm_90 -Xptxas -suppress-debug-info
//@ exit: 75
//@ says: count_threads
//@ says: PTX
#include "../app.h"

__global__ void count_threads(int *counter) {
    atomicAdd(counter, 1);
}

int main() {
    int *counter;
    if (cudaMalloc(&counter, sizeof *counter) != cudaSuccess) return 0;
    count_threads<<<2, 32>>>(counter);
    std::printf("the program sees: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}
