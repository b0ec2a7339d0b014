// Kernels that load and store through surface objects: over lines, images, volumes and layers, and beyond their edges.
// Racy: a block smooths an image in place, without a barrier between its loads and stores.
//@[clean] expect: no-race
//@[racy] expect: race
//@ not-as-on-gpu: surfaces have no cells
#include "app.h"

#include <cstring>

const int width = 24, height = 10, depth = 3;

// Each texel becomes the sum of itself and its right neighbour, beyond the edge 0.
__global__ void add_neighbour(cudaSurfaceObject_t image) {
    int x = threadIdx.x, y = threadIdx.y;
    int here = surf2Dread<int>(image, x * 4, y);
    int right = surf2Dread<int>(image, (x + 1) * 4, y, cudaBoundaryModeZero);  //~ race A
#ifndef RACY
    __syncthreads();
#endif
    surf2Dwrite(here + right, image, x * 4, y);  //~ race A
}

__global__ void colours(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
    int x = threadIdx.x, y = threadIdx.y;
    uchar4 colour;
    surf2Dread(&colour, from, x * 4, y);
    surf2Dwrite(make_uchar4(colour.w, colour.z, colour.y, colour.x), to, x * 4, y);
    // Nothing is written outside.
    surf2Dwrite(make_uchar4(9, 9, 9, 9), to, (x + width) * 4, y, cudaBoundaryModeZero);
    surf2Dwrite(make_uchar4(9, 9, 9, 9), to, x * 4, -1 - y, cudaBoundaryModeZero);
}

__global__ void volume(cudaSurfaceObject_t box, float4 *seen) {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
    surf3Dwrite(make_float4(x, y, z, 1), box, x * 16, y, z);
    // The nearest texel inside is the thread's own at the far corner.
    if (x == width - 1 && y == height - 1 && z == depth - 1)
        surf3Dread(seen, box, (x + 5) * 16, y + 1, z + 7, cudaBoundaryModeClamp);
}

__global__ void layers(cudaSurfaceObject_t lines, short2 *sum) {
    int x = threadIdx.x, layer = blockIdx.x;
    short2 value;
    surf1DLayeredread(&value, lines, x * 4, layer);
    atomicAdd((int *)sum + layer, value.x + value.y);
    surf1DLayeredwrite(make_short2(layer, x), lines, x * 4, layer);
}

__global__ void line(cudaSurfaceObject_t doubles) {
    int x = threadIdx.x;
    auto bits = surf1Dread<unsigned long long>(doubles, x * 8);
    surf1Dwrite(bits << 4 | 1, doubles, x * 8);
}

template <class Texel>
static cudaArray_t make_array(cudaExtent extent, const void *texels, unsigned flags = 0) {
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<Texel>();
    cudaArray_t array;
    CHECK(cudaMalloc3DArray(&array, &channel, extent, cudaArraySurfaceLoadStore | flags));
    if (texels == nullptr) return array;
    cudaMemcpy3DParms copy = {};
    size_t rows = extent.height == 0 ? 1 : extent.height;
    copy.srcPtr = make_cudaPitchedPtr((void *)texels, extent.width * sizeof(Texel), extent.width, rows);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(extent.width, rows, extent.depth == 0 ? 1 : extent.depth);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    return array;
}

template <class Texel>
static void read_back(Texel *texels, cudaArray_t array, size_t rows, size_t slices) {
    cudaMemcpy3DParms copy = {};
    copy.dstPtr = make_cudaPitchedPtr(texels, width * sizeof(Texel), width, rows);
    copy.srcArray = array;
    copy.extent = make_cudaExtent(width, rows, slices);
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
}

static cudaSurfaceObject_t surface(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t object;
    CHECK(cudaCreateSurfaceObject(&object, &resource));
    return object;
}

int main() {
    bool right = true;
    const dim3 all(width, height);

    static int numbers[height][width], sums[height][width];
    for (int i = 0; i < width * height; i++) numbers[i / width][i % width] = i * i;
    cudaArray_t image = make_array<int>(make_cudaExtent(width, height, 0), numbers);
    cudaSurfaceObject_t over_image = surface(image);
    add_neighbour<<<1, all>>>(over_image);
    read_back(&sums[0][0], image, height, 1);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) right &= sums[y][x] == numbers[y][x] + (x + 1 < width ? numbers[y][x + 1] : 0);

    static uchar4 from[height][width], to[height][width];
    for (int i = 0; i < width * height; i++) from[i / width][i % width] = make_uchar4(i, i + 1, 2 * i, 7);
    cudaArray_t first = make_array<uchar4>(make_cudaExtent(width, height, 0), from);
    cudaArray_t second = make_array<uchar4>(make_cudaExtent(width, height, 0), nullptr);
    colours<<<1, all>>>(surface(first), surface(second));
    read_back(&to[0][0], second, height, 1);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uchar4 a = from[y][x], b = to[y][x];
            right &= a.x == b.w && a.y == b.z && a.z == b.y && a.w == b.x;
        }

    static float4 texels[depth][height][width];
    float4 *seen;
    CHECK(cudaMallocManaged(&seen, sizeof *seen));
    cudaArray_t box = make_array<float4>(make_cudaExtent(width, height, depth), nullptr);
    volume<<<depth, all>>>(surface(box), seen);
    CHECK(cudaDeviceSynchronize());
    read_back(&texels[0][0][0], box, height, depth);
    right &= seen->x == width - 1 && seen->y == height - 1 && seen->z == depth - 1 && seen->w == 1;
    for (int z = 0; z < depth; z++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                float4 a = texels[z][y][x];
                right &= a.x == x && a.y == y && a.z == z && a.w == 1;
            }

    static short2 lines[depth][width];
    int expected[depth] = {};
    int *layer_sums;
    CHECK(cudaMallocManaged(&layer_sums, sizeof expected));
    std::memset(layer_sums, 0, sizeof expected);
    for (int i = 0; i < depth * width; i++) {
        lines[i / width][i % width] = make_short2(i, -3);
        expected[i / width] += i - 3;
    }
    cudaArray_t layered = make_array<short2>(make_cudaExtent(width, 0, depth), lines, cudaArrayLayered);
    layers<<<depth, width>>>(surface(layered), (short2 *)layer_sums);
    CHECK(cudaDeviceSynchronize());
    read_back(&lines[0][0], layered, 1, depth);
    for (int i = 0; i < depth * width; i++) {
        right &= lines[i / width][i % width].x == i / width && lines[i / width][i % width].y == i % width;
        right &= layer_sums[i / width] == expected[i / width];
    }

    static int2 words[width], after[width];
    for (int i = 0; i < width; i++) words[i] = make_int2(i, 1);
    cudaArray_t flat = make_array<int2>(make_cudaExtent(width, 0, 0), words);
    cudaSurfaceObject_t over_line = surface(flat);
    line<<<1, width>>>(over_line);
    read_back(after, flat, 1, 1);
    for (int i = 0; i < width; i++) right &= after[i].x == i * 16 + 1 && after[i].y == 16;

    CHECK(cudaDestroySurfaceObject(over_line));
    CHECK(cudaDestroySurfaceObject(over_image));
    CHECK(cudaFreeArray(image));
    return verdict(right);
}
