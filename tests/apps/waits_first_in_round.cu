// Waits that are the first statement of each round of a loop. The compiler gives both loops one head.
// Two blocks work in turn on one value, for several rounds: each waits until a volatile counter says that it is its turn.
// Racy: no fence stands behind the wait.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] options: --fail-on warning
#include "app.h"

const int blocks = 2, rounds = 4;

__global__ void in_turn(volatile int *turn, int *total) {
    for (int round = 0; round < rounds; round++) {
        int mine = round * blocks + blockIdx.x;
        while (*turn != mine) {
        }
#ifndef RACY
        __threadfence();
#endif
        *total += mine;  //~ race A, race A
        __threadfence();
        *turn = mine + 1;
    }
}

int main() {
    int *turn, *total, sum = 0;
    CHECK(cudaMalloc(&turn, sizeof(int)));
    CHECK(cudaMalloc(&total, sizeof(int)));
    CHECK(cudaMemset(turn, 0, sizeof(int)));
    CHECK(cudaMemset(total, 0, sizeof(int)));
    in_turn<<<blocks, 1>>>(turn, total);
    CHECK(cudaMemcpy(&sum, total, sizeof(int), cudaMemcpyDeviceToHost));
    const int turns = blocks * rounds;
    return verdict(sum == turns * (turns - 1) / 2);
}
