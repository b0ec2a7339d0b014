// A barrier of the grid that the program has written itself: blocks count, and wait until all have.
// Racy: no data race, but the last block does not count, and goes on. The others would wait for ever, which is reported.
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] exit: 66
//@[racy] says: for 4 bytes of global memory to change (now 0x3)
//@[racy] says: 3 threads of 3 blocks, the first of them (0,0,0)
//@[racy] says: waiting at `__syncthreads()`, to which 31 of 32 threads have come
//@[racy] says: note: block (3,0,0) has exited
//@[racy] says: help: no thread that is left writes there
//@[racy] not-as-on-gpu: a GPU that hangs is ended by --timeout
#include "app.h"

__device__ unsigned int arrived;

__global__ void two_steps(int *data, int *out) {
    const int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = 3 * i;
#ifdef RACY
    if (blockIdx.x == gridDim.x - 1) return;
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&arrived, 1);
        while (atomicAdd(&arrived, 0) < gridDim.x) __nanosleep(64);
        __threadfence();
    }
    __syncthreads();
    out[i] = data[(i + blockDim.x) % n];
}

int main() {
    const int blocks = 4, threads = 32, n = blocks * threads;
    int out[n], *device_data, *device_out;
    CHECK(cudaMalloc(&device_data, sizeof out));
    CHECK(cudaMalloc(&device_out, sizeof out));
    two_steps<<<blocks, threads>>>(device_data, device_out);
    end_or_deadlock();
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right = right && out[i] == 3 * ((i + threads) % n);
    return verdict(right);
}
