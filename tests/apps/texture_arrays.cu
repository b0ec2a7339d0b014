// Arrays of one to three dimensions and with layers: every way to copy to and from them, what they tell about
// themselves, and textures over them read by points.
//@ variants: clean
//@ expect: no-race
#include <cstring>
#include "app.h"
#pragma nv_diag_suppress 1444  // some of the copies are deprecated

const int width = 6, height = 5, depth = 4;

__global__ void read(cudaTextureObject_t line, cudaTextureObject_t volume, cudaTextureObject_t layers, int *out) {
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    int texel = (z * height + y) * width + x;
    short2 of_volume = tex3D<short2>(volume, x + 0.5f, y + 0.5f, z + 0.5f);
    out[3 * texel] = tex1D<unsigned>(line, x + 0.5f);
    out[3 * texel + 1] = of_volume.x - of_volume.y;
    out[3 * texel + 2] = tex2DLayered<int>(layers, x + 0.5f, y + 0.5f, z);
}

static int failures = 0;

void expect(bool right, const char *what) {
    if (!right) {
        std::printf("wrong: %s\n", what);
        failures++;
    }
}

cudaTextureObject_t texture(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
    cudaTextureObject_t object;
    CHECK(cudaCreateTextureObject(&object, &resource, &how, nullptr));
    cudaResourceDesc told;
    cudaTextureDesc told_how;
    CHECK(cudaGetTextureObjectResourceDesc(&told, object));
    CHECK(cudaGetTextureObjectTextureDesc(&told_how, object));
    expect(told.resType == cudaResourceTypeArray && told.res.array.array == array, "resource of a texture");
    expect(told_how.readMode == cudaReadModeElementType && told_how.addressMode[1] == cudaAddressModeClamp,
           "description of a texture");
    return object;
}

int main() {
    static unsigned line[width], line_back[width];
    static short2 volume[depth][height][width];
    static int layers[depth][height][width], back[depth][height][width];
    for (int z = 0; z < depth; z++) {
        for (int y = 0; y < height; y++) {
            for (int x = 0; x < width; x++) {
                line[x] = 4000000000u + x;
                volume[z][y][x] = make_short2(100 * z + 10 * y + x, -1000 * z);
                layers[z][y][x] = -(100 * z + 10 * y + x);
            }
        }
    }
    cudaArray_t of_line, of_volume, of_layers, plane, other;
    cudaChannelFormatDesc words = cudaCreateChannelDesc<unsigned>(), pairs = cudaCreateChannelDesc<short2>();
    cudaChannelFormatDesc integers = cudaCreateChannelDesc<int>();
    CHECK(cudaMallocArray(&of_line, &words, width));
    CHECK(cudaMalloc3DArray(&of_volume, &pairs, make_cudaExtent(width, height, depth)));
    CHECK(cudaMalloc3DArray(&of_layers, &integers, make_cudaExtent(width, height, depth), cudaArrayLayered));
    CHECK(cudaMallocArray(&plane, &integers, width, height));
    CHECK(cudaMallocArray(&other, &integers, width, height));
    cudaChannelFormatDesc desc;
    cudaExtent extent;
    unsigned flags;
    CHECK(cudaArrayGetInfo(&desc, &extent, &flags, of_layers));
    expect(desc.x == 32 && desc.y == 0 && desc.f == cudaChannelFormatKindSigned, "channels of an array");
    expect(extent.width == width && extent.height == height && extent.depth == depth && flags == cudaArrayLayered,
           "extent of an array");
    CHECK(cudaGetChannelDesc(&desc, of_volume));
    expect(desc.x == 16 && desc.y == 16 && desc.z == 0, "channel description");

    // Boxes whose extent counts texels.
    cudaMemcpy3DParms box = {};
    box.srcPtr = make_cudaPitchedPtr(volume, sizeof volume[0][0], width, height);
    box.dstArray = of_volume;
    box.extent = make_cudaExtent(width, height, depth);
    box.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&box));
    box.srcPtr = make_cudaPitchedPtr(layers, sizeof layers[0][0], width, height);
    box.dstArray = of_layers;
    CHECK(cudaMemcpy3DAsync(&box, 0));
    // Texels (1, 2, 1) to (3, 4, 2) back, to where they are in `back`.
    box = {};
    box.srcArray = of_layers;
    box.srcPos = make_cudaPos(1, 2, 1);
    box.dstPtr = make_cudaPitchedPtr(back, sizeof back[0][0], width, height);
    box.dstPos = make_cudaPos(1 * sizeof(int), 2, 1);
    box.extent = make_cudaExtent(3, 3, 2);
    box.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&box));
    bool right = true;
    for (int z = 0; z < depth; z++) {
        for (int y = 0; y < height; y++) {
            for (int x = 0; x < width; x++) {
                bool inside = x >= 1 && x < 4 && y >= 2 && y < 5 && z >= 1 && z < 3;
                right = right && back[z][y][x] == (inside ? layers[z][y][x] : 0);
            }
        }
    }
    expect(right, "box out of an array");
    // A box of one array into another.
    box = {};
    box.srcArray = of_layers;
    box.srcPos = make_cudaPos(0, 0, 3);
    box.dstArray = plane;
    box.extent = make_cudaExtent(width, height, 1);
    box.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3D(&box));
    CHECK(cudaMemcpy2DFromArray(back, sizeof back[0][0], plane, 0, 0, sizeof back[0][0], height,
                                cudaMemcpyDeviceToHost));
    expect(std::memcmp(back[0], layers[3], sizeof layers[3]) == 0, "box from array to array");

    // Runs that begin and end within rows, by way of memory of the device.
    const int start = 2 * width + 3, count = 2 * width + 1;
    int *device;
    CHECK(cudaMalloc(&device, sizeof layers[0]));
    CHECK(cudaMemcpy(device, layers[1], sizeof layers[1], cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToArray(plane, 3 * sizeof(int), 2, device, count * sizeof(int), cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpyFromArray(back[1], plane, 0, 0, sizeof back[1], cudaMemcpyDeviceToHost));
    right = true;
    for (int i = 0; i < width * height; i++) {
        bool inside = i >= start && i < start + count;
        right = right && (&back[1][0][0])[i] == (inside ? (&layers[1][0][0])[i - start] : (&layers[3][0][0])[i]);
    }
    expect(right, "run of bytes");
    CHECK(cudaMemcpyArrayToArray(other, 0, 0, plane, 3 * sizeof(int), 2, count * sizeof(int)));
    CHECK(cudaMemcpy2DArrayToArray(other, 4, 3, plane, 0, 4, 8, 1));
    CHECK(cudaMemcpy2DFromArrayAsync(back[2], sizeof back[2][0], other, 0, 0, sizeof back[2][0], height,
                                     cudaMemcpyDefault, 0));
    CHECK(cudaStreamSynchronize(0));
    expect(std::memcmp(back[2], layers[1], count * sizeof(int)) == 0, "run from array to array");
    expect(back[2][3][1] == back[1][4][0] && back[2][3][2] == back[1][4][1] && back[2][3][3] == 0,
           "rows from array to array");
    CHECK(cudaMemcpy2DToArrayAsync(of_line, 0, 0, line, sizeof line, sizeof line, 1, cudaMemcpyHostToDevice, 0));
    CHECK(cudaMemcpyFromArray(line_back, of_line, 0, 0, sizeof line, cudaMemcpyDeviceToHost));
    expect(std::memcmp(line, line_back, sizeof line) == 0, "row of an array");

    // What does not fit is refused.
    expect(cudaMemcpy2DToArray(plane, 4, 0, layers, sizeof layers[0][0], sizeof layers[0][0], 1,
                               cudaMemcpyHostToDevice) == cudaErrorInvalidValue,
           "copy over the end of a row");
    expect(cudaMemcpy2DFromArray(back, 4, plane, 0, 0, 8, 1, cudaMemcpyDeviceToHost) == cudaErrorInvalidPitchValue,
           "narrow pitch");
    expect(cudaMemcpy2DToArray(plane, 0, 0, layers, 4, 4, 1, cudaMemcpyDeviceToHost) ==
               cudaErrorInvalidMemcpyDirection,
           "direction");
    cudaChannelFormatDesc three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
    cudaArray_t none;
    expect(cudaMallocArray(&none, &three, 4, 4) == cudaErrorInvalidChannelDescriptor, "three channels");
    expect(cudaMalloc3DArray(&none, &words, make_cudaExtent(4, 4, 5), cudaArrayCubemap) == cudaErrorInvalidValue,
           "a cubemap of five faces");
    cudaGetLastError();

    int *out, *device_out;
    const int bytes = 3 * width * height * depth * sizeof(int);
    CHECK(cudaMallocHost(&out, bytes));
    CHECK(cudaMalloc(&device_out, bytes));
    read<<<1, dim3(width, height, depth)>>>(texture(of_line), texture(of_volume), texture(of_layers), device_out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, bytes, cudaMemcpyDeviceToHost));
    right = true;
    for (int i = 0; i < width * height * depth; i++) {
        short2 pair = (&volume[0][0][0])[i];
        right = right && (unsigned)out[3 * i] == line[i % width] && out[3 * i + 1] == pair.x - pair.y &&
                out[3 * i + 2] == (&layers[0][0][0])[i];
    }
    expect(right, "texels");
    CHECK(cudaFreeArray(of_line));
    CHECK(cudaFreeArray(nullptr));
    CHECK(cudaDeviceReset());
    expect(cudaFreeArray(of_volume) == cudaErrorInvalidResourceHandle, "array after a reset");
    return verdict(failures == 0);
}
