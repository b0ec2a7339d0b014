// Relaxes several rods, one block each, many sweeps per launch.
// Racy: no barrier between two sweeps, so a thread may read a neighbour's value of the wrong sweep.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

const int length = 256, sweeps = 20, rods = 6;

#ifdef RACY
#define END_OF_SWEEP()
#else
#define END_OF_SWEEP() __syncthreads()
#endif

__global__ void jacobi(float *a, float *b) {
    float *now = a + blockIdx.x * length, *next = b + blockIdx.x * length;
    int i = threadIdx.x;
    for (int sweep = 0; sweep < sweeps; sweep++) {
        if (i > 0 && i < length - 1) {
            float sum = now[i - 1] + now[i + 1];  //~ race A
            next[i] = 0.5f * sum;                 //~ race A
        }
        END_OF_SWEEP();
        float *swap = now;
        now = next;
        next = swap;
    }
}

int main() {
    static float now[rods * length], next[rods * length], result[rods * length];
    for (int i = 0; i < rods * length; i++) now[i] = next[i] = i % length == 0 ? 1024.0f * (1 + i / length) : 0.0f;
    float *device_a, *device_b;
    CHECK(cudaMalloc(&device_a, sizeof now));
    CHECK(cudaMalloc(&device_b, sizeof next));
    CHECK(cudaMemcpy(device_a, now, sizeof now, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, next, sizeof next, cudaMemcpyHostToDevice));
    jacobi<<<rods, length>>>(device_a, device_b);
    CHECK(cudaGetLastError());
    // An even number of sweeps ends in the first array.
    CHECK(cudaMemcpy(result, device_a, sizeof result, cudaMemcpyDeviceToHost));
    for (int sweep = 0; sweep < sweeps; sweep++) {
        float *in = sweep % 2 ? next : now, *out = sweep % 2 ? now : next;
        for (int i = 0; i < rods * length; i++) {
            if (i % length > 0 && i % length < length - 1) out[i] = 0.5f * (in[i - 1] + in[i + 1]);
        }
    }
    bool right = true;
    for (int i = 0; i < rods * length; i++) right = right && result[i] == now[i];
    return verdict(right);
}
