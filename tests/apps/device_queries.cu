// What programs ask a device, a context, a kernel and a stream before they begin, and what they set there.
//@ variants: clean
//@ cuda: 12.5
//@[clean] expect: no-race
#include "app.h"
#include <cstdint>
#include <cstring>

struct Pair {
    double first;
    char second;
};

__global__ void kernel_of_four(char a, Pair pair, int *out, short b) { *out = a + b + pair.second; }

int main() {
    bool right = true;
    int count, device, driver, runtime;
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    right = right && driver >= runtime && runtime >= 12000;
    CHECK(cudaGetDeviceCount(&count));
    CHECK(cudaInitDevice(0, 0, 0));
    CHECK(cudaSetDevice(0));
    CHECK(cudaGetDevice(&device));
    right = right && count >= 1 && device == 0;

    cudaDeviceProp properties, wanted;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    right = right && std::strlen(properties.name) > 0 && properties.warpSize == 32;
    right = right && properties.maxThreadsPerBlock == 1024 && properties.maxThreadsDim[2] == 64;
    right = right && properties.maxGridSize[0] == 2147483647 && properties.maxGridSize[1] == 65535;
    right = right && properties.totalConstMem == 65536 && properties.sharedMemPerBlock >= 49152;
    auto same = [&](cudaDeviceAttr attribute, int64_t value) {
        int have;
        CHECK(cudaDeviceGetAttribute(&have, attribute, 0));
        if (have != value) std::printf("attribute %d: %d and %lld\n", attribute, have, (long long)value);
        right = right && have == value;
    };
    same(cudaDevAttrMultiProcessorCount, properties.multiProcessorCount);
    same(cudaDevAttrComputeCapabilityMajor, properties.major);
    same(cudaDevAttrComputeCapabilityMinor, properties.minor);
    same(cudaDevAttrMaxSharedMemoryPerBlockOptin, properties.sharedMemPerBlockOptin);
    same(cudaDevAttrMaxRegistersPerBlock, properties.regsPerBlock);
    same(cudaDevAttrMaxThreadsPerMultiProcessor, properties.maxThreadsPerMultiProcessor);
    same(cudaDevAttrL2CacheSize, properties.l2CacheSize);
    same(cudaDevAttrConcurrentKernels, properties.concurrentKernels);
    same(cudaDevAttrUnifiedAddressing, properties.unifiedAddressing);
    same(cudaDevAttrCooperativeLaunch, properties.cooperativeLaunch);
    same(cudaDevAttrMemoryPoolsSupported, properties.memoryPoolsSupported);
    size_t free, total;
    CHECK(cudaMemGetInfo(&free, &total));
    right = right && total == properties.totalGlobalMem && free <= total;
    std::memset(&wanted, 0, sizeof wanted);
    wanted.major = 7;
    CHECK(cudaChooseDevice(&device, &wanted));
    right = right && device >= 0 && device < count;

    char bus[32];
    CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    CHECK(cudaDeviceGetByPCIBusId(&device, bus));
    right = right && device == 0;
    int reaches = -1, rank = -1;
    CHECK(cudaDeviceCanAccessPeer(&reaches, 0, 0));
    right = right && reaches == 0;
    if (count > 1) CHECK(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, 0, 1));

    unsigned flags;
    CHECK(cudaSetDeviceFlags(cudaDeviceScheduleYield));
    CHECK(cudaGetDeviceFlags(&flags));
    right = right && (flags & cudaDeviceScheduleMask) == cudaDeviceScheduleYield;
    cudaFuncCache cache;
    CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
    CHECK(cudaDeviceGetCacheConfig(&cache));
    right = right && (cache == cudaFuncCachePreferL1 || cache == cudaFuncCachePreferNone);
    CHECK(cudaFuncSetCacheConfig(kernel_of_four, cudaFuncCachePreferShared));
    // What of the L2 cache may persist, and for which memory: speed alone, kept and told, and no more than there is.
    size_t persisting;
    CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 2 * (size_t)properties.persistingL2CacheMaxSize));
    CHECK(cudaDeviceGetLimit(&persisting, cudaLimitPersistingL2CacheSize));
    right = right && persisting > 0 && persisting == (size_t)properties.persistingL2CacheMaxSize;
    right = right && properties.accessPolicyMaxWindowSize > 0;
    cudaStream_t windowed;
    CHECK(cudaStreamCreate(&windowed));
    cudaStreamAttrValue window = {}, window_told = {};
    window.accessPolicyWindow.num_bytes = properties.accessPolicyMaxWindowSize;
    window.accessPolicyWindow.hitRatio = 0.5f;
    window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    CHECK(cudaStreamSetAttribute(windowed, cudaStreamAttributeAccessPolicyWindow, &window));
    CHECK(cudaStreamGetAttribute(windowed, cudaStreamAttributeAccessPolicyWindow, &window_told));
    right = right && window_told.accessPolicyWindow.num_bytes == window.accessPolicyWindow.num_bytes;
    right = right && window_told.accessPolicyWindow.hitProp == cudaAccessPropertyPersisting;
    CHECK(cudaStreamDestroy(windowed));
    CHECK(cudaCtxResetPersistingL2Cache());
    int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    right = right && greatest <= least;
    size_t width;
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
    CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&width, &floats, 0));
    right = right && width >= 1 << 27;
    size_t limit;
    for (cudaLimit which : {cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize}) {
        CHECK(cudaDeviceSetLimit(which, 1 << 16));
        CHECK(cudaDeviceGetLimit(&limit, which));
        right = right && limit >= 1 << 16;
    }

    // Where the parameters of a kernel stand.
    size_t offset, size, offsets[] = {0, 8, 24, 32}, sizes[] = {1, 16, 8, 2};
    for (int i = 0; i < 4; i++) {
        CHECK(cudaFuncGetParamInfo((const void *)kernel_of_four, i, &offset, &size));
        right = right && offset == offsets[i] && size == sizes[i];
    }
    right = right && cudaFuncGetParamInfo((const void *)kernel_of_four, 4, &offset, &size) == cudaErrorInvalidValue;
    cudaGetLastError();

    // A function of the driver by its name.
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuDriverGetVersion", &entry, 12000, cudaEnableDefault, &found));
    int again = 0;
    right = right && found == cudaDriverEntryPointSuccess;
    right = right && reinterpret_cast<int (*)(int *)>(entry)(&again) == 0 && again == driver;
    CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &entry, 12000, cudaEnableDefault, &found));
    right = right && found == cudaDriverEntryPointSymbolNotFound;

    // Events and streams, with nothing left to wait for.
    int *out, result;
    CHECK(cudaMalloc(&out, sizeof(int)));
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    right = right && cudaEventQuery(event) == cudaSuccess;
    Pair pair = {1.5, 20};
    kernel_of_four<<<1, 1>>>(1, pair, out, 300);
    right = right && cudaPeekAtLastError() == cudaSuccess;
    CHECK(cudaEventRecord(event));
    CHECK(cudaDeviceSynchronize());
    right = right && cudaEventQuery(event) == cudaSuccess && cudaStreamQuery(0) == cudaSuccess;
    CHECK(cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost));
    right = right && result == 321;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
    int at, priority;
    CHECK(cudaStreamGetDevice(stream, &at));
    CHECK(cudaStreamGetPriority(stream, &priority));
    CHECK(cudaStreamGetFlags(stream, &flags));
    right = right && at == 0 && priority == greatest && flags == cudaStreamNonBlocking;
    cudaStreamCaptureStatus capturing;
    CHECK(cudaStreamIsCapturing(stream, &capturing));
    right = right && capturing == cudaStreamCaptureStatusNone;
    CHECK(cudaStreamDestroy(stream));

    // An error stays until somebody asks for it.
    right = right && cudaSetDevice(count) == cudaErrorInvalidDevice && cudaPeekAtLastError() == cudaErrorInvalidDevice;
    right = right && cudaGetLastError() == cudaErrorInvalidDevice && cudaGetLastError() == cudaSuccess;
    CHECK(cudaEventDestroy(event));
    CHECK(cudaDeviceReset());
    CHECK(cudaMalloc(&out, sizeof(int)));
    return verdict(right);
}
