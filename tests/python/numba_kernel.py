"""numba-cuda: a kernel in Python."""

# help: `cuda.cg.this_grid().sync()`

import sys
import numpy as np
from numba import cuda


@cuda.jit(lineinfo=True)
def shift(data, step):
    i = cuda.grid(1)
    if i + step < data.size:
        data[i] = data[i + step] + 1  # race


def main():
    data = cuda.to_device(np.ones(1024, np.int32))
    step = {"racy": 1, "clean": 512}[sys.argv[1]]
    shift[4, 256](data, step)  # launch
    cuda.synchronize()
    print(data.copy_to_host()[:4])


main()
