// Breadth-first search by levels over a random graph in compressed rows, with a flag per node for the frontier.
// In the suite's spirit it races on purpose: several nodes of a level may give the same neighbour the same distance
// and set its flag, and every thread that finds work sets the same flag for the host. All of them write the same
// value, which wants to be a warning; but one of the races is an error, because what a store has written is
// not known when more than one access came before and bytes beside it, or lanes beside it, are written too.
//@ variants: clean
//@ expect: race
//@ args: small
//@ verify: race
#include "bench.h"

const int degree = 6, threads = 256;

__global__ void visit(int nodes, const int *rows, const int *columns, bool *frontier, const bool *visited,
                      bool *found, int *distance) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || !frontier[node]) return;
    frontier[node] = false;
    for (int edge = rows[node]; edge < rows[node + 1]; edge++) {
        int to = columns[edge];
        if (!visited[to]) {
            distance[to] = distance[node] + 1;  //~ same-value A A
            found[to] = true;                   //~ same-value B B
        }
    }
}

__global__ void advance(int nodes, bool *frontier, bool *visited, bool *found, bool *more) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || !found[node]) return;
    frontier[node] = true;
    visited[node] = true;
    found[node] = false;
    *more = true;  //~ same-value C C
}

int main(int argc, char **argv) {
    const int nodes = pick(argc, argv, 2048, 1 << 22, 1 << 24);
    Random random = {5};
    std::vector<int> rows(nodes + 1), columns(size_t(nodes) * degree), distance(nodes, -1);
    for (int i = 0; i <= nodes; i++) rows[i] = i * degree;
    for (int &to : columns) to = random(nodes);

    Buffer<int> device_rows(rows), device_columns(columns);
    Buffer<bool> frontier(nodes), visited(nodes), found(nodes), more(1);
    distance[0] = 0;
    Buffer<int> device_distance(distance);
    frontier.zero();
    visited.zero();
    found.zero();
    CHECK(cudaMemset(frontier, 1, 1));
    CHECK(cudaMemset(visited, 1, 1));
    for (bool again = true; again;) {
        more.zero();
        visit<<<blocks(nodes, threads), threads>>>(nodes, device_rows, device_columns, frontier, visited, found,
                                                   device_distance);
        advance<<<blocks(nodes, threads), threads>>>(nodes, frontier, visited, found, more);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(&again, more, sizeof again, cudaMemcpyDeviceToHost));
    }

    std::vector<int> queue = {0};
    for (size_t head = 0; head < queue.size(); head++) {
        int node = queue[head];
        for (int edge = rows[node]; edge < rows[node + 1]; edge++) {
            int to = columns[edge];
            if (distance[to] != -1) continue;
            distance[to] = distance[node] + 1;
            queue.push_back(to);
        }
    }
    return verdict(device_distance.download() == distance);
}
