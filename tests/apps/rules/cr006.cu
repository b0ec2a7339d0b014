// A block hands a value to another one, which has no fence behind the flag.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR006]
#include "../app.h"

// The example:
__global__ void hand_over(int *data, volatile int *flag, int *out) {
    if (blockIdx.x == 0) {
        *data = 42;
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
#ifndef RACY
        __threadfence();
#endif
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
