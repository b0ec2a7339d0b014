// Shortest paths from one node: rounds of relaxations over a worklist, with atomicMin on distances.
// Racy: distances are compared and written without an atomic.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#include <vector>

const int nodes = 300, degree = 4, threads = 64;

__global__ void relax(const int *edges, const int *weights, int *distance, const int *work, int length,
                      int *next, int *next_length, int *listed, int round) {
    int at = blockIdx.x * threads + threadIdx.x;
    if (at >= length) return;
    int node = work[at];
#ifdef RACY
    int here = distance[node];                      //~ race A
#else
    int here = atomicAdd(&distance[node], 0);
#endif
    for (int edge = node * degree; edge < (node + 1) * degree; edge++) {
        int to = edges[edge], there = here + weights[edge];
#ifdef RACY
        if (there >= distance[to]) continue;        //~ race B
        distance[to] = there;                       //~ race A, race B, race C C
#else
        if (there >= atomicMin(&distance[to], there)) continue;
#endif
        // Once on the next list is enough.
        if (atomicExch(&listed[to], round) != round) next[atomicAdd(next_length, 1)] = to;
    }
}

int main() {
    std::vector<int> edges(nodes * degree), weights(nodes * degree), distance(nodes, 1 << 20);
    Random random{31};
    for (int node = 0; node < nodes; node++)
        for (int edge = 0; edge < degree; edge++) {
            // Many edges lead to few nodes.
            edges[node * degree + edge] = edge == 0 ? (node + 1) % nodes : random(edge == 1 ? nodes : 8);
            weights[node * degree + edge] = 1 + random(20);
        }
    distance[0] = 0;
    int *d_edges, *d_weights, *d_distance, *lists[2], *length, *listed, count = 1;
    size_t bytes = nodes * sizeof(int);
    CHECK(cudaMalloc(&d_edges, degree * bytes));
    CHECK(cudaMalloc(&d_weights, degree * bytes));
    CHECK(cudaMalloc(&d_distance, bytes));
    CHECK(cudaMalloc(&lists[0], bytes));
    CHECK(cudaMalloc(&lists[1], bytes));
    CHECK(cudaMalloc(&length, sizeof(int)));
    CHECK(cudaMalloc(&listed, bytes));
    CHECK(cudaMemcpy(d_edges, edges.data(), degree * bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_weights, weights.data(), degree * bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_distance, distance.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(lists[0], 0, bytes));
    CHECK(cudaMemset(listed, 0, bytes));
    for (int round = 1; count > 0; round++) {
        CHECK(cudaMemset(length, 0, sizeof(int)));
        relax<<<(count + threads - 1) / threads, threads>>>(d_edges, d_weights, d_distance, lists[(round + 1) % 2],
                                                            count, lists[round % 2], length, listed, round);
        CHECK(cudaMemcpy(&count, length, sizeof(int), cudaMemcpyDeviceToHost));
    }
    std::vector<int> result(nodes);
    CHECK(cudaMemcpy(result.data(), d_distance, bytes, cudaMemcpyDeviceToHost));
    for (bool changed = true; changed;) {
        changed = false;
        for (int node = 0; node < nodes; node++)
            for (int edge = node * degree; edge < (node + 1) * degree; edge++) {
                int there = distance[node] + weights[edge];
                if (there < distance[edges[edge]]) {
                    distance[edges[edge]] = there;
                    changed = true;
                }
            }
    }
    return verdict(result == distance);
}
