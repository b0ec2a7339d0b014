// A program of the driver API: it loads the PTX file named by its argument and launches by name.
// Racy: every thread writes the element of its right neighbour's number, two to one.
//@[clean] expect: no-race
//@[racy] expect: race
//@ ptx: -DDEVICE
//@ args: {ptx}
//@ nvcc: -x c++ -cudart none -lcuda
#ifdef DEVICE

#ifdef RACY
#define PLACE(i) ((i) / 2)
#else
#define PLACE(i) (i)
#endif

__device__ int calls;

extern "C" __global__ void squares(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&calls, 1);
    if (i < n) {
        out[PLACE(i)] = i * i;  //~ race A A
    }
}

#else

#include <cstdio>
#include <cstdlib>
#include <cuda.h>

#define CHECK(call)                                                          \
    do {                                                                     \
        CUresult status = (call);                                            \
        const char *name = nullptr;                                          \
        if (status != CUDA_SUCCESS) {                                        \
            cuGetErrorName(status, &name);                                   \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, name ? name : "unknown error"); \
            std::exit(2);                                                    \
        }                                                                    \
    } while (0)

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    FILE *file = std::fopen(argv[1], "rb");
    if (!file) return 2;
    static char text[1 << 20];
    text[std::fread(text, 1, sizeof text - 1, file)] = 0;
    std::fclose(file);

    CHECK(cuInit(0));
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction squares;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&squares, module, "squares"));

    const int n = 1000, block = 128, blocks = (n + block - 1) / block;
    int out[n], count = 0;
    CUdeviceptr device_out, device_calls;
    size_t calls_bytes;
    CHECK(cuMemAlloc(&device_out, sizeof out));
    CHECK(cuMemsetD32(device_out, 7, n));
    CHECK(cuModuleGetGlobal(&device_calls, &calls_bytes, module, "calls"));
    int size = n;
    void *parameters[] = {&device_out, &size};
    CHECK(cuLaunchKernel(squares, blocks, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(out, device_out, sizeof out));
    CHECK(cuMemcpyDtoH(&count, device_calls, sizeof count));
    CHECK(cuMemFree(device_out));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));

    bool right = count == blocks * block && calls_bytes == sizeof count;
    for (int i = 0; i < n; i++) right = right && out[i] == i * i;
    std::printf("result: %s\n", right ? "right" : "wrong");
#ifdef RACY
    return 0;
#else
    return right ? 0 : 1;
#endif
}

#endif
