// Two launches in two streams, of which one hands data to the other by a flag; a third one in the stream of the second uses
// the data too. Whether the flag orders all of it is not decided. Racy: the flag is stored without a release.
//@[clean] expect: not-decided
//@[clean] exit: 75
//@[clean] says: 2 pairs of launches or copies in different streams may race (such as give(int*, unsigned int*) and take(int const*, unsigned int*, int*)): not decided, because one reads flags that the other sets
//@[racy] expect: race
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
//@[clean] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include <cuda/atomic>

#include "app.h"

using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

#ifdef RACY
static const auto set_by = cuda::memory_order_relaxed;
#else
static const auto set_by = cuda::memory_order_release;
#endif

__global__ void give(int *data, unsigned *flag) {
    data[threadIdx.x] = threadIdx.x; //~ race A, race B
    __syncthreads();
    if (threadIdx.x == 0)
        Flag(*flag).store(1, set_by);
}

__global__ void take(const int *data, unsigned *flag, int *out) {
    if (threadIdx.x == 0)
        while (Flag(*flag).load(cuda::memory_order_acquire) == 0)
            ;
    __syncthreads();
    out[threadIdx.x] = 2 * data[threadIdx.x]; //~ race A
}

__global__ void add(const int *data, int *out) {
    out[threadIdx.x] += data[threadIdx.x]; //~ race B
}

int main() {
    const int threads = 64;
    int *data, *out, result[threads];
    unsigned *flag;
    cudaStream_t streams[2];
    CHECK(cudaMalloc(&data, sizeof result));
    CHECK(cudaMalloc(&out, sizeof result));
    CHECK(cudaMalloc(&flag, sizeof *flag));
    CHECK(cudaMemset(flag, 0, sizeof *flag));
    CHECK(cudaDeviceSynchronize());
    for (cudaStream_t &stream : streams)
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    give<<<1, threads, 0, streams[0]>>>(data, flag);
    take<<<1, threads, 0, streams[1]>>>(data, flag, out);
    add<<<1, threads, 0, streams[1]>>>(data, out);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < threads; i++)
        right = right && result[i] == 3 * i;
    return verdict(right);
}
