// One block hands volatile data to the next ones by a flag.
// Racy: its fence is for its own block only. All accesses are strong, so that is no data race.
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] says: warning[CR011]: inter-block unordered strong conflict
#include "app.h"

#ifdef RACY
#define FENCE __threadfence_block
#else
#define FENCE __threadfence
#endif

__global__ void hand_over(volatile int *data, volatile int *ready, int *out) {
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            *data = 42;
            FENCE();
            *ready = 1;
        } else {
            while (*ready == 0) {
            }
            FENCE();
            out[blockIdx.x] = *data;
        }
    }
}

int main() {
    const int blocks = 3;
    int *data, *ready, *device_out, out[blocks];
    CHECK(cudaMalloc(&data, sizeof *data));
    CHECK(cudaMalloc(&ready, sizeof *ready));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemset(ready, 0, sizeof *ready));
    CHECK(cudaMemset(device_out, 0, sizeof out));
    hand_over<<<blocks, 32>>>(data, ready, device_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    return verdict(out[1] == 42 && out[2] == 42);
}
