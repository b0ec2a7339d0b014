// Each block publishes its own number, and then the sum of all numbers up to it. A block adds up what the blocks before it
// have published, back to the nearest sum.
// Racy: the fence before the first flag is missing. Where blocks run one after the other, each finds a sum.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] not-as-on-gpu: there it runs under one schedule, in which each block finds a sum
#include "app.h"

const int blocks = 24;
enum { nothing, number, sum };

struct Published {
    int number, sum;
    volatile int state;
};

__global__ void add_up(Published *published, int *ticket) {
    // Blocks number themselves in the order in which they start, so those before run already.
    int block = atomicAdd(ticket, 1), before = 0;
    Published &mine = published[block];
    mine.number = block + 1; //~ race A
#ifndef RACY
    __threadfence();
#endif
    mine.state = number;
    for (int other = block - 1; other >= 0; other--) {
        int state;
        while ((state = published[other].state) == nothing) {
        }
        __threadfence();
        before += state == sum ? published[other].sum : published[other].number; //~ race A
        if (state == sum) break;
    }
    mine.sum = before + block + 1;
    __threadfence();
    mine.state = sum;
}

int main() {
    Published found[blocks], *published;
    int *ticket;
    CHECK(cudaMalloc(&published, sizeof found));
    CHECK(cudaMalloc(&ticket, sizeof *ticket));
    CHECK(cudaMemset(published, 0, sizeof found));
    CHECK(cudaMemset(ticket, 0, sizeof *ticket));
    add_up<<<blocks, 1>>>(published, ticket);
    CHECK(cudaMemcpy(found, published, sizeof found, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int n = 0; n < blocks; n++) right &= found[n].sum == (n + 1) * (n + 2) / 2;
    return verdict(right);
}
