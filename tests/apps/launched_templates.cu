// The instance of a template in a namespace, and a static kernel, are launched from other functions. The report names the
// lines of the launches and not those of the kernels' declarations, where nvcc's own functions stand in debug information.
// Racy: threads share elements.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: launched at launched_templates.cu:30 run
//@[racy] says: launched at launched_templates.cu:38 main
//@ nvcc: -cudart shared -arch=sm_90 -g
#include "app.h"

#ifdef RACY
static const int each = 2;
#else
static const int each = 1;
#endif

namespace parts {
template <class T, int N>
__global__ void fill(T *data) {
    data[threadIdx.x / N] = threadIdx.x;  //~ race A A
}

static __global__ void copy(const int *from, int *to) {
    to[threadIdx.x / each] = from[threadIdx.x / each] + threadIdx.x % each;  //~ race B B
}
}  // namespace parts

template <class T>
static void run(T *data) {
    parts::fill<T, each><<<1, 64>>>(data);
}

int main() {
    int *data, *copied;
    CHECK(cudaMalloc(&data, 64 * sizeof *data));
    CHECK(cudaMalloc(&copied, 64 * sizeof *copied));
    run(data);
    parts::copy<<<1, 64>>>(data, copied);
    CHECK(cudaDeviceSynchronize());

    static int host[64];
    CHECK(cudaMemcpy(host, copied, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int n = 0; n < 64 / each; n++)
        right &= host[n] >= each * n && host[n] <= each * n + 2 * (each - 1);
    return verdict(right);
}
