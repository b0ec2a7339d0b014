// Breadth-first search, one launch per level, over a random graph in compressed rows.
// Racy: a node is claimed by a load and a store instead of one atomic operation.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

const int nodes = 2000, edges = 12000;

__global__ void expand(const int *rows, const int *columns, const int *frontier, int size, int *parent,
                       int *next, int *next_size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size) return;
    int from = frontier[i];
    for (int edge = rows[from]; edge < rows[from + 1]; edge++) {
        int to = columns[edge];
#ifdef RACY
        if (parent[to] == -1) {  //~ race A
            parent[to] = from;   //~ race A, may B B
#else
        if (atomicCAS(&parent[to], -1, from) == -1) {
#endif
            next[atomicAdd(next_size, 1)] = to;
        }
    }
}

int main() {
    static int rows[nodes + 1], columns[edges], parent[nodes], depth[nodes], queue[nodes];
    Random random = {5};
    for (int i = 0; i < edges; i++) rows[1 + random(nodes)]++;
    for (int i = 0; i < nodes; i++) rows[i + 1] += rows[i];
    for (int i = 0; i < edges; i++) columns[i] = random(nodes);

    int *device_rows, *device_columns, *device_parent, *frontier, *next, *device_size;
    CHECK(cudaMalloc(&device_rows, sizeof rows));
    CHECK(cudaMalloc(&device_columns, sizeof columns));
    CHECK(cudaMalloc(&device_parent, sizeof parent));
    // The racy variant may put one node into the next frontier once per edge.
    CHECK(cudaMalloc(&frontier, sizeof columns));
    CHECK(cudaMalloc(&next, sizeof columns));
    CHECK(cudaMalloc(&device_size, sizeof(int)));
    CHECK(cudaMemcpy(device_rows, rows, sizeof rows, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_columns, columns, sizeof columns, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_parent, 0xff, sizeof parent));
    CHECK(cudaMemset(device_parent, 0, sizeof(int)));
    CHECK(cudaMemset(frontier, 0, sizeof(int)));
    for (int size = 1; size > 0;) {
        CHECK(cudaMemset(device_size, 0, sizeof(int)));
        expand<<<(size + 63) / 64, 64>>>(device_rows, device_columns, frontier, size, device_parent, next,
                                         device_size);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(&size, device_size, sizeof size, cudaMemcpyDeviceToHost));
        int *swap = frontier;
        frontier = next;
        next = swap;
    }
    CHECK(cudaMemcpy(parent, device_parent, sizeof parent, cudaMemcpyDeviceToHost));

    for (int i = 0; i < nodes; i++) depth[i] = -1;
    int head = 0, tail = 1;
    for (depth[0] = 0; head < tail; head++) {
        for (int edge = rows[queue[head]]; edge < rows[queue[head] + 1]; edge++) {
            int to = columns[edge];
            if (depth[to] != -1) continue;
            depth[to] = depth[queue[head]] + 1;
            queue[tail++] = to;
        }
    }
    // Any parent on the level before is right.
    bool right = true;
    for (int i = 1; i < nodes; i++) {
        right = right && (depth[i] == -1) == (parent[i] == -1);
        right = right && (depth[i] == -1 || depth[i] == depth[parent[i]] + 1);
    }
    return verdict(right);
}
