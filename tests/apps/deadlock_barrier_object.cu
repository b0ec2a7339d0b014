// Warps of a block hand tiles over through a cuda::barrier, whose wait looks at the clock between two looks.
// Racy: no data race, but one warp leaves without its last arrival, for which the others wait.
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] exit: 66
//@[racy] says: waiting for a phase of the mbarrier
//@[racy] says: which lacks 32 arrivals
//@[racy] says: help: let as many threads arrive as the mbarrier was initialised for
//@[racy] not-as-on-gpu: a GPU that hangs is ended by --timeout
#include <cuda/barrier>
#include "app.h"

__global__ void shift(const int *in, int *out) {
    __shared__ int tile[96];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> met;
    const int t = threadIdx.x;
    if (t == 0) init(&met, blockDim.x);
    __syncthreads();
    for (int step = 0; step < 4; step++) {
        tile[t] = in[t] + step;
        met.arrive_and_wait();
        out[t] = tile[(t + 1) % 96];
#ifdef RACY
        if (step == 2 && t >= 64) return;
#endif
        met.arrive_and_wait();
    }
}

int main() {
    int in[96], out[96], *device_in, *device_out;
    for (int i = 0; i < 96; i++) in[i] = 2 * i;
    CHECK(cudaMalloc(&device_in, sizeof in));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemcpy(device_in, in, sizeof in, cudaMemcpyHostToDevice));
    shift<<<1, 96>>>(device_in, device_out);
    end_or_deadlock();
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 96; i++) right = right && out[i] == 2 * ((i + 1) % 96) + 3;
    return verdict(right);
}
