// Fills and copies of every shape in a stream, between kernels of the same one; what is told about ranges of managed
// memory; pools by location; and calls that are kept for older programs.
// Racy: two blocks of the kernel between them write the same words.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"
#include <cstring>

const int width = 24, height = 10, depth = 3;
__device__ unsigned symbol[width];

__global__ void add(unsigned char *data, size_t pitch, int rows) {
#ifdef RACY
    int y = blockIdx.x / 2;
#else
    int y = blockIdx.x;
#endif
    if (y < rows) data[y * pitch + threadIdx.x] += 1;  //~ race A A
}

int main() {
    bool right = true;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));

    // Two dimensions, then three.
    unsigned char host[depth * height * width], *plane;
    size_t pitch;
    CHECK(cudaMallocPitch(&plane, &pitch, width, height));
    CHECK(cudaMemset2DAsync(plane, pitch, 7, width, height, stream));
    add<<<height, width, 0, stream>>>(plane, pitch, height);
    CHECK(cudaMemcpy2DAsync(host, width, plane, pitch, width, height, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < height * width; i++) right = right && host[i] == 8;
    cudaPitchedPtr volume;
    cudaExtent extent = make_cudaExtent(width, height, depth);
    CHECK(cudaMalloc3D(&volume, extent));
    CHECK(cudaMemset3DAsync(volume, 3, extent, stream));
    cudaMemcpy3DPeerParms peer = {};
    cudaPitchedPtr other;
    CHECK(cudaMalloc3D(&other, extent));
    peer.srcPtr = volume;
    peer.dstPtr = other;
    peer.extent = extent;
    CHECK(cudaMemcpy3DPeerAsync(&peer, stream));
    cudaMemcpy3DParms out = {};
    out.srcPtr = other;
    out.dstPtr = make_cudaPitchedPtr(host, width, width, height);
    out.extent = extent;
    out.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3DAsync(&out, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (unsigned char x : host) right = right && x == 3;

    // A symbol and an array.
    unsigned numbers[width], back[width] = {};
    for (int i = 0; i < width; i++) numbers[i] = i * i;
    CHECK(cudaMemcpyToSymbolAsync(symbol, numbers, sizeof numbers, 0, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyFromSymbolAsync(back, symbol, sizeof back, 0, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    right = right && !std::memcmp(numbers, back, sizeof back);
    cudaArray_t array;
    cudaChannelFormatDesc words = cudaCreateChannelDesc<unsigned>();
    CHECK(cudaMallocArray(&array, &words, width));
    std::memset(back, 0, sizeof back);
    CHECK(cudaMemcpyToArrayAsync(array, 0, 0, numbers, sizeof numbers, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyFromArrayAsync(back, array, 8, 0, sizeof back - 8, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    right = right && !std::memcmp(numbers + 2, back, sizeof back - 8);

    // Managed memory: what it was told, and what is said of it.
    unsigned char *managed;
    CHECK(cudaMallocManaged(&managed, 1 << 16));
    CHECK(cudaStreamAttachMemAsync(stream, managed, 0, cudaMemAttachGlobal));
    CHECK(cudaStreamSynchronize(stream));
    int mostly = 7, preferred = 7;
    CHECK(cudaMemRangeGetAttribute(&mostly, sizeof mostly, cudaMemRangeAttributeReadMostly, managed, 1 << 16));
    right = right && mostly == 0;
    void *answers[] = {&mostly, &preferred};
    size_t sizes[] = {sizeof mostly, sizeof preferred};
    cudaMemRangeAttribute asked[] = {cudaMemRangeAttributeReadMostly, cudaMemRangeAttributePreferredLocation};
    CHECK(cudaMemRangeGetAttributes(answers, sizes, asked, 2, managed, 1 << 16));
    right = right && mostly == 0 && preferred == cudaInvalidDeviceId;

    size_t high = 0;
    CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &high));
#if CUDART_VERSION >= 13000
    cudaMemPool_t first, same;
    cudaMemLocation here = {};
    here.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemGetDefaultMemPool(&first, &here, cudaMemAllocationTypePinned));
    CHECK(cudaDeviceGetDefaultMemPool(&same, 0));
    right = right && first == same;
    CHECK(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, first));
    CHECK(cudaMemGetMemPool(&same, &here, cudaMemAllocationTypePinned));
    right = right && first == same;
#endif

    // For older programs.
    int devices[] = {0};
    CHECK(cudaSetValidDevices(devices, 1));
    cudaSharedMemConfig banks;
    CHECK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
    CHECK(cudaDeviceGetSharedMemConfig(&banks));
    CHECK(cudaFuncSetSharedMemConfig((const void *)add, cudaSharedMemBankSizeFourByte));
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPoint("cuMemAlloc", &entry, cudaEnableDefault, &found));
    right = right && entry && found == cudaDriverEntryPointSuccess;
    return verdict(right);
}
