// One kernel writes an image through a surface, the next reads it through a texture.
// Racy: one kernel does both, and a barrier does not make that right.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: CR009
//@ not-as-on-gpu: neither textures nor surfaces have cells
#include "app.h"

const int width = 8, height = 8;

__global__ void write_and_read(cudaSurfaceObject_t to, cudaTextureObject_t from, int *out, bool reads) {
    int x = threadIdx.x, y = threadIdx.y;
    if (!reads) surf2Dwrite(10 * y + x, to, x * 4, y);  //~ race A
#ifdef RACY
    __syncthreads();
    reads = true;
#endif
    if (reads) out[y * width + x] = tex2D<int>(from, width - 1 - x + 0.5f, y + 0.5f);  //~ race A
}

int main() {
    cudaChannelFormatDesc texel = cudaCreateChannelDesc<int>();
    cudaArray_t image;
    CHECK(cudaMallocArray(&image, &texel, width, height, cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = image;
    cudaTextureDesc how = {};
    cudaTextureObject_t from;
    cudaSurfaceObject_t to;
    CHECK(cudaCreateTextureObject(&from, &resource, &how, nullptr));
    CHECK(cudaCreateSurfaceObject(&to, &resource));
    int *device_out, out[width * height];
    CHECK(cudaMalloc(&device_out, sizeof out));
    dim3 block(width, height);
    write_and_read<<<1, block>>>(to, from, device_out, false);
#ifndef RACY
    write_and_read<<<1, block>>>(to, from, device_out, true);
#endif
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) right &= out[y * width + x] == 10 * y + width - 1 - x;
    CHECK(cudaDestroyTextureObject(from));
    CHECK(cudaDestroySurfaceObject(to));
    CHECK(cudaFreeArray(image));
    return verdict(right);
}
