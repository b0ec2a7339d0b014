// Fetches from a texture object that the program has destroyed.
//@ variants: clean
//@ expect: no-race
//@ exit: 3
//@ says: which is no texture object
//@ not-as-on-gpu: what it expects is said by the simulated device
#include "../app.h"

__global__ void fetch(cudaTextureObject_t texture, float *out) { out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x); }

int main() {
    float *memory;
    CHECK(cudaMalloc(&memory, 256));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = memory;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = 256;
    cudaTextureDesc how = {};
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    CHECK(cudaDestroyTextureObject(texture));
    fetch<<<1, 32>>>(texture, memory);
    return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 3 : 1;
}
