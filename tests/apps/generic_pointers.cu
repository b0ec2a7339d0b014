// A pointer that is to shared memory in one block and to global memory in the next, in dynamic shared memory.
// Racy: the blocks that use global memory use the same piece of it.
//@ expect(clean): no-race
//@ expect(racy): race
#include "app.h"

#ifdef RACY
#define PIECE(block) 0
#else
#define PIECE(block) (block)
#endif

extern __shared__ int buffer[];

__device__ __noinline__ void mirror(int *scratch, int i, int n) {
    scratch[i] = i * i + blockIdx.x;  //~ race A, may B B
    __syncthreads();
    int other = scratch[n - 1 - i];   //~ race A
    __syncthreads();
    scratch[i] = other;               //~ race C
}

__global__ void work(int *spare, int *out) {
    int n = blockDim.x;
    int *scratch = blockIdx.x % 2 == 0 ? buffer : spare + PIECE(blockIdx.x) * n;
    mirror(scratch, threadIdx.x, n);
    out[blockIdx.x * n + threadIdx.x] = scratch[threadIdx.x];  //~ race C
}

int main() {
    const int blocks = 6, threads = 64, n = blocks * threads;
    int out[n], *spare, *device_out;
    CHECK(cudaMalloc(&spare, sizeof out));
    CHECK(cudaMalloc(&device_out, sizeof out));
    work<<<blocks, threads, threads * sizeof(int)>>>(spare, device_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) {
        int mirrored = threads - 1 - i % threads;
        right = right && out[i] == mirrored * mirrored + i / threads;
    }
    return verdict(right);
}
