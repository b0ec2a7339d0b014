// Updates for which CUDA has no atomic operation: a product, and a sum of a number with itself.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: make the update at advice_update.cu:20 one atomic operation, by a loop with `atomicCAS`: no other atomic does what it does
//@[racy] says: help: make the update at advice_update.cu:33 one atomic operation, by a loop with `atomicCAS`: no other atomic does what it does
#include "app.h"

const int kThreads = 64, kBlocks = 4, kCount = kThreads * kBlocks;

// The product of the numbers, modulo 2 to the power of 32.
__global__ void multiply(const unsigned *in, unsigned *product)
{
    unsigned value = in[blockIdx.x * kThreads + threadIdx.x];
#ifndef RACY
    unsigned seen = atomicCAS(product, 0, 0), found;
    while ((found = atomicCAS(product, seen, seen * value)) != seen) seen = found;
#else
    // As a statement, which is a load, a product and a store.
    *product *= value;
#endif
}

// One doubling per block: a sum whose two operands are what was there.
__global__ void twice(float *value)
{
    if (threadIdx.x > 0) return;
#ifndef RACY
    int *bits = (int *)value;
    int seen = atomicCAS(bits, 0, 0), found;
    while ((found = atomicCAS(bits, seen, __float_as_int(2 * __int_as_float(seen)))) != seen) seen = found;
#else
    *value += *value;
#endif
}

int main()
{
    unsigned data[kCount], right = 1, product = 1;
    float value = 3;
    Random random{7};
    for (unsigned &factor : data) {
        factor = 2 * random(10000) + 1;
        right *= factor;
    }
    unsigned *in, *out;
    float *doubled;
    CHECK(cudaMalloc(&in, sizeof data));
    CHECK(cudaMalloc(&out, sizeof product));
    CHECK(cudaMalloc(&doubled, sizeof value));
    CHECK(cudaMemcpy(in, data, sizeof data, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(out, &product, sizeof product, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(doubled, &value, sizeof value, cudaMemcpyHostToDevice));
    multiply<<<kBlocks, kThreads>>>(in, out);
    CHECK(cudaGetLastError());
    twice<<<kBlocks, kThreads>>>(doubled);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&product, out, sizeof product, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&value, doubled, sizeof value, cudaMemcpyDeviceToHost));
    return verdict(product == right && value == 3 << kBlocks);
}
