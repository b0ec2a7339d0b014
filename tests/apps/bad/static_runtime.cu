// The CUDA runtime is linked statically, nvcc's default: the tool says which flag helps.
//@ variants: clean
//@ expect: not-checked
//@ nvcc: -cudart static
//@ exit: 75
//@ says: -cudart shared
//@ not-as-on-gpu: it is refused on the simulated device only
#include "../app.h"

__global__ void count_threads(int *counter) {
    atomicAdd(counter, 1);
}

int main() {
    int *counter;
    CHECK(cudaMalloc(&counter, sizeof *counter));
    count_threads<<<2, 32>>>(counter);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
