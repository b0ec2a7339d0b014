// One kernel counts, the next one follows a stray pointer: the program sees the error and exits with 3.
// A race found before the fault is reported all the same.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] exit: 3
//@[clean] says: 2 launches checked
//@ stdout: the program sees: an illegal memory access was encountered
#include "../app.h"

__global__ void count_threads(int *counter) {
#ifdef RACY
    *counter += 1;  //~ race A A
#else
    atomicAdd(counter, 1);
#endif
}

__global__ void follow(int *pointer) {
    *pointer = 1;
}

int main() {
    int *counter;
    CHECK(cudaMalloc(&counter, sizeof *counter));
    count_threads<<<2, 32>>>(counter);
    CHECK(cudaGetLastError());
    follow<<<1, 1>>>(counter + (1 << 28));
    cudaError_t status = cudaDeviceSynchronize();
    std::printf("the program sees: %s\n", cudaGetErrorString(status));
    // The error stays: nothing works any more in this process.
    return status == cudaErrorIllegalAddress && cudaMalloc(&counter, 4) == cudaErrorIllegalAddress ? 3 : 4;
}
