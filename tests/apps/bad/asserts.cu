// A device assertion that fails: one line from the device, an error that the program sees.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] exit: 5
//@ says: asserts.cu:12
//@ says: Assertion `i < 3` failed
#include <cassert>
#include "../app.h"

__global__ void check(int *counter) {
    int i = threadIdx.x;
    assert(i < 3);
#ifdef RACY
    *counter += i;  //~ race A A
#else
    atomicAdd(counter, i);
#endif
}

int main() {
    int *counter;
    CHECK(cudaMalloc(&counter, sizeof *counter));
    check<<<1, 3>>>(counter);
    check<<<1, 4>>>(counter);
    cudaError_t status = cudaDeviceSynchronize();
    std::printf("the program sees: %s\n", cudaGetErrorString(status));
    return status == cudaErrorAssert ? 5 : 4;
}
