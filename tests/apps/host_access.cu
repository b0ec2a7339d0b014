// Managed and page-locked memory, used by kernels and by the program's own code on the host, which waits in each way that
// there is, or does not wait.
// Racy: the host reads or writes what a kernel uses that may still run.
//@ needs: page-table
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] says: accesses by the host to managed or page-locked memory not looked for everywhere
//@[racy] says: error[CR015]: race between host and device: the host accesses memory that a kernel writes, and has not waited for the kernel
//@[racy] says: error[CR015]: race between host and device: the host writes memory that a kernel reads, and has not waited for the kernel
//@[racy] says: second: an access by the program's own code to the page of this address, somewhere before its call at host_access.cu:60 main, on the host
//@[racy] says: help: let the host wait for the kernel before it accesses the memory: `cudaStreamSynchronize` for stream #1
//@[racy] unseen-in-fast: accesses by the host to managed or page-locked memory not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
//@ nvcc: -cudart shared -arch=sm_90 -g
#include "app.h"

const int n = 4096;

__global__ void write_all(int *data, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = value;  //~ race-with-call A
}

__global__ void read_all(const int *data, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = data[i];  //~ race-with-call B
}

__global__ void write_some(int *data, int value) {
    data[threadIdx.x] = value;  //~ race-with-call C
}

// The host waits for the flag.
__global__ void write_and_signal(int *data, volatile int *flag) {
    data[threadIdx.x] = 5;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *flag = 1;
    }
}

int main() {
    const int threads = 128, blocks = n / threads;
    const size_t bytes = n * sizeof(int);
    int *managed, *pinned, *device;
    cudaStream_t stream;
    cudaEvent_t event;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&event));
    CHECK(cudaMallocManaged(&managed, bytes));
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaMalloc(&device, bytes));
    bool right = true;

    // The host reads what a kernel writes.
    write_all<<<blocks, threads, 0, stream>>>(managed, 1);
#ifdef RACY
    right = right && managed[100] == 1;
    CHECK(cudaEventRecord(event, stream));
#else
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaEventSynchronize(event));
    right = right && managed[100] == 1;
#endif
    CHECK(cudaStreamSynchronize(stream));

    // The host writes what a kernel reads.
    read_all<<<blocks, threads, 0, stream>>>(managed, device);
#ifndef RACY
    CHECK(cudaStreamSynchronize(stream));
#endif
    managed[1000] = 2;
    CHECK(cudaDeviceSynchronize());

    // Some bytes of a page that the host writes as well.
    write_some<<<1, threads, 0, stream>>>(managed, 3);
    managed[threads] = 4;
#ifdef RACY
    managed[threads - 1] = 4;
#endif
    CHECK(cudaStreamSynchronize(stream));
    right = right && managed[threads - 2] == 3 && managed[threads] == 4;

    // A flag in memory of the host says that the data is there.
    pinned[0] = 0;
    write_and_signal<<<1, threads, 0, stream>>>(managed, pinned);
    while (*(volatile int *)pinned == 0) {
    }
    for (int i = 0; i < threads; i++) right = right && managed[i] == 5;
    CHECK(cudaDeviceSynchronize());

    // A function on the host that the stream calls.
    write_all<<<blocks, threads, 0, stream>>>(managed, 6);
    auto look = [](void *data) { *(int *)data += 1; };
    CHECK(cudaLaunchHostFunc(stream, look, managed));
    CHECK(cudaStreamSynchronize(stream));
    right = right && managed[0] == 7 && managed[1] == 6;

    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(managed));
    return verdict(right);
}
