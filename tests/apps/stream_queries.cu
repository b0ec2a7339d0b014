// Work of two streams that the program orders by asking (cudaStreamQuery, cudaEventQuery), and by values that a stream
// writes to memory and another one waits for (cuStreamWriteValue32, cuStreamWaitValue32).
// Racy: it asks once and goes on whatever the answer is; it waits for the value that says that the work has begun.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
//@ nvcc: -cudart shared -arch=sm_90 -lcuda
#include <cuda.h>
#include "app.h"

__global__ void fill(int *data, int n, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = first + i;  //~ race A, race B, race C
}

__global__ void sum_after_stream(const int *data, int n, unsigned long long *total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, (unsigned long long)data[i]);  //~ race A
}

__global__ void sum_after_event(const int *data, int n, unsigned long long *total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, (unsigned long long)data[i]);  //~ race B
}

__global__ void sum_after_value(const int *data, int n, unsigned long long *total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, (unsigned long long)data[i]);  //~ race C
}

__global__ void fill_again(int *data, int n, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = first + i;
}

__global__ void sum_of_round(const int *data, int n, unsigned long long *total) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, (unsigned long long)data[i]);
}

int main() {
    const int n = 4096, blocks = n / 128;
    int *data;
    unsigned *flag, *turn;
    unsigned long long *totals, host[4] = {};
    cudaStream_t one, two;
    cudaEvent_t filled;
    CHECK(cudaMalloc(&data, n * sizeof *data));
    CHECK(cudaMalloc(&flag, sizeof *flag));
    CHECK(cudaMalloc(&turn, sizeof *turn));
    CHECK(cudaMalloc(&totals, sizeof host));
    CHECK(cudaMemset(flag, 0, sizeof *flag));
    CHECK(cudaMemset(turn, 0, sizeof *turn));
    CHECK(cudaMemset(totals, 0, sizeof host));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    bool idle = cudaStreamQuery(one) == cudaSuccess && cudaEventQuery(filled) == cudaSuccess;

    fill<<<blocks, 128, 0, one>>>(data, n, 0);
#ifdef RACY
    cudaStreamQuery(one);
#else
    while (cudaStreamQuery(one) == cudaErrorNotReady) {}
#endif
    sum_after_stream<<<blocks, 128, 0, two>>>(data, n, totals);
    CHECK(cudaDeviceSynchronize());
    idle = idle && cudaStreamQuery(one) == cudaSuccess && cudaStreamQuery(two) == cudaSuccess;

    fill<<<blocks, 128, 0, one>>>(data, n, 1);
    CHECK(cudaEventRecord(filled, one));
#ifdef RACY
    cudaEventQuery(filled);
#else
    while (cudaEventQuery(filled) == cudaErrorNotReady) {}
#endif
    sum_after_event<<<blocks, 128, 0, two>>>(data, n, totals + 1);
    CHECK(cudaDeviceSynchronize());
    idle = idle && cudaEventQuery(filled) == cudaSuccess;

    // The stream says when it begins and when it has ended.
    DRIVER(cuStreamWriteValue32(one, (CUdeviceptr)flag, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
    fill<<<blocks, 128, 0, one>>>(data, n, 2);
    DRIVER(cuStreamWriteValue32(one, (CUdeviceptr)flag, 2, CU_STREAM_WRITE_VALUE_DEFAULT));
#ifdef RACY
    DRIVER(cuStreamWaitValue32(two, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
#else
    DRIVER(cuStreamWaitValue32(two, (CUdeviceptr)flag, 2, CU_STREAM_WAIT_VALUE_GEQ));
#endif
    sum_after_value<<<blocks, 128, 0, two>>>(data, n, totals + 2);
    CHECK(cudaDeviceSynchronize());

    // Two rounds through one buffer: the consumer gives it back by a zero.
    for (int round = 0; round < 2; round++) {
        DRIVER(cuStreamWaitValue32(one, (CUdeviceptr)turn, 0, CU_STREAM_WAIT_VALUE_EQ));
        fill_again<<<blocks, 128, 0, one>>>(data, n, round);
        DRIVER(cuStreamWriteValue32(one, (CUdeviceptr)turn, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
        DRIVER(cuStreamWaitValue32(two, (CUdeviceptr)turn, 1, CU_STREAM_WAIT_VALUE_EQ));
        sum_of_round<<<blocks, 128, 0, two>>>(data, n, totals + 3);
        DRIVER(cuStreamWriteValue32(two, (CUdeviceptr)turn, 0, CU_STREAM_WRITE_VALUE_DEFAULT));
    }
    CHECK(cudaDeviceSynchronize());

    CHECK(cudaMemcpy(host, totals, sizeof host, cudaMemcpyDeviceToHost));
    const unsigned long long sum = (unsigned long long)n * (n - 1) / 2;
    bool right = idle && host[0] == sum && host[1] == sum + n && host[2] == sum + 2 * n && host[3] == 2 * sum + n;
    CHECK(cudaEventDestroy(filled));
    CHECK(cudaStreamDestroy(one));
    CHECK(cudaStreamDestroy(two));
    CHECK(cudaFree(data));
    CHECK(cudaFree(flag));
    CHECK(cudaFree(turn));
    CHECK(cudaFree(totals));
    return verdict(right);
}
