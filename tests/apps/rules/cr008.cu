// A block waits for half of a word that another one writes as a whole.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: error[CR008]
#include "../app.h"

// The example:
__global__ void hand_over(int *data, volatile int *flag, int *out) {
    if (blockIdx.x == 0) {
        *flag = 42;
    } else {
#ifdef RACY
        volatile short *seen = (volatile short *)flag;
#else
        volatile int *seen = flag;
#endif
        while (*seen == 0) {}
        *out = *seen;
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
