// A program that fails for a reason of its own.
//@ expect(clean): no-race
//@ expect(racy): race
//@ exit(clean): 7
#include "../app.h"

__global__ void count_threads(int *counter) {
#ifdef RACY
    *counter += 1;  //~ race A A
#else
    atomicAdd(counter, 1);
#endif
}

int main() {
    int *counter;
    CHECK(cudaMalloc(&counter, sizeof *counter));
    count_threads<<<2, 32>>>(counter);
    CHECK(cudaDeviceSynchronize());
    std::exit(7);
}
