// A deque (Chase and Lev, SPAA 2005) and a queue (Michael and Scott, PODC 1996) whose places and nodes are used again. Who
// comes late reads a place that has been filled again, finds the counter changed, and throws away what it has read. All of
// it is volatile, with fences, so that there is no race and nothing to warn of.
//
//@ variants: clean
//@ expect: no-race
#include "app.h"

typedef unsigned long long Link;

const int kPlaces = 8, kItems = 40, kThieves = 4;
const unsigned kNodes = 16, kUsers = 12, kRounds = 6;

__device__ volatile int top, bottom, places[kPlaces], remaining = kItems;
__device__ int taken[kItems];

__device__ bool push(int item)
{
    int b = bottom, t = top;
    __threadfence();
    if (b - t >= kPlaces) return false;
    places[b % kPlaces] = item;
    __threadfence();
    bottom = b + 1;
    return true;
}

__device__ int pop()
{
    int b = bottom - 1;
    bottom = b;
    __threadfence();
    int t = top;
    if (t > b) {
        bottom = b + 1;
        return -1;
    }
    int item = places[b % kPlaces];
    if (t == b) {
        __threadfence();
        if (atomicCAS((int *)&top, t, t + 1) != t) item = -1;
        bottom = b + 1;
    }
    return item;
}

__device__ int steal()
{
    int t = top;
    __threadfence();
    int b = bottom;
    __threadfence();
    if (t >= b) return -1;
    int item = places[t % kPlaces];
    __threadfence();
    return atomicCAS((int *)&top, t, t + 1) == t ? item : -1;
}

__device__ void done(int item)
{
    if (item < 0) return;
    atomicAdd(&taken[item], 1);
    atomicSub((int *)&remaining, 1);
}

__global__ void share()
{
    if (blockIdx.x == 0) {
        for (int i = 0; i < kItems;) {
            if (push(i)) i++;
            else done(pop());
        }
        while (remaining > 0) done(pop());
    } else {
        while (remaining > 0) done(steal());
    }
}

// A link has the number of a node below, and above how often it has changed.
struct Node {
    volatile unsigned value;
    volatile Link next;
};
__device__ Node nodes[kNodes];
__device__ volatile Link head = 1, tail = 1;
__device__ unsigned sum;

__device__ Link to(unsigned node, Link before) { return ((before >> 32) + 1) << 32 | node; }

__device__ bool change(volatile Link *link, Link before, unsigned node)
{
    __threadfence();
    return atomicCAS((Link *)link, before, to(node, before)) == before;
}

__device__ void put(unsigned node, unsigned value)
{
    nodes[node].value = value;
    nodes[node].next = to(0, nodes[node].next);
    for (;;) {
        Link last = tail;
        __threadfence();
        Link next = nodes[(unsigned)last].next;
        __threadfence();
        if (last != tail) continue;
        if ((unsigned)next != 0) {
            change(&tail, last, (unsigned)next);
        } else if (change(&nodes[(unsigned)last].next, next, node)) {
            change(&tail, last, node);
            return;
        }
    }
}

__device__ unsigned take(unsigned *value)
{
    for (;;) {
        Link first = head;
        __threadfence();
        Link last = tail;
        __threadfence();
        Link next = nodes[(unsigned)first].next;
        __threadfence();
        if (first != head) continue;
        if ((unsigned)first == (unsigned)last) {
            if ((unsigned)next == 0) return 0;
            change(&tail, last, (unsigned)next);
        } else {
            *value = nodes[(unsigned)next].value;
            if (change(&head, first, (unsigned)next)) {
                __threadfence();
                return (unsigned)first;
            }
        }
    }
}

__global__ void hand_on()
{
    unsigned mine = 2 + blockIdx.x, value;
    for (unsigned round = 1; round <= kRounds; round++) {
        put(mine, round);
        while (!(mine = take(&value))) continue;
        atomicAdd(&sum, value);
    }
}

int main()
{
    share<<<1 + kThieves, 1>>>();
    CHECK(cudaGetLastError());
    hand_on<<<kUsers, 1>>>();
    CHECK(cudaGetLastError());
    int items[kItems];
    unsigned all;
    CHECK(cudaMemcpyFromSymbol(items, taken, sizeof items));
    CHECK(cudaMemcpyFromSymbol(&all, sum, sizeof all));
    bool once = true;
    for (int item : items) once &= item == 1;
    return verdict(once && all == kUsers * kRounds * (kRounds + 1) / 2);
}
