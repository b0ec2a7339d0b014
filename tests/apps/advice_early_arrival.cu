// Two warps that hand values over by numbered barriers: one warp arrives there and goes on, and the other one waits. Racy: the
// first warp arrives before it writes. What the report advises, the clean variant does, as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] says: help: let the first thread arrive after its access, and not before, at the barrier at which it arrives at advice_early_arrival.cu:24 (`barrier.arrive`)
#include "app.h"

const int kLanes = 32, kRounds = 5;

#define WAIT(barrier) asm volatile("barrier.sync.aligned " barrier ", 64;" ::: "memory")
#define ARRIVE(barrier) asm volatile("barrier.arrive.aligned " barrier ", 64;" ::: "memory")
#define FULL "1"
#define EMPTY "2"

__global__ void hand_over(const int *in, int *out)
{
    __shared__ int values[kLanes];
    int lane = threadIdx.x % kLanes;
    if (threadIdx.x < kLanes) {
        for (int round = 0; round < kRounds; round++) {
            if (round > 0) WAIT(EMPTY);
#ifdef RACY
            ARRIVE(FULL);
            values[lane] = round * in[lane];  //~ race A
#else
            values[lane] = round * in[lane];
            ARRIVE(FULL);
#endif
        }
    } else {
        int sum = 0;
        for (int round = 0; round < kRounds; round++) {
            WAIT(FULL);
            sum += values[kLanes - 1 - lane];  //~ race A
            if (round + 1 < kRounds) ARRIVE(EMPTY);
        }
        out[lane] = sum;
    }
}

int main()
{
    int *in, *out;
    CHECK(cudaMallocManaged(&in, kLanes * sizeof *in));
    CHECK(cudaMallocManaged(&out, kLanes * sizeof *out));
    for (int i = 0; i < kLanes; i++) in[i] = 3 * i;
    hand_over<<<1, 2 * kLanes>>>(in, out);
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int i = 0; i < kLanes; i++) right = right && out[i] == kRounds * (kRounds - 1) / 2 * 3 * (kLanes - 1 - i);
    return verdict(right);
}
