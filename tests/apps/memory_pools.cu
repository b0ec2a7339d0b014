// Memory pools: the default one and one of the program's own, their attributes, and memory that comes
// and goes in the order of a stream.
//@ variants: clean
//@[clean] expect: no-race
#include "app.h"

__global__ void fill(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] = value; }

int main() {
    const int n = 512;
    bool right = true;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int supported = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    right = right && supported == 1;

    cudaMemPool_t pool, own;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    unsigned long long threshold = ~0ull, told = 0;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &told));
    right = right && told == threshold;

    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypeNone;
    props.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemPoolCreate(&own, &props));
    cudaMemAccessDesc access = {};
    access.location = props.location;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    CHECK(cudaMemPoolSetAccess(own, &access, 1));
    cudaMemAccessFlags flags;
    CHECK(cudaMemPoolGetAccess(&flags, own, &access.location));
    right = right && flags == cudaMemAccessFlagsProtReadWrite;

    int *one, *two, host[n];
    CHECK(cudaMallocAsync(&one, sizeof host, stream));
    CHECK(cudaMallocFromPoolAsync(&two, sizeof host, own, stream));
    CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &told));
    right = right && told >= sizeof host;
    fill<<<n / 128, 128, 0, stream>>>(one, 1);
    fill<<<n / 128, 128, 0, stream>>>(two, 2);
    CHECK(cudaMemcpyAsync(host, two, sizeof host, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(two, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < n; i++) right = right && host[i] == 2;
    CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &told));
    right = right && told == 0;
    CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemHigh, &told));
    right = right && told >= sizeof host;

    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, one));
    right = right && attributes.type == cudaMemoryTypeDevice && attributes.device == 0;
    CHECK(cudaDeviceSetMemPool(0, own));
    cudaMemPool_t current;
    CHECK(cudaDeviceGetMemPool(&current, 0));
    right = right && current == own;
    CHECK(cudaMallocAsync(&two, sizeof host, stream));
    CHECK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &told));
    right = right && told >= sizeof host;
    CHECK(cudaFreeAsync(two, stream));
    CHECK(cudaFree(one));
    CHECK(cudaMemPoolTrimTo(own, 0));
    CHECK(cudaMemPoolDestroy(own));
    CHECK(cudaDeviceGetMemPool(&current, 0));
    right = right && current == pool;
    CHECK(cudaStreamDestroy(stream));
    return verdict(right);
}
