// Atomics of 8 and 16 bits. libcu++ makes them of compare-and-swaps of the word around the element and of loads of
// 16 bits. They order threads and race as atomics of the element do; its neighbours in the word are other data.
//@[clean] expect: no-race
//@[racy] expect: race
//@ cuda: 13.0
#include <cuda/atomic>

#include "app.h"

constexpr auto acquire = cuda::memory_order_acquire, relaxed = cuda::memory_order_relaxed;
#ifdef RACY
constexpr auto release = relaxed;
#else
constexpr auto release = cuda::memory_order_release;
#endif

template <class T> using device_atomic = cuda::atomic_ref<T, cuda::thread_scope_device>;

struct State {
    unsigned char lock, counted;
    unsigned short halves;
    bool ready;
    signed char value;
    unsigned short number;
    int data, seen, guarded;
    unsigned char largest;
};

// The flag, the value and the number lie in one word.
__global__ void hand_over(State *state) {
    device_atomic<bool> ready(state->ready);
    if (blockIdx.x == 0) {
        state->data = 7;    //~ race A
        state->value = -3;  //~ race B
        ready.store(true, release);
        state->number = 1000;
    } else {
        while (!ready.load(acquire)) {
        }
        state->seen = state->data     //~ race A
                      + state->value; //~ race B
    }
}

// The lock and both counters lie in one word.
__global__ void count(State *state) {
    device_atomic<unsigned char>(state->counted).fetch_add(1, relaxed);
    device_atomic<unsigned short>(state->halves).fetch_add(3, relaxed);
    device_atomic<unsigned char>(state->largest).fetch_max(threadIdx.x, relaxed);
    device_atomic<unsigned char> lock(state->lock);
    bool done = false;
    while (!done) {
        unsigned char free = 0;
        if (lock.compare_exchange_strong(free, 1, acquire, relaxed)) {
            state->guarded += 2;
            lock.store(0, cuda::memory_order_release);
            done = true;
        }
    }
}

// A flag of 16 bits in the shared memory of a block.
__global__ void in_block(int *out) {
    __shared__ unsigned short flags[2];
    __shared__ int data;
    if (threadIdx.x == 0) {
        flags[0] = flags[1] = 0;
    }
    __syncthreads();
    cuda::atomic_ref<unsigned short, cuda::thread_scope_block> flag(flags[1]);
    if (threadIdx.x == 0) {
        data = 5;
        flag.fetch_or(4, cuda::memory_order_release);
        flags[0] = 9;
    } else if (threadIdx.x == 32) {
        while (flag.load(acquire) != 4) {
        }
        *out = data;
    }
}

int main() {
    State *state, host;
    int *out, seen;
    CHECK(cudaMalloc(&state, sizeof *state));
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaMemset(state, 0, sizeof *state));
    hand_over<<<2, 1>>>(state);
    count<<<4, 20>>>(state);
    in_block<<<1, 64>>>(out);
    CHECK(cudaMemcpy(&host, state, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&seen, out, sizeof seen, cudaMemcpyDeviceToHost));
    bool counts = host.counted == 80 && host.halves == 240 && host.largest == 19 && host.guarded == 160;
    return host.seen == 4 && host.number == 1000 && counts && seen == 5 ? 0 : 1;
}
