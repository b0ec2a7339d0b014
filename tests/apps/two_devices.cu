// Two devices that each work on half of an array, from a thread of the host each; the second half is computed
// by the second device, copied to the first, and back. With one device, both halves are its own.
// Racy: on the second device all blocks count the sum with plain additions.
//@[clean] expect: no-race
//@[racy] expect: race
#include <cstdlib>
#include <thread>
#include "app.h"

__device__ int offset = 1;

#ifdef RACY
#define ADD(to, what) *(to) += (what)
#else
#define ADD(to, what) atomicAdd(to, what)
#endif

__global__ void first_half(int n, int *x, int *sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] += offset;
        atomicAdd(sum, x[i]);
    }
}

__global__ void second_half(int n, int *x, int *sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] += offset;
        if (threadIdx.x == 0) ADD(sum, x[i]);  //~ race A A
    }
}

const int n = 1000;
static int *x[2], *sum[2];

static void work(int half, int device) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaMalloc(&x[half], n * sizeof(int)));
    CHECK(cudaMalloc(&sum[half], sizeof(int)));
    CHECK(cudaMemset(x[half], 0, n * sizeof(int)));
    CHECK(cudaMemset(sum[half], 0, sizeof(int)));
    int mine = 0;
    CHECK(cudaGetDevice(&mine));
    if (mine != device) std::exit(3);
    (half ? second_half : first_half)<<<(n + 127) / 128, 128>>>(n, x[half], sum[half]);
    CHECK(cudaDeviceSynchronize());
}

int main() {
    // For the simulated driver, which has one device otherwise.
    setenv("CUDARUN_SIM_DEVICES", "2", 0);
    int count = 0, can = -1;
    CHECK(cudaGetDeviceCount(&count));
    const int other = count > 1;
    bool right = cudaSetDevice(count) == cudaErrorInvalidDevice;
    cudaGetLastError();
    // A variable of the program is one on each device.
    for (int device = 0; device <= other; device++) {
        const int now = other ? 5 + device : 6;
        CHECK(cudaSetDevice(device));
        CHECK(cudaMemcpyToSymbol(offset, &now, sizeof now));
    }
    std::thread beside(work, 1, other);
    work(0, 0);
    beside.join();
    if (other) {
        CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
        CHECK(cudaDeviceCanAccessPeer(&count, 0, 0));
        right = right && count == 0;
        CHECK(cudaSetDevice(0));
        if (can) {
            CHECK(cudaDeviceEnablePeerAccess(1, 0));
            right = right && cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled;
            cudaGetLastError();
            CHECK(cudaDeviceDisablePeerAccess(1));
        }
    }
    // The second half goes to the first device, and through it back.
    int *copy, back[n], first[n], total = 0;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc(&copy, n * sizeof(int)));
    CHECK(cudaMemcpyPeer(copy, 0, x[1], other, n * sizeof(int)));
    CHECK(cudaMemcpyPeerAsync(x[1], other, copy, 0, n * sizeof(int), 0));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(back, x[1], sizeof back, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(first, x[0], sizeof first, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&total, sum[0], sizeof total, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) right = right && first[i] == 5 + !other && back[i] == 5 + 1;
    return verdict(right && total == n * (5 + !other));
}
