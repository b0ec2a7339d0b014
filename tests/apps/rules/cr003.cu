// Blocks add to one element.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR003]
#include "../app.h"

// The example:
__global__ void sum(const int *data, int *total) {
#ifdef RACY
    *total += data[blockIdx.x];
#else
    atomicAdd(total, data[blockIdx.x]);
#endif
}

int main() {
    int data[4] = {1, 2, 3, 4}, *memory, *total, found;
    CHECK(cudaMalloc(&memory, sizeof data));
    CHECK(cudaMalloc(&total, sizeof found));
    CHECK(cudaMemset(total, 0, sizeof found));
    CHECK(cudaMemcpy(memory, data, sizeof data, cudaMemcpyHostToDevice));
    sum<<<4, 1>>>(memory, total);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&found, total, sizeof found, cudaMemcpyDeviceToHost));
    return verdict(found == 10);
}
