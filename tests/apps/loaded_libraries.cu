// Libraries that the runtime loads: a file of PTX and the same from memory, each with its own kernels and variables.
//@ variants: clean
//@ cuda: 12.8
//@[clean] expect: no-race
//@ ptx: -arch=sm_90
//@ args: {ptx}
#include "app.h"
#include <cstring>
#include <string>

extern "C" {
__device__ int step = 5;
__managed__ int calls = 0;

__global__ void forward(int *data) {
    data[threadIdx.x] += step;
    if (threadIdx.x == 0) calls++;
}

__global__ void back(int *data) { data[threadIdx.x] -= step; }
}

static bool work(cudaLibrary_t library, int *data) {
    unsigned count;
    CHECK(cudaLibraryGetKernelCount(&count, library));
    cudaKernel_t all[2], forward, back;
    bool right = count == 2;
    CHECK(cudaLibraryEnumerateKernels(all, 2, library));
    CHECK(cudaLibraryGetKernel(&forward, library, "forward"));
    CHECK(cudaLibraryGetKernel(&back, library, "back"));
    right = right && ((all[0] == forward && all[1] == back) || (all[0] == back && all[1] == forward));
    right = right && cudaLibraryGetKernel(&all[0], library, "sideways") == cudaErrorSymbolNotFound;
    cudaGetLastError();
    CHECK(cudaKernelSetAttributeForDevice(forward, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024, 0));

    void *step_at;
    size_t bytes;
    CHECK(cudaLibraryGetGlobal(&step_at, &bytes, library, "step"));
    int step;
    CHECK(cudaMemcpy(&step, step_at, sizeof step, cudaMemcpyDeviceToHost));
    right = right && bytes == sizeof step && step == 5;
    step = 9;
    CHECK(cudaMemcpy(step_at, &step, sizeof step, cudaMemcpyHostToDevice));
    void *calls_at;
    CHECK(cudaLibraryGetManaged(&calls_at, &bytes, library, "calls"));
    right = right && bytes == sizeof(int);

    int host[32] = {};
    CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    void *arguments[] = {&data};
    CHECK(cudaLaunchKernel((const void *)forward, dim3(1), dim3(32), arguments, 0, 0));
    CHECK(cudaLaunchKernel((const void *)forward, dim3(1), dim3(32), arguments, 1024, 0));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    CHECK(cudaLaunchKernelExC(&config, (const void *)back, arguments));
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    for (int x : host) right = right && x == 9;
    return right && *static_cast<int *>(calls_at) == 2;
}

int main(int, char **arguments) {
    int *data;
    CHECK(cudaMalloc(&data, 32 * sizeof(int)));
    cudaLibrary_t from_file, from_memory, neither;
    CHECK(cudaLibraryLoadFromFile(&from_file, arguments[1], nullptr, nullptr, 0, nullptr, nullptr, 0));
    std::string text;
    FILE *file = std::fopen(arguments[1], "r");
    for (int c; file && (c = std::fgetc(file)) != EOF;) text += (char)c;
    CHECK(cudaLibraryLoadData(&from_memory, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    // Each has a step of its own, and so has the program.
    bool right = work(from_file, data) && work(from_memory, data);
    int own;
    CHECK(cudaMemcpyFromSymbol(&own, step, sizeof own));
    right = right && own == 5 && calls == 0;
    right = right && cudaLibraryLoadFromFile(&neither, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr, 0) != cudaSuccess;
    cudaGetLastError();
    CHECK(cudaLibraryUnload(from_file));
    CHECK(cudaLibraryUnload(from_memory));
    return verdict(right);
}
