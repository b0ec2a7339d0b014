// The same memory is mapped at two addresses. The first stream fills the numbers at the first address and doubles them at
// the second. The second stream adds them up at the second address. Then each block reverses its part: its threads write
// at the first address and read at the second.
// Racy: the second stream does not wait for the first, and no barrier is between write and read.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] unseen-in-fast: from launch #1 (fill(int*)) on, memory was mapped at two addresses: races between accesses by different addresses of one byte are not found
//@ not-as-on-gpu: cells take the two addresses of one byte for two bytes
//@ nvcc: -cudart shared -arch=sm_90 -lcuda
//@[clean] verify: unknown
//@[racy] verify: race
#include "app.h"

#include <cuda.h>

static const int n = 1024, threads = 128;

__global__ void fill(int *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = i;  //~ race A
}

__global__ void twice(int *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = 2 * data[i];  //~ race B
}

__global__ void sum(const int *data, unsigned *total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(total, (unsigned)data[i]);  //~ race A, race B
}

__global__ void turn(int *data, const int *same, int *out) {
    int first = blockIdx.x * blockDim.x, last = first + blockDim.x - 1;
    data[first + threadIdx.x] = (int)threadIdx.x;  //~ race C
#ifndef RACY
    asm volatile("fence.proxy.alias;" ::: "memory");
    __syncthreads();
    asm volatile("fence.proxy.alias;" ::: "memory");
#endif
    out[first + threadIdx.x] = same[last - (int)threadIdx.x];  //~ race C
}

// Maps memory at a new address.
static int *map(CUmemGenericAllocationHandle handle, size_t bytes, CUmemLocation location) {
    CUdeviceptr at;
    CUmemAccessDesc access = {location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    DRIVER(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    DRIVER(cuMemMap(at, bytes, 0, handle, 0));
    DRIVER(cuMemSetAccess(at, bytes, &access, 1));
    return (int *)at;
}

int main() {
    unsigned *total, host = 0;
    int *out, turned[n];
    CHECK(cudaMalloc(&total, sizeof *total));
    CHECK(cudaMalloc(&out, sizeof turned));
    CHECK(cudaMemset(total, 0, sizeof *total));
    CHECK(cudaDeviceSynchronize());

    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t bytes;
    CUmemGenericAllocationHandle handle;
    DRIVER(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    DRIVER(cuMemCreate(&handle, bytes, &prop, 0));
    int *one = map(handle, bytes, prop.location), *other = map(handle, bytes, prop.location);
    DRIVER(cuMemRelease(handle));

    cudaStream_t first, second;
    cudaEvent_t filled;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    fill<<<n / threads, threads, 0, first>>>(one);
    twice<<<n / threads, threads, 0, first>>>(other);
    CHECK(cudaEventRecord(filled, first));
#ifndef RACY
    CHECK(cudaStreamWaitEvent(second, filled, 0));
#endif
    sum<<<n / threads, threads, 0, second>>>(other, total);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&host, total, sizeof host, cudaMemcpyDeviceToHost));
    bool right = host == (unsigned)n * (n - 1);

    turn<<<n / threads, threads>>>(one, other, out);
    CHECK(cudaMemcpy(turned, out, sizeof turned, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right = right && turned[i] == threads - 1 - i % threads;
    return verdict(right);
}
