// Cubemaps and layers of them, read along directions through the middles of their texels, and written through surfaces.
//@ variants: clean
//@[clean] expect: no-race
#include <vector>

#include "app.h"

const int size = 4, faces = 6, layers = 2;

// A direction through the middle of a texel, by the table of the programming guide.
__device__ float3 direction(int face, int x, int y) {
    float s = (x + 0.5f) / size * 2 - 1, t = (y + 0.5f) / size * 2 - 1;
    switch (face) {
        case 0: return make_float3(1, -t, -s);
        case 1: return make_float3(-1, -t, s);
        case 2: return make_float3(s, 1, t);
        case 3: return make_float3(s, -1, -t);
        case 4: return make_float3(s, -t, 1);
        default: return make_float3(-s, -t, -1);
    }
}

__global__ void write(cudaSurfaceObject_t surface) {
    int x = threadIdx.x, y = threadIdx.y, face = threadIdx.z;
    surfCubemapwrite((float)((face * size + y) * size + x), surface, x * 4, y, face);
}

__global__ void read(cudaTextureObject_t one, cudaTextureObject_t many, float *out) {
    int x = threadIdx.x, y = threadIdx.y, face = threadIdx.z, texel = (face * size + y) * size + x;
    float3 at = direction(face, x, y);
    out[texel] = texCubemap<float>(one, at.x, at.y, at.z);
    for (int layer = 0; layer < layers; layer++)
        out[(1 + layer) * faces * size * size + texel] = texCubemapLayered<float>(many, 3 * at.x, 3 * at.y, 3 * at.z, layer);
}

cudaTextureObject_t texture(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.filterMode = cudaFilterModeLinear;
    how.normalizedCoords = 1;
    cudaTextureObject_t object;
    CHECK(cudaCreateTextureObject(&object, &resource, &how, nullptr));
    return object;
}

int main() {
    const int texels = faces * size * size;
    bool right = true;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t one, many, wrong;
    CHECK(cudaMalloc3DArray(&one, &format, make_cudaExtent(size, size, faces), cudaArrayCubemap | cudaArraySurfaceLoadStore));
    CHECK(cudaMalloc3DArray(&many, &format, make_cudaExtent(size, size, faces * layers), cudaArrayCubemap | cudaArrayLayered));
    // Faces are square, and six.
    right &= cudaMalloc3DArray(&wrong, &format, make_cudaExtent(size, size + 1, faces), cudaArrayCubemap) == cudaErrorInvalidValue;
    right &= cudaMalloc3DArray(&wrong, &format, make_cudaExtent(size, size, faces - 1), cudaArrayCubemap) == cudaErrorInvalidValue;
    cudaGetLastError();

    std::vector<float> host(texels * layers);
    for (int i = 0; i < texels * layers; i++) host[i] = 1000 + i;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(host.data(), size * sizeof(float), size, size);
    copy.dstArray = many;
    copy.extent = make_cudaExtent(size, size, faces * layers);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = one;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    write<<<1, dim3(size, size, faces)>>>(surface);
    cudaTextureObject_t of_one = texture(one), of_many = texture(many);
    float *out;
    CHECK(cudaMalloc(&out, (1 + layers) * texels * sizeof *out));
    read<<<1, dim3(size, size, faces)>>>(of_one, of_many, out);
    std::vector<float> got((1 + layers) * texels);
    CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof *out, cudaMemcpyDeviceToHost));
    for (int i = 0; i < texels; i++) right &= got[i] == i;
    for (int i = 0; i < texels * layers; i++) right &= got[texels + i] == 1000 + i;
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaDestroyTextureObject(of_one));
    CHECK(cudaDestroyTextureObject(of_many));
    CHECK(cudaFreeArray(one));
    CHECK(cudaFreeArray(many));
    return verdict(right);
}
