// A program that is killed between two launches.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] exit: 137
#include <csignal>
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
    std::raise(SIGKILL);
}
