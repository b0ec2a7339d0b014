// The largest of floating-point numbers, for which there is no atomic operation.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: make the update at advice_float_update.cu:14 one atomic operation, by a loop with `atomicCAS`: there is no minimum or maximum of floating-point numbers
#include "app.h"

const int kThreads = 64, kBlocks = 2, kCount = kThreads * kBlocks;

__global__ void find_largest(const float *in, float *most)
{
    float value = in[blockIdx.x * kThreads + threadIdx.x];
#ifdef RACY
    if (value > *most) *most = value;
#else
    int *bits = (int *)most;
    int seen = atomicCAS(bits, 0, 0);
    while (value > __int_as_float(seen)) {
        int found = atomicCAS(bits, seen, __float_as_int(value));
        if (found == seen) break;
        seen = found;
    }
#endif
}

int main()
{
    float data[kCount], right = 0, found;
    Random random{7};
    for (float &value : data) {
        value = random(10000) / 16.0f;
        if (value > right) right = value;
    }
    float *in, *most;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&most, sizeof found));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(most, 0, sizeof found));
    find_largest<<<kBlocks, kThreads>>>(in, most);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&found, most, sizeof found, cudaMemcpyDeviceToHost));
    return verdict(found == right);
}
