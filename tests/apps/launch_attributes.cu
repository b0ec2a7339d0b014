// Launches with attributes, kernels by handle, attributes of functions, and devices' attributes and limits.
//@ variants: clean
//@ cuda: 12.5
//@[clean] expect: no-race
#include "app.h"

#include <cooperative_groups.h>
#include <cstring>
namespace cg = cooperative_groups;

__global__ void where(int *out) {
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) out[blockIdx.x] = cluster.block_rank() * 10 + cluster.num_blocks();
}

__global__ void rotate(int *data, int n) {
    cg::grid_group grid = cg::this_grid();
    int i = grid.thread_rank();
    int next = data[(i + 1) % n];
    grid.sync();
    data[i] = next;
}

__global__ void large(int *out) {
    extern __shared__ int room[];
    room[threadIdx.x * 512] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = room[(threadIdx.x + 1) % blockDim.x * 512];
}

int main() {
    bool right = true;
    const int n = 64;
    int *data, host[n];
    CHECK(cudaMalloc(&data, sizeof host));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));

    // Clusters and programmatic serialization.
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(8);
    config.blockDim = dim3(32);
    config.stream = stream;
    cudaLaunchAttribute attributes[3] = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = 4;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    attributes[2].id = cudaLaunchAttributePriority;
    attributes[2].val.priority = -1;
    config.attrs = attributes;
    config.numAttrs = 3;
    CHECK(cudaLaunchKernelEx(&config, where, data));
    CHECK(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 8; i++) right = right && host[i] == i % 4 * 10 + 4;
    int clusters = 0, size = 0;
    CHECK(cudaOccupancyMaxActiveClusters(&clusters, where, &config));
    CHECK(cudaOccupancyMaxPotentialClusterSize(&size, where, &config));
    right = right && clusters > 0 && size >= 8;
    config.gridDim = dim3(6);
    right = right && cudaLaunchKernelEx(&config, where, data) == cudaErrorInvalidClusterSize;
    cudaGetLastError();

    // A cooperative launch, by attribute and by its own function.
    for (int i = 0; i < n; i++) host[i] = i;
    CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    config.gridDim = dim3(2);
    attributes[0] = {};
    attributes[0].id = cudaLaunchAttributeCooperative;
    attributes[0].val.cooperative = 1;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, rotate, data, n));
    int count = n;
    void *arguments[] = {&data, &count};
    CHECK(cudaLaunchCooperativeKernel((const void *)rotate, dim3(2), dim3(32), arguments, 0, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right = right && host[i] == (i + 2) % n;

    // More shared memory than a kernel has without asking.
    size_t bytes = n * 512 * sizeof(int) / 2;
    large<<<1, n / 2, bytes>>>(data);
    right = right && cudaGetLastError() == cudaErrorInvalidValue;
    CHECK(cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    CHECK(cudaFuncSetAttribute(large, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    large<<<1, n / 2, bytes>>>(data);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n / 2; i++) right = right && host[i] == (i + 1) % (n / 2);
    cudaFuncAttributes known;
    CHECK(cudaFuncGetAttributes(&known, large));
    right = right && known.maxDynamicSharedSizeBytes == (int)bytes && known.maxThreadsPerBlock == 1024;

    // Kernels by handle and by name.
    cudaKernel_t kernel;
    cudaFunction_t function;
    CHECK(cudaGetKernel(&kernel, (const void *)large));
    CHECK(cudaGetFuncBySymbol(&function, (const void *)large));
    void *one[] = {&data};
    CHECK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(n / 2), one, bytes, stream));
    CHECK(cudaStreamSynchronize(stream));
    const char *name;
    CHECK(cudaFuncGetName(&name, (const void *)large));
    right = right && strstr(name, "large") != nullptr;
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &found));
    right = right && entry != nullptr && found == cudaDriverEntryPointSuccess;
    right = right && cudaLaunchKernel((const void *)&host, dim3(1), dim3(1), one, 0, stream) == cudaErrorInvalidDeviceFunction;
    cudaGetLastError();

    // Devices.
    int value;
    for (int id = 1; id <= 140; id++) cudaDeviceGetAttribute(&value, (cudaDeviceAttr)id, 0);
    cudaGetLastError();
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
    right = right && value == 9;
    size_t limit;
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
    CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    right = right && limit == 16 << 20;
    right = right && !strcmp(cudaGetErrorName(cudaErrorGraphExecUpdateFailure), "cudaErrorGraphExecUpdateFailure");
    right = right && !strcmp(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
    return verdict(right);
}
