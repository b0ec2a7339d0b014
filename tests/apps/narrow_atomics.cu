// A flag of 8 bits, by libcu++: its header stores by a compare-and-swap of 32 bits and loads 16 bits, which is known and
// does not count. What the flag hands over may then be ordered or not, so the run is incomplete. A flag of 32 bits, as the
// help of the report says, is decided.
//@ expect(clean): no-race
//@ expect(racy): not-decided
//@ exit(racy): 75
//@ cuda: 13.0
//@ says(racy): known: inside NVIDIA's cuda/std/__atomic/functions/cuda_ptx_derived.h, not in your code
//@ says(racy): not decided: atomics of 8 bits may order the threads of the kernel
//@ says(racy): help: order the threads by atomics of 32 bits instead of 8, so that the checker can decide; if the pair is still reported then: put a barrier of the grid
//@ says(racy): 1 pair of accesses not decided: atomics of 8 bits may order the threads
#include <cuda/atomic>

#include "app.h"

#ifdef RACY
using Word = unsigned char;
#else
using Word = unsigned;
#endif

__global__ void hand_over(int *data, Word *word) {
    cuda::atomic_ref<Word, cuda::thread_scope_device> flag(*word);
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
    Word *word;
    CHECK(cudaMalloc(&data, 64));
    CHECK(cudaMalloc(&word, 64));
    CHECK(cudaMemset(word, 0, 64));
    hand_over<<<2, 1>>>(data, word);
    CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
    return host[1] == 7 ? 0 : 1;
}
