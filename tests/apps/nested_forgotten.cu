// Every thread of two blocks fires a kernel and forgets it; these count by atomics.
// Racy: they count without.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] unseen-in-fast: order between kernels and the work that they launch not checked
//@ nvcc: -rdc=true
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
#include "app.h"

__global__ void count(int *counter, int by) {
#ifdef RACY
    *counter = *counter + by;  //~ race A A
#else
    atomicAdd(counter, by);
#endif
}

__global__ void root(int *counter) {
    count<<<1, 1, 0, cudaStreamFireAndForget>>>(counter, threadIdx.x);
}

int main() {
    int *counter, host = 0;
    CHECK(cudaMalloc(&counter, sizeof host));
    CHECK(cudaMemset(counter, 0, sizeof host));
    root<<<2, 8>>>(counter);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&host, counter, sizeof host, cudaMemcpyDeviceToHost));
    return verdict(host == 2 * 28);
}
