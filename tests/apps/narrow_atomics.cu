// A flag of 8 bits, by libcu++: its header stores by a compare-and-swap of 32 bits and loads 16 bits, which is known and
// does not count. What the flag hands over may then be ordered or not, so the run is incomplete.
//@ variants: clean
//@ expect: not-decided
//@ exit: 75
//@ cuda: 13.0
//@ says: known: inside NVIDIA's cuda/std/__atomic/functions/cuda_ptx_derived.h, not in your code
//@ says: the kernel may order its threads by atomics of 8 bits
//@ says: 1 race not decided: threads may be ordered by atomics of 8 bits
#include <cuda/atomic>

#include "app.h"

using Flag = cuda::atomic_ref<unsigned char, cuda::thread_scope_device>;

__global__ void hand_over(int *data, unsigned char *bytes) {
    Flag flag(*bytes);
    if (blockIdx.x == 0) {
        data[0] = 7;
        flag.store(1, cuda::memory_order_release);
    } else {
        while (!flag.load(cuda::memory_order_acquire)) {
        }
        data[1] = data[0];
    }
}

int main() {
    int *data, host[2];
    unsigned char *bytes;
    CHECK(cudaMalloc(&data, 64));
    CHECK(cudaMalloc(&bytes, 64));
    CHECK(cudaMemset(bytes, 0, 64));
    hand_over<<<2, 1>>>(data, bytes);
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    return host[1] == 7 ? 0 : 1;
}
