// A five-point stencil on a pitched array, timed with events, the weights in constant memory.
// Racy: in place.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

__constant__ int weights[2];

__device__ int weigh(int centre, int around) {
    return weights[0] * centre + weights[1] * around;
}

__global__ void stencil(const int *in, int *out, size_t pitch, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    const int *above = in + (y - 1) * pitch, *here = in + y * pitch, *below = in + (y + 1) * pitch;
    int value = weigh(here[x], above[x] + below[x] + here[x - 1] + here[x + 1]);  //~ race A
    out[y * pitch + x] = value;                                                   //~ race A
}

int main() {
    const int width = 70, height = 45;
    static int in[height][width], out[height][width];
    Random random = {9};
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) in[y][x] = out[y][x] = random(50);
    }
    const int host_weights[2] = {4, -1};
    CHECK(cudaMemcpyToSymbol(weights, host_weights, sizeof host_weights));

    int *device_in, *device_out;
    size_t pitch, row = width * sizeof(int);
    CHECK(cudaMallocPitch(&device_in, &pitch, row, height));
#ifdef RACY
    device_out = device_in;
#else
    CHECK(cudaMallocPitch(&device_out, &pitch, row, height));
#endif
    CHECK(cudaMemcpy2D(device_in, pitch, in, row, row, height, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2D(device_out, pitch, out, row, row, height, cudaMemcpyHostToDevice));
    cudaEvent_t start, stop;
    float milliseconds = -1.0f;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    stencil<<<dim3(5, 6), dim3(16, 8)>>>(device_in, device_out, pitch / sizeof(int), width, height);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    CHECK(cudaMemcpy2D(out, row, device_out, pitch, row, height, cudaMemcpyDeviceToHost));

    bool right = milliseconds >= 0.0f;
    for (int y = 1; y < height - 1; y++) {
        for (int x = 1; x < width - 1; x++) {
            int around = in[y - 1][x] + in[y + 1][x] + in[y][x - 1] + in[y][x + 1];
            right = right && out[y][x] == 4 * in[y][x] - around;
        }
    }
    return verdict(right);
}
