"""Triton without PyTorch: the memory is the driver's, and the launch goes through Triton's own runtime."""

import ctypes
import sys
import triton
import triton.language as tl


@triton.jit
def shift(data, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i + step < n
    value = tl.load(data + i + step, mask=inside)  # race
    tl.store(data + i, value + 1, mask=inside)  # race


@triton.jit
def total(data, sums, BLOCK: tl.constexpr):
    # All threads that hold a part of the sum store it in shared memory, which is Triton's doing.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + tl.program_id(0), tl.sum(tl.load(data + i), axis=0))


class Array:
    """What Triton takes for a tensor."""

    dtype = "int32"

    def __init__(self, driver, n):
        address = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * n)) == 0
        assert driver.cuMemsetD32_v2(address, 1, ctypes.c_size_t(n)) == 0
        self.address = address.value

    def data_ptr(self):
        return self.address


def main():
    print(triton.runtime.driver.active.get_current_target())
    driver = ctypes.CDLL("libcuda.so.1")
    data = Array(driver, 1024)
    step = {"racy": 1, "clean": 512}[sys.argv[1]]
    shift[(4,)](data, 1024, step, BLOCK=256)  # launch
    assert driver.cuCtxSynchronize() == 0
    total[(4,)](data, Array(driver, 4), BLOCK=256)
    assert driver.cuCtxSynchronize() == 0
    print("done")


main()
