// Programmatic dependent launch: the second kernel begins while the first still runs, prepares its own part, and
// waits for the first before it reads what that has written.
// Racy: it reads before it waits; one thread waits for its block, and no barrier is behind that; of three launches in a
// row, the second lets the third begin before it waits itself, so that the first may still run beside the third.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: help: call `cudaGridDependencySynchronize()` (`griddepcontrol.wait`) in the second kernel before the access: until then a programmatic dependent launch may run beside the launch ahead of it
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include "app.h"

__global__ void produce(int *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaTriggerProgrammaticLaunchCompletion();
    if (i < n) data[i] = 3 * i;  //~ race A, race B, race C
}

__global__ void consume(const int *data, int *result, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = 1;
#ifdef RACY
    if (i < n) value += data[i];  //~ race A
#endif
    if (i < n) result[i] = value;
    cudaGridDependencySynchronize();
#ifndef RACY
    if (i < n) value += data[i];
#endif
    if (i < n) result[i] = value;
}

// One thread waits, and its block for that thread.
__global__ void consume_together(const int *data, int *copy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) cudaGridDependencySynchronize();
#ifndef RACY
    __syncthreads();
#endif
    if (i < n) copy[i] = data[i];  //~ race B
}

// Prepares the result for another launch, and lets that begin.
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

// The same. Half of the blocks let it begin before they wait; it has to wait for the other half.
__global__ void prepare_by_halves(int *result, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x % 2 == 1) cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
    if (i < n) result[i] = 1;
}

// Reads the data of the launch before the last one without waiting for that.
__global__ void add_data(const int *data, int *result, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? data[i] : 0;  //~ race C
    cudaGridDependencySynchronize();
    if (i < n) result[i] += value;
}

// Lets nobody begin early, so whoever comes next need not wait.
__global__ void twice(int *result, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaGridDependencySynchronize();
    if (i < n) result[i] *= 2;
}

__global__ void plus_one(int *result, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) result[i] += 1;
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

int main() {
    const int n = 4096, blocks = n / 128;
    int *data, *result, *copy, *chained, *host = new int[n], *copied = new int[n], *sums = new int[2 * n];
    cudaStream_t stream;
    CHECK(cudaMalloc(&data, n * sizeof *data));
    CHECK(cudaMalloc(&result, n * sizeof *result));
    CHECK(cudaMalloc(&copy, n * sizeof *copy));
    CHECK(cudaMalloc(&chained, 2 * n * sizeof *chained));
    CHECK(cudaStreamCreate(&stream));
    for (int round = 0; round < 2; round++) {
        produce<<<blocks, 128, 0, stream>>>(data, n);
        launch_early(stream, blocks, consume, (const int *)data, result, n);
        twice<<<blocks, 128, 0, stream>>>(result, n);
        launch_early(stream, blocks, plus_one, result, n);
        produce<<<blocks, 128, 0, stream>>>(data, n);
        launch_early(stream, blocks, consume_together, (const int *)data, copy, n);
        CHECK(cudaStreamSynchronize(stream));
    }
    for (auto second : {prepare, prepare_by_halves}) {
        produce<<<blocks, 128, 0, stream>>>(data, n);
        launch_early(stream, blocks, second, chained, n);
        launch_early(stream, blocks, add_data, (const int *)data, chained, n);
        CHECK(cudaStreamSynchronize(stream));
        chained += n;
    }
    chained -= 2 * n;
    CHECK(cudaMemcpy(host, result, n * sizeof *host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(copied, copy, n * sizeof *copied, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(sums, chained, 2 * n * sizeof *sums, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 2 * n; i++) right = right && sums[i] == 3 * (i % n) + 1;
    for (int i = 0; i < n; i++) right = right && host[i] == 2 * (3 * i + 1) + 1 && copied[i] == 3 * i;
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(data));
    CHECK(cudaFree(result));
    CHECK(cudaFree(copy));
    CHECK(cudaFree(chained));
    delete[] host;
    delete[] copied;
    delete[] sums;
    return verdict(right);
}
