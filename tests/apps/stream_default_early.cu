// The default stream fills both halves of the data before there is another stream. A stream that does not wait for it is
// made then, and works on a third part. Racy: on the second half, and nothing waits for the fill.
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] exit: 75
//@[racy] says: 1 pair of launches or copies in different streams may race (such as fill(int*, int) and add(int*, int))
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include "app.h"

__global__ void fill(int *data, int first) {
    data[blockIdx.x * blockDim.x + threadIdx.x] = first;
}

__global__ void add(int *data, int more) {
    data[blockIdx.x * blockDim.x + threadIdx.x] += more;
}

static const int blocks = 4, threads = 128, half = blocks * threads;

int main() {
    int *data;
    cudaStream_t stream;
    CHECK(cudaMalloc(&data, 3 * half * sizeof *data));
    CHECK(cudaMemset(data, 0, 3 * half * sizeof *data));
    CHECK(cudaDeviceSynchronize());

    fill<<<2 * blocks, threads>>>(data, 3);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
#ifdef RACY
    int *part = data + half;
#else
    int *part = data + 2 * half;
#endif
    add<<<blocks, threads, 0, stream>>>(part, 4);
    CHECK(cudaDeviceSynchronize());

    static int host[3 * half];
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int n = 0; n < 3 * half; n++) {
        int added = n >= part - data && n < part - data + half ? 4 : 0;
        right &= host[n] == (n < 2 * half ? 3 : 0) + added;
    }
    return verdict(right);
}
