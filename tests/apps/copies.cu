// Copies of every form: boxes in two and three dimensions, to and from symbols, arrays and peers, and
// managed memory with advice and prefetches.
//@ variants: clean
//@[clean] expect: no-race
#include "app.h"

#include <cstring>

const int width = 24, height = 10, depth = 4;
__constant__ int factors[4];
__device__ int sums[4];

__global__ void add_up(const int *data, size_t pitch) {
    int total = 0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            total += *(const int *)((const char *)data + y * pitch + x * sizeof(int)) * factors[threadIdx.x];
    sums[threadIdx.x] = total;
}

int main() {
    bool right = true;
    static int from[depth][height][width], to[depth][height][width];
    int total = 0;
    for (int z = 0; z < depth; z++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                from[z][y][x] = z * 1000 + y * 30 + x;
                if (z == 0) total += from[z][y][x];
            }
    const size_t row = width * sizeof(int);

    // Two dimensions, and symbols.
    int *plane;
    size_t pitch;
    CHECK(cudaMallocPitch(&plane, &pitch, row, height));
    CHECK(cudaMemcpy2D(plane, pitch, from, row, row, height, cudaMemcpyHostToDevice));
    int given[4] = {1, 2, 3, 4}, got[4] = {};
    CHECK(cudaMemcpyToSymbol(factors, given, sizeof given));
    add_up<<<1, 4>>>(plane, pitch);
    CHECK(cudaMemcpyFromSymbol(got, sums, sizeof got));
    for (int i = 0; i < 4; i++) right = right && got[i] == total * given[i];
    CHECK(cudaMemcpyToSymbol(sums, &given[3], sizeof(int), 2 * sizeof(int)));
    CHECK(cudaMemcpyFromSymbolAsync(got, sums, sizeof(int), 2 * sizeof(int), cudaMemcpyDeviceToHost, 0));
    CHECK(cudaDeviceSynchronize());
    right = right && got[0] == 4;
    right = right && cudaMemcpyToSymbol(sums, given, sizeof given, 4) == cudaErrorInvalidValue;
    cudaGetLastError();
    void *address;
    size_t bytes;
    CHECK(cudaGetSymbolAddress(&address, sums));
    CHECK(cudaGetSymbolSize(&bytes, sums));
    right = right && bytes == sizeof sums && address != nullptr;
    CHECK(cudaMemcpy(got, address, sizeof got, cudaMemcpyDefault));
    right = right && got[2] == 4;
    CHECK(cudaMemset2D(plane, pitch, 1, row, height));
    CHECK(cudaMemcpy2DAsync(to, row, plane, pitch, row, height, cudaMemcpyDeviceToHost, 0));
    CHECK(cudaDeviceSynchronize());
    right = right && to[0][height - 1][width - 1] == 0x01010101;

    // Three dimensions: to pitched memory, between it and an array, to a peer that is ourselves.
    cudaExtent extent = make_cudaExtent(row, height, depth);
    cudaPitchedPtr box;
    CHECK(cudaMalloc3D(&box, extent));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(from, row, width, height);
    copy.dstPtr = box;
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
    cudaArray_t array;
    CHECK(cudaMalloc3DArray(&array, &desc, make_cudaExtent(width, height, depth)));
    copy = {};
    copy.srcPtr = box;
    copy.dstArray = array;
    copy.extent = make_cudaExtent(width, height, depth);
    copy.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3DAsync(&copy, 0));
    copy = {};
    copy.srcArray = array;
    copy.srcPos = make_cudaPos(1, 2, 1);
    copy.dstPtr = make_cudaPitchedPtr(to, row, width, height);
    copy.extent = make_cudaExtent(width - 1, height - 2, depth - 1);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    right = right && to[0][0][0] == from[1][2][1] && to[2][height - 3][width - 2] == from[3][height - 1][width - 1];
    cudaPitchedPtr other;
    CHECK(cudaMalloc3D(&other, extent));
    cudaMemcpy3DPeerParms peers = {};
    peers.srcPtr = box;
    peers.dstPtr = other;
    peers.extent = extent;
    CHECK(cudaMemcpy3DPeer(&peers));
    int last = 0;
    const char *corner = (const char *)other.ptr + other.pitch * (other.ysize * (depth - 1) + height - 1) + row - sizeof last;
    CHECK(cudaMemcpyPeer(plane, 0, corner, 0, sizeof last));
    CHECK(cudaMemcpy(&last, plane, sizeof last, cudaMemcpyDeviceToHost));
    right = right && last == from[depth - 1][height - 1][width - 1];
    CHECK(cudaMemset3D(other, 0, extent));
    CHECK(cudaMemcpy(&last, corner, sizeof last, cudaMemcpyDeviceToHost));
    right = right && last == 0;
    int can = 1;
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
    right = right && can == 0;

    // Arrays, and surface objects, which may be made.
    cudaArray_t flat;
    CHECK(cudaMallocArray(&flat, &desc, width, height, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(flat, 0, 0, from, row, row, height, cudaMemcpyHostToDevice));
    memset(to, 0, sizeof to);
    CHECK(cudaMemcpy2DFromArray(to, row, flat, 4, 1, row - 4, height - 1, cudaMemcpyDeviceToHost));
    right = right && to[0][0][0] == from[0][1][1];
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = flat;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    cudaResourceDesc asked;
    CHECK(cudaGetSurfaceObjectResourceDesc(&asked, surface));
    right = right && surface != 0 && asked.res.array.array == flat;
    CHECK(cudaDestroySurfaceObject(surface));

    // Managed memory.
    int *managed;
    CHECK(cudaMallocManaged(&managed, row * height));
    memcpy(managed, from, row * height);
#if CUDART_VERSION >= 13000
    cudaMemLocation device = {};
    device.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemAdvise(managed, row * height, cudaMemAdviseSetReadMostly, device));
    CHECK(cudaMemPrefetchAsync(managed, row * height, device, 0, 0));
#else
    CHECK(cudaMemAdvise(managed, row * height, cudaMemAdviseSetReadMostly, 0));
    CHECK(cudaMemPrefetchAsync(managed, row * height, 0, 0));
#endif
    add_up<<<1, 4>>>(managed, row);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyFromSymbol(got, sums, sizeof got));
    right = right && got[3] == total * 4;
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, managed));
    right = right && attributes.type == cudaMemoryTypeManaged && attributes.hostPointer == managed;
    CHECK(cudaPointerGetAttributes(&attributes, from));
    right = right && attributes.type == cudaMemoryTypeUnregistered;
    CHECK(cudaFree(managed));
    CHECK(cudaFree(plane));
    CHECK(cudaFree(box.ptr));
    CHECK(cudaFree(other.ptr));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFreeArray(flat));
    return verdict(right);
}
