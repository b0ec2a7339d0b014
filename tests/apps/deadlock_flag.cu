// A producer fills a buffer and sets a flag, for which consumers in other blocks wait.
// Racy: no data race, but the producer returns on a value that it does not like, and the flag is never set.
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] exit: 66
//@[racy] says: 0 races, 1 deadlock
//@[racy] says: for 4 bytes of global memory to change (now 0x0)
//@[racy] says: variable `ready`
//@[racy] says: note: block (0,0,0) has exited
//@[racy] not-as-on-gpu: a GPU that hangs is ended by --timeout
#include <cuda/atomic>
#include "app.h"

__device__ cuda::atomic<int, cuda::thread_scope_device> ready;

__global__ void hand_over(const int *in, int *buffer, int *out) {
    if (blockIdx.x == 0) {
        if (threadIdx.x > 0) return;
        for (int i = 0; i < 32; i++) {
#ifdef RACY
            if (in[i] == 11) return;
#endif
            buffer[i] = in[i] + 1;
        }
        ready.store(1, cuda::memory_order_release);
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {
        }
        out[32 * (blockIdx.x - 1) + threadIdx.x] = buffer[threadIdx.x];
    }
}

int main() {
    int in[32], out[64], *device_in, *buffer, *device_out;
    for (int i = 0; i < 32; i++) in[i] = i;
    CHECK(cudaMalloc(&device_in, sizeof in));
    CHECK(cudaMalloc(&buffer, sizeof in));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemcpy(device_in, in, sizeof in, cudaMemcpyHostToDevice));
    hand_over<<<3, 32>>>(device_in, buffer, device_out);
    end_or_deadlock();
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 64; i++) right = right && out[i] == i % 32 + 1;
    return verdict(right);
}
