// Blocks add up two sums at once by an atomic on two numbers, which is atomic for each of them. The host resets the sums
// between the launches.
// Racy: a thread reads and resets both sums by one atomic of 8 bytes, and both halves of a packed number by one of 4, while
// the others add.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] verify: all-data
//@[racy] verify: race
//@ nvcc: -cudart shared -arch=sm_90
#include <cuda_fp16.h>

#include "app.h"

static const int blocks = 4, threads = 64;

__global__ void add(float2 *sums, __half2 *packed, unsigned long long *taken) {
#ifdef RACY
    if (blockIdx.x == 1 && threadIdx.x == 6) {
        taken[0] = atomicExch((unsigned long long *)sums, 0ull);    //~ race A
        taken[1] = atomicExch((unsigned *)packed, 0u);              //~ race B
        return;
    }
#endif
    atomicAdd(sums, make_float2(1, 2));            //~ race A
    atomicAdd(packed, __floats2half2_rn(1, 1));    //~ race B
}

int main() {
    float2 *sums, host;
    __half2 *packed;
    unsigned long long *taken;
    CHECK(cudaMalloc(&sums, sizeof *sums));
    CHECK(cudaMalloc(&packed, sizeof *packed));
    CHECK(cudaMalloc(&taken, 2 * sizeof *taken));
    bool right = true;
    for (int round = 0; round < 2; round++) {
        CHECK(cudaMemset(sums, 0, sizeof *sums));
        CHECK(cudaMemset(packed, 0, sizeof *packed));
        add<<<blocks, threads>>>(sums, packed, taken);
        CHECK(cudaMemcpy(&host, sums, sizeof host, cudaMemcpyDeviceToHost));
        right &= host.x == blocks * threads && host.y == 2 * blocks * threads;
    }
    return verdict(right);
}
