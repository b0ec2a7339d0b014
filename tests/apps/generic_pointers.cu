// A pointer that is to dynamic shared memory in one block and to global memory in the next.
// Racy: the blocks that use global memory use the same piece of it.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#ifdef RACY
#define PIECE(block) 1
#else
#define PIECE(block) (block)
#endif

extern __shared__ int buffer[];

__device__ __noinline__ void add(int *place, int value) {
    *place += value;  //~ race A A
}

__global__ void work(int *spare, int *out) {
    int n = blockDim.x, i = threadIdx.x;
    bool in_shared = blockIdx.x % 2 == 0;
    buffer[i] = 3;
    int *place = in_shared ? buffer + i : spare + PIECE(blockIdx.x) * n + i;
    add(place, i * i + blockIdx.x);
    __syncthreads();
    if (in_shared) out[blockIdx.x * n + i] = buffer[n - 1 - i];
}

int main() {
    const int blocks = 6, threads = 64, n = blocks * threads;
    int out[n], sums[n], *spare, *device_out;
    CHECK(cudaMalloc(&spare, sizeof sums));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemset(spare, 0, sizeof sums));
    work<<<blocks, threads, threads * sizeof(int)>>>(spare, device_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(sums, spare, sizeof sums, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) {
        int block = i / threads, thread = i % threads, mirrored = threads - 1 - thread;
        int expected = block % 2 == 0 ? 3 + mirrored * mirrored + block : thread * thread + block;
        right = right && (block % 2 == 0 ? out[i] : sums[i]) == expected;
    }
    return verdict(right);
}
