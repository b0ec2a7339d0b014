"""CuPy: its wheels have NVIDIA's runtime library inside, which works with NVIDIA's driver only."""

import cupy

data = cupy.ones(1024, dtype=cupy.int32)
shift = cupy.RawKernel(
    'extern "C" __global__ void shift(int *data) { data[threadIdx.x] = data[threadIdx.x + 1]; }', "shift"
)
shift((1,), (256,), (data,))
print(data[:4])
