// A program that hands over text that is not PTX: the load fails as it would on a real driver.
//@ variants: clean
//@ expect: not-checked
//@ nvcc: -x c++ -cudart none -lcuda
//@ exit: 75
//@ says: :4:
//@ says: expected the type of a variable, found `{`
//@ stdout: the program sees: CUDA_ERROR_INVALID_PTX
//@ not-as-on-gpu: what it expects is said by the simulated device
#include <cstdio>
#include <cuda.h>

int main() {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    const char *name = "nothing";
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return 2;
    if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return 2;
    if (cuCtxSetCurrent(context) != CUDA_SUCCESS) return 2;
    CUresult status = cuModuleLoadData(&module, ".version 8.0\n.target sm_90\n.address_size 64\n"
                                                ".visible .entry broken( { add.u32 %r1, ; }\n");
    cuGetErrorName(status, &name);
    std::printf("the program sees: %s\n", name);
    return status == CUDA_SUCCESS;
}
