// Steps of a cooperative kernel that two barriers of the grid divide, one of which is missing. The help names the place of
// the missing one only. What the report advises, the clean variant does, as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: put a barrier of the grid after the write at advice_grid_loop.cu:28 (`cooperative_groups::this_grid().sync()`, in a cooperative launch), or end the kernel there
//@[racy] says: help: put a barrier of the grid after the read at advice_grid_loop.cu:40 (`cooperative_groups::this_grid().sync()`, in a cooperative launch), or end the kernel there
//@[racy] says: SUMMARY: cudarun-check: 2 races (2 errors)
#include "app.h"
#include <cooperative_groups.h>

namespace groups = cooperative_groups;

#ifdef RACY
#define ADVISED(text)
#else
#define ADVISED(text) text
#endif

// The barrier at the end of a step is missing.
__global__ void average(int *now, int *next, int steps)
{
    groups::grid_group grid = groups::this_grid();
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 0; step < steps; step++) {
        next[i] = (now[i] + now[(i + 1) % n]) / 2;
        grid.sync();
        now[i] = next[i];
        ADVISED(grid.sync();)
    }
}

// The barrier in the middle is missing.
__global__ void shift(int *now, int *next, int steps)
{
    groups::grid_group grid = groups::this_grid();
    int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int step = 0; step < steps; step++) {
        // The element that it takes is written by another block.
        int taken = next[(i + blockDim.x) % n];
        ADVISED(grid.sync();)
        next[i] = taken + 1;
        grid.sync();
    }
    now[i] = next[i];
}

int main()
{
    const int blocks = 4, threads = 64, n = blocks * threads, steps = 3;
    int expected[n], step[n], *now, *next;
    CHECK(cudaMallocManaged(&now, sizeof expected));
    CHECK(cudaMallocManaged(&next, sizeof expected));
    for (int i = 0; i < n; i++) now[i] = expected[i] = i * i;
    void *arguments[] = {&now, &next, (void *)&steps};
    CHECK(cudaLaunchCooperativeKernel((void *)average, dim3(blocks), dim3(threads), arguments, 0, 0));
    CHECK(cudaDeviceSynchronize());
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < n; i++) step[i] = (expected[i] + expected[(i + 1) % n]) / 2;
        for (int i = 0; i < n; i++) expected[i] = step[i];
    }
    bool right = true;
    for (int i = 0; i < n; i++) right = right && now[i] == expected[i];
    for (int i = 0; i < n; i++) next[i] = i;
    CHECK(cudaLaunchCooperativeKernel((void *)shift, dim3(blocks), dim3(threads), arguments, 0, 0));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) right = right && now[i] == (i + steps * threads) % n + steps;
    return verdict(right);
}
