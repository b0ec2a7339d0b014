// Scales an array in tiles. Clean: every thread reaches the barriers.
// Racy: no data race, but threads past the end return before a barrier, which is a warning.
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] says: exit without reaching a barrier
//@[racy] not-as-on-gpu: misuse of barriers is seen by listening to the simulated device
#include "app.h"

__global__ void scale(int n, const float *in, float *out) {
    __shared__ float tile[64];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
#ifdef RACY
    if (i >= n) return;
    tile[t] = 2 * in[i];
#else
    if (i < n) tile[t] = 2 * in[i];
#endif
    __syncthreads();
    if (i < n) out[i] = tile[t] + 1;
}

int main() {
    const int n = 200;
    float in[n], out[n];
    for (int i = 0; i < n; i++) in[i] = i;
    float *device_in, *device_out;
    CHECK(cudaMalloc(&device_in, sizeof in));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemcpy(device_in, in, sizeof in, cudaMemcpyHostToDevice));
    scale<<<4, 64>>>(n, device_in, device_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right &= out[i] == 2 * in[i] + 1;
    return verdict(right);
}
