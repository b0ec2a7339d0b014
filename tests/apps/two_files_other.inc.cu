// The other half of two_files.cu.
#include "app.h"

#ifdef RACY
#define OWN(i) ((i) / 2 * 2)
#else
#define OWN(i) (i)
#endif

static __device__ int filled;

static __global__ void fill(int *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && OWN(i) % 2 == 0) {
        data[OWN(i)] = 3 * i;  //~ race A A
        atomicAdd(&filled, 1);
    }
}

int fill_other(int *data, int n) {
    int count;
    fill<<<4, 128>>>(data, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyFromSymbol(&count, filled, sizeof count));
    return count;
}
