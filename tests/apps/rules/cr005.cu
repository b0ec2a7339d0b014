// A block hands a value to another one, with a fence for its own block only.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR005]
#include "../app.h"

// The example:
__global__ void hand_over(int *data, volatile int *flag, int *out) {
    if (blockIdx.x == 0) {
        *data = 42;
#ifdef RACY
        __threadfence_block();
#else
        __threadfence();
#endif
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        *out = *data;
    }
}

int main() {
    int *data, *flag, *out, found;
    CHECK(cudaMalloc(&data, 4));
    CHECK(cudaMalloc(&flag, 4));
    CHECK(cudaMalloc(&out, 4));
    CHECK(cudaMemset(flag, 0, 4));
    hand_over<<<2, 1>>>(data, flag, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&found, out, sizeof found, cudaMemcpyDeviceToHost));
    return verdict(found == 42);
}
