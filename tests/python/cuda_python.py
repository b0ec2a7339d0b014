"""cuda-python: a kernel that NVRTC compiles, launched through the driver API."""

import ctypes
import sys
from cuda.bindings import driver, nvrtc

LINE = 9  # of the kernel's first line below
SOURCE = """
extern "C" __global__ void shift(int *data, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + step < n)
        data[i] = data[i + step] + 1;  // race
}
"""


def check(result):
    error, *values = result
    assert error.value == 0, error
    return values[0] if len(values) == 1 else values


def main():
    source = f'#line {LINE} "{__file__}"\n{SOURCE[1:]}'
    program = check(nvrtc.nvrtcCreateProgram(source.encode(), b"shift.cu", 0, [], []))
    options = [b"--gpu-architecture=compute_90", b"-lineinfo"]
    check(nvrtc.nvrtcCompileProgram(program, len(options), options))
    size = check(nvrtc.nvrtcGetPTXSize(program))
    ptx = bytearray(size)
    check(nvrtc.nvrtcGetPTX(program, ptx))
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))
    module = check(driver.cuModuleLoadData(bytes(ptx)))
    function = check(driver.cuModuleGetFunction(module, b"shift"))
    n = 1024
    data = check(driver.cuMemAlloc(4 * n))
    check(driver.cuMemsetD32(data, 1, n))
    step = {"racy": 1, "clean": n // 2}[sys.argv[1]]
    values = (int(data), n, step)
    types = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
    check(driver.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, 0, (values, types), 0))  # launch
    check(driver.cuCtxSynchronize())
    print("done")


main()
