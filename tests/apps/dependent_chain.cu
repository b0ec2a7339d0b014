// A chain of programmatic dependent launches: the third reads, before it waits, what the first has written.
// That is right where the second lets the third begin after it has itself waited for the first.
// Racy: the second lets the third begin before it waits, so the first may still run.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: help: call `cudaGridDependencySynchronize()` (`griddepcontrol.wait`) in the second kernel before the access: until then a programmatic dependent launch may run beside the launch ahead of it
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include "app.h"

__global__ void produce(int *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
    if (i < n) data[i] = 3 * i;  //~ race A
}

__global__ void prepare(int *result, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef RACY
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#else
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    if (i < n) result[i] = 1;
}

__global__ void consume(const int *data, int *result, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? data[i] : 0;  //~ race A
    cudaGridDependencySynchronize();
    if (i < n) result[i] += value;
}

// One block of two lets nobody begin before it has waited: so nobody begins before the launch ahead has ended.
__global__ void prepare_by_halves(int *result, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x % 2 == 1) cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
    if (i < n) result[i] = 1;
}

template <typename Kernel, typename... Arguments>
static void launch_early(cudaStream_t stream, int blocks, Kernel kernel, Arguments... arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(128);
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

static bool holds(const int *device, int n) {
    int *host = new int[n];
    CHECK(cudaMemcpy(host, device, n * sizeof *host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right = right && host[i] == 3 * i + 1;
    delete[] host;
    return right;
}

int main() {
    const int n = 1024, blocks = n / 128;
    int *data, *result;
    cudaStream_t stream;
    CHECK(cudaMalloc(&data, n * sizeof *data));
    CHECK(cudaMalloc(&result, n * sizeof *result));
    CHECK(cudaStreamCreate(&stream));
    launch_early(stream, blocks, produce, data, n);
    launch_early(stream, blocks, prepare, result, n);
    launch_early(stream, blocks, consume, (const int *)data, result, n);
    CHECK(cudaStreamSynchronize(stream));
    bool right = holds(result, n);
    launch_early(stream, blocks, produce, data, n);
    launch_early(stream, blocks, prepare_by_halves, result, n);
    launch_early(stream, blocks, consume, (const int *)data, result, n);
    CHECK(cudaStreamSynchronize(stream));
    right = right && holds(result, n);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(data));
    CHECK(cudaFree(result));
    return verdict(right);
}
