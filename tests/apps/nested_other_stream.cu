// A kernel that is launched by a kernel, and one that the host launches into another stream, behind an event.
// Racy: the other stream does not wait for the event, so nothing orders the two.
//@[clean] expect: no-race
//@[racy] expect: race
//@ unseen-in-fast: order between kernels and the work that they launch not checked
//@[racy] says: record an event in stream #1 after the first operation
//@ nvcc: -rdc=true
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
#include "app.h"

__global__ void produce(int *data, int by) { data[threadIdx.x] = by * threadIdx.x; }  //~ race A

__global__ void outer(int *data) {
    // The parameters of launches lie in memory that is somebody else's later.
    for (int i = 1; i <= 3; i++) produce<<<1, 64>>>(data, i);
}

__global__ void consume(const int *data, int *result, int *more) {
    result[threadIdx.x] = data[threadIdx.x] + 1;  //~ race A
    if (threadIdx.x < 4) more[threadIdx.x] = 1;
}

int main() {
    int *data, *result, host[64];
    CHECK(cudaMalloc(&data, sizeof host));
    CHECK(cudaMalloc(&result, sizeof host));
    cudaStream_t one, other;
    cudaEvent_t done;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&done));
    outer<<<1, 1, 0, one>>>(data);
    CHECK(cudaGetLastError());
    int *more;
    CHECK(cudaMalloc(&more, 4 * sizeof(int)));
    CHECK(cudaMemsetAsync(more, 0, 4 * sizeof(int), other));
    CHECK(cudaEventRecord(done, one));
#ifndef RACY
    CHECK(cudaStreamWaitEvent(other, done, 0));
#endif
    consume<<<1, 64, 0, other>>>(data, result, more);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host, result, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 64; i++) right = right && host[i] == 3 * i + 1;
    return verdict(right);
}
