// A constant table and a static kernel of relocatable.cu.
#include "app.h"
#include "relocatable.h"

__constant__ int table[8] = {0, 7, 14, 21, 28, 35, 42, 49};

static __global__ void tell(int index, int *out) { *out = larger(table[index], 0); }

int table_of(int index) {
    int *device, host;
    CHECK(cudaMalloc(&device, sizeof host));
    tell<<<1, 1>>>(index, device);
    CHECK(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
    return host;
}
