// Blocks add to a sum under a lock.
// Racy: no data race, but one of them returns without giving the lock back, for which the others wait.
//@[clean] expect: no-race
//@[racy] expect: not-decided
//@[racy] exit: 66
//@[racy] says: deadlock
//@[racy] says: for 4 bytes of global memory to change (now 0x1)
//@[racy] says: while (atomicCAS(&lock, 0, 1) != 0)
//@[racy] not-as-on-gpu: a GPU that hangs is ended by --timeout
#include "app.h"

__device__ int lock, sum;

__global__ void add(int limit) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence();
    int before = sum;
#ifdef RACY
    if (before >= limit) return;
#endif
    sum = before + 1;
    __threadfence();
    atomicExch(&lock, 0);
}

int main() {
    add<<<12, 1>>>(5);
    end_or_deadlock();
    int result;
    CHECK(cudaMemcpyFromSymbol(&result, sum, sizeof result));
    return verdict(result == 12);
}
