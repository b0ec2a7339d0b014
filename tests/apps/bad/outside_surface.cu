// Stores beyond the edge of a surface where the store is to trap, as it is unless it says otherwise.
//@ variants: clean
//@ expect: no-race
//@ exit: 3
//@ says: access outside of a surface, at byte 64 of row 0 of slice 0
//@ not-as-on-gpu: what it expects is said by the simulated device
#include "../app.h"

__global__ void store(cudaSurfaceObject_t surface, int x) { surf2Dwrite(1.0f, surface, x * 4, 0); }

int main() {
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    cudaResourceDesc resource = {};
    cudaSurfaceObject_t surface;
    resource.resType = cudaResourceTypeArray;
    CHECK(cudaMallocArray(&resource.res.array.array, &channel, 16, 4, cudaArraySurfaceLoadStore));
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    store<<<1, 1>>>(surface, 15);
    CHECK(cudaDeviceSynchronize());
    store<<<1, 1>>>(surface, 16);
    return cudaDeviceSynchronize() == cudaErrorLaunchFailure ? 3 : 1;
}
