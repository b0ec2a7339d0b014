"""numba-cuda: a barrier of the grid."""

# help: `cuda.cg.this_grid().sync()`

import sys
import numpy as np
from numba import cuda


@cuda.jit(lineinfo=True)
def turn(data):
    i = cuda.grid(1)
    data[i] = i + 1  # race
    other = data[data.size - 1 - i]  # race
    cuda.cg.this_grid().sync()
    data[i] = other


@cuda.jit(lineinfo=True)
def turn_in_order(data):
    i = cuda.grid(1)
    data[i] = i + 1
    cuda.cg.this_grid().sync()
    other = data[data.size - 1 - i]
    cuda.cg.this_grid().sync()
    data[i] = other


def main():
    data = cuda.to_device(np.zeros(256, np.int32))
    kernel = {"racy": turn, "clean": turn_in_order}[sys.argv[1]]
    kernel[4, 64](data)  # launch
    cuda.synchronize()
    print(data.copy_to_host()[:4])


main()
