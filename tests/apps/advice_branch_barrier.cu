// The first half of a block turns around in shared memory what the block has loaded. Only it executes both
// accesses, so a barrier between them does not fit; the branch has to end first, and begin again behind it.
//
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: help: end the branch at advice_branch_barrier.cu:16 after the first access, put `__syncthreads()` where all threads of the block pass, and begin another branch for the second access: only some threads of the block execute both accesses
#include "app.h"

const int kThreads = 128, kHalf = kThreads / 2;

__global__ void turn(const int *in, int *out)
{
    __shared__ int s[kHalf];
    int t = threadIdx.x;
#ifdef RACY
    if (t < kHalf) {
        s[t] = in[t];              //~ race A
        out[t] = s[kHalf - 1 - t];  //~ race A
    }
#else
    if (t < kHalf) s[t] = in[t];
    __syncthreads();
    if (t < kHalf) out[t] = s[kHalf - 1 - t];
#endif
}

int main()
{
    int data[kHalf], found[kHalf];
    for (int i = 0; i < kHalf; i++) data[i] = 3 * i;
    int *in, *out;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof found));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    turn<<<1, kThreads>>>(in, out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < kHalf; i++) right &= found[i] == data[kHalf - 1 - i];
    return verdict(right);
}
