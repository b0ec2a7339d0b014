// Relocatable device code in three translation units: device functions and variables of other units,
// weak templates in several, statics of the same name, and a virtual function that another unit defines.
// The race is in a device function of another unit.
//@[clean] expect: no-race
//@[racy] expect: race
//@ nvcc: -rdc=true
//@ with: relocatable_shapes.inc.cu relocatable_table.inc.cu
#include "app.h"
#include "relocatable.h"

static __device__ int step = 1;
extern __device__ int scale;
extern __shared__ int buffer[];

__global__ void areas(int *out) {
    Square square(threadIdx.x);
    Line line(threadIdx.x);
    const Shape *shape = threadIdx.x % 2 ? (const Shape *)&square : &line;
    buffer[threadIdx.x] = shape->area() * scale + larger((int)threadIdx.x, step);
    __syncthreads();
    out[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

__global__ void totals(const int *data, int *total) { add_to(total, data[threadIdx.x]); }

int main() {
    const int n = 64;
    int host[n], total = 0, scale_now = 3;
    int *data, *sum;
    bool right = true;
    CHECK(cudaMalloc(&data, sizeof host));
    CHECK(cudaMalloc(&sum, sizeof total));
    CHECK(cudaMemcpyToSymbol(scale, &scale_now, sizeof scale_now));
    areas<<<1, n, n * sizeof(int)>>>(data);
    CHECK(cudaGetLastError());
    totals<<<1, n>>>(data, sum);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&total, sum, sizeof total, cudaMemcpyDeviceToHost));
    int expected = 0;
    for (int i = 0; i < n; i++) {
        int j = n - 1 - i;
        right = right && host[i] == (j % 2 ? j * j : j) * scale_now + (j > 1 ? j : 1);
        expected += host[i];
    }
    right = right && total == expected && other_step() == 7 && table_of(5) == 35;
    return verdict(right);
}
