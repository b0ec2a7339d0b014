// A kernel launches producers and consumers into streams of its own, and orders them by an event.
// Racy: nobody waits for the event.
//@[clean] expect: no-race
//@[racy] expect: race
//@ unseen-in-fast: order between kernels and the work that they launch not checked
//@[racy] says: help: launch the second after the first: in the same stream of one block, behind an event
//@[racy] says: race between work that kernels launch
//@ nvcc: -rdc=true
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
#include "app.h"

__global__ void produce(int *data) { data[threadIdx.x] = 5 * threadIdx.x; }  //~ race A

__global__ void consume(const int *data, int *result) {
    result[threadIdx.x] = data[threadIdx.x] + 1;  //~ race A
}

__global__ void twice(int *result) { result[threadIdx.x] *= 2; }

__global__ void root(int *data, int *result) {
    cudaStream_t first, second;
    cudaEvent_t done;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    produce<<<1, 64, 0, first>>>(data);
    cudaEventRecord(done, first);
#ifndef RACY
    cudaStreamWaitEvent(second, done, 0);
#endif
    consume<<<1, 64, 0, second>>>(data, result);
    // Behind the other one by its stream.
    twice<<<1, 64, 0, second>>>(result);
    cudaEventDestroy(done);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
}

int main() {
    int *data, *result, host[64];
    CHECK(cudaMalloc(&data, sizeof host));
    CHECK(cudaMalloc(&result, sizeof host));
    root<<<1, 1>>>(data, result);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, result, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 64; i++) right = right && host[i] == 2 * (5 * i + 1);
    return verdict(right);
}
