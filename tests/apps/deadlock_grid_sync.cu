// A cooperative launch whose blocks meet at the barrier of the grid.
// Racy: no data race, but a block without work returns before it. The others would wait for ever, which is reported.
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] exit: 66
//@[racy] says: 0 races, 1 deadlock
//@[racy] says: waiting at the barrier of the grid (`grid.sync()`)
//@[racy] says: note: block (3,0,0) has exited
//@[racy] says: help: every block has to come to each `grid.sync()`
//@[racy] not-as-on-gpu: a GPU that hangs is ended by --timeout
#include <cooperative_groups.h>
#include "app.h"

__global__ void rotate(int *data, int *out, int used) {
    int n = used * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef RACY
    if (i >= n) return;
#endif
    if (i < n) data[i] = 5 * i;
    cooperative_groups::this_grid().sync();
    if (i < n) out[i] = data[(i + blockDim.x) % n];
}

int main() {
    const int used = 3, threads = 64, n = used * threads;
    int out[n], *device_data, *device_out;
    CHECK(cudaMalloc(&device_data, sizeof out));
    CHECK(cudaMalloc(&device_out, sizeof out));
    int copy = used;
    void *parameters[] = {&device_data, &device_out, &copy};
    CHECK(cudaLaunchCooperativeKernel((void *)rotate, dim3(used + 1), dim3(threads), parameters, 0, 0));
    end_or_deadlock();
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right = right && out[i] == 5 * ((i + threads) % n);
    return verdict(right);
}
