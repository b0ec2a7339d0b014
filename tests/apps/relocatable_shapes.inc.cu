// Device functions of relocatable.cu.
#include "app.h"
#include "relocatable.h"

__device__ int scale = 1;
static __device__ int step = 7;

__device__ int Square::area() const { return side * side; }
__device__ int Line::area() const { return larger(side, 0); }

__device__ __noinline__ void add_to(int *total, int value) {
#ifdef RACY
    *total += value;  //~ race A A
#else
    atomicAdd(total, value);
#endif
}

static __global__ void tell(int *out) { *out = step; }

int other_step() {
    int *device, host;
    CHECK(cudaMalloc(&device, sizeof host));
    tell<<<1, 1>>>(device);
    CHECK(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
    return host;
}
