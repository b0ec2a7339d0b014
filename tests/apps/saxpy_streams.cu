// y = a * x + y in four pieces on four streams, with asynchronous copies.
// Racy: the update reads its right neighbour, which another thread is overwriting.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#ifdef RACY
#define READ(i, n) ((i) + 1 < (n) ? (i) + 1 : 0)
#else
#define READ(i, n) (i)
#endif

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float old = y[READ(i, n)];  //~ race A
        y[i] = a * x[i] + old;      //~ race A
    }
}

int main() {
    const int pieces = 4, piece = 2048, n = pieces * piece;
    float *x, *y, *device_x, *device_y;
    CHECK(cudaMallocHost(&x, n * sizeof *x));
    CHECK(cudaMallocHost(&y, n * sizeof *y));
    CHECK(cudaMalloc(&device_x, n * sizeof *x));
    CHECK(cudaMalloc(&device_y, n * sizeof *y));
    for (int i = 0; i < n; i++) {
        x[i] = i;
        y[i] = 1.0f;
    }
    cudaStream_t streams[pieces];
    for (int p = 0; p < pieces; p++) {
        CHECK(cudaStreamCreate(&streams[p]));
        int first = p * piece;
        size_t bytes = piece * sizeof *x;
        CHECK(cudaMemcpyAsync(device_x + first, x + first, bytes, cudaMemcpyHostToDevice, streams[p]));
        CHECK(cudaMemcpyAsync(device_y + first, y + first, bytes, cudaMemcpyHostToDevice, streams[p]));
        saxpy<<<piece / 128, 128, 0, streams[p]>>>(piece, 2.0f, device_x + first, device_y + first);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpyAsync(y + first, device_y + first, bytes, cudaMemcpyDeviceToHost, streams[p]));
    }
    for (int p = 0; p < pieces; p++) {
        CHECK(cudaStreamSynchronize(streams[p]));
        CHECK(cudaStreamDestroy(streams[p]));
    }
    bool right = true;
    for (int i = 0; i < n; i++) right = right && y[i] == 2.0f * i + 1.0f;
    CHECK(cudaFreeHost(x));
    CHECK(cudaFreeHost(y));
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_y));
    return verdict(right);
}
