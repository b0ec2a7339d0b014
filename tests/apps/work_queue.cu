// Threads take items from a queue and append what comes of them, until nothing is left.
// An item n > 1 makes two items n - 1.
// Racy: an item is taken as soon as its slot is reserved, not when it has been written.
// The clean variant orders by flags and fences, which the device alone cannot decide.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

const int depth = 7, seeds = 8, slots = seeds << depth;

struct Queue {
    int head, tail, pending, done;
    int items[slots];
    int ready[slots];
};

__device__ void push(Queue *queue, int item) {
    int slot = atomicAdd(&queue->tail, 1);
    queue->items[slot] = item;  //~ race A
#ifndef RACY
    __threadfence();
    atomicExch(&queue->ready[slot], 1);
#endif
}

__device__ int take(Queue *queue, int slot) {
#ifndef RACY
    while (atomicAdd(&queue->ready[slot], 0) == 0) {
    }
    __threadfence();
#endif
    return queue->items[slot];  //~ race A
}

__global__ void work(Queue *queue) {
    for (;;) {
        // Reserve a slot only when there is one, so that no thread waits for an item that never comes.
        int slot = atomicAdd(&queue->head, 0);
        if (slot < atomicAdd(&queue->tail, 0)) {
            if (atomicCAS(&queue->head, slot, slot + 1) != slot) continue;
            int item = take(queue, slot);
            atomicAdd(&queue->done, 1);
            if (item > 1) {
                atomicAdd(&queue->pending, 2);
                push(queue, item - 1);
                push(queue, item - 1);
            }
            atomicSub(&queue->pending, 1);
        } else if (atomicAdd(&queue->pending, 0) == 0) {
            return;
        }
    }
}

int main() {
    static Queue queue;
    queue.tail = queue.pending = seeds;
    for (int i = 0; i < seeds; i++) {
        queue.items[i] = depth;
        queue.ready[i] = 1;
    }
    Queue *device_queue;
    CHECK(cudaMalloc(&device_queue, sizeof queue));
    CHECK(cudaMemcpy(device_queue, &queue, sizeof queue, cudaMemcpyHostToDevice));
    work<<<4, 32>>>(device_queue);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&queue, device_queue, sizeof queue, cudaMemcpyDeviceToHost));
    return verdict(queue.done == seeds * ((1 << depth) - 1) && queue.pending == 0);
}
