// A kernel gets a pointer to the end of a buffer and counts backwards from it. Another one reads a buffer that consists of
// two pieces of memory, mapped one behind the other, by indices that lead from the first piece into the second.
// Racy: the kernels write the buffers that they read.
//@[clean] expect: no-race
//@[racy] expect: race
//@ nvcc: -cudart shared -arch=sm_90 -lcuda
//@[clean] verify: this-data
//@[racy] verify: race
#include "app.h"

#include <cuda.h>

static const int threads = 64, n = 256;

__global__ void reverse(int *written, const int *end, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    written[i] = i;          //~ race A
    out[i] = end[-1 - i];    //~ race A
}

__global__ void gather(int *written, const int *buffer, const int *index, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    written[i] = i;               //~ race B
    out[i] = buffer[index[i]];    //~ race B
}

int main() {
    int *first, *second, *out, *index, host[n], last;
    CHECK(cudaMalloc(&first, sizeof host));
    CHECK(cudaMalloc(&second, sizeof host));
    CHECK(cudaMalloc(&out, sizeof host));
    CHECK(cudaMalloc(&index, sizeof host));
    CHECK(cudaMemset(second, 0, sizeof host));

    CUmemAllocationProp kind = {};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access = {kind.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t piece;
    DRIVER(cuMemGetAllocationGranularity(&piece, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr at;
    DRIVER(cuMemAddressReserve(&at, 2 * piece, 0, 0, 0));
    for (int number = 0; number < 2; number++) {
        CUmemGenericAllocationHandle handle;
        DRIVER(cuMemCreate(&handle, piece, &kind, 0));
        DRIVER(cuMemMap(at + number * piece, piece, 0, handle, 0));
    }
    DRIVER(cuMemSetAccess(at, 2 * piece, &access, 1));
    int *buffer = (int *)at, half = (int)(piece / sizeof(int));
    CHECK(cudaMemset(buffer, 0, 2 * piece));
    for (int i = 0; i < n; i++) host[i] = half + n - 1 - i;
    CHECK(cudaMemcpy(index, host, sizeof host, cudaMemcpyHostToDevice));

#ifdef RACY
    reverse<<<n / threads, threads>>>(first, first + n, out);
    gather<<<n / threads, threads>>>(buffer + half, buffer, index, out);
#else
    reverse<<<n / threads, threads>>>(first, second + n, out);
    gather<<<n / threads, threads>>>(first, buffer, index, out);
#endif
    CHECK(cudaMemcpy(&last, out + n - 1, sizeof last, cudaMemcpyDeviceToHost));
    return verdict(last == 0);
}
