// Cooperative groups: tiles, coalesced and labelled groups, and their collectives.
//@ variants: clean
//@ expect: no-race
//@ nvcc: -std=c++17
#include "app.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;
const int threads = 128;

__global__ void collect(const int *in, int *eights, int *scans, int *odd, int *same) {
    auto block = cg::this_thread_block();
    auto eight = cg::tiled_partition<8>(block);
    int at = block.thread_rank(), x = in[at];
    int sum = cg::reduce(eight, x, cg::plus<int>());
    if (eight.thread_rank() == 0) eights[at / 8] = sum;
    auto warp = cg::tiled_partition<32>(block);
    scans[at] = cg::inclusive_scan(warp, x, cg::greater<int>());
    if (x % 2 == 1) {
        // One atomic for all lanes that are here.
        auto active = cg::coalesced_threads();
        if (active.thread_rank() == 0) atomicAdd(odd, active.size());
        active.sync();
    }
    auto alike = cg::labeled_partition(warp, x % 3);
    same[at] = alike.size() * 100 + alike.thread_rank();
}

int main() {
    int input[threads], eights[threads / 8], scans[threads], odd, same[threads];
    Random random{5};
    for (int &x : input) x = random(50);
    int *in, *d_eights, *d_scans, *d_odd, *d_same;
    CHECK(cudaMalloc(&in, sizeof input));
    CHECK(cudaMalloc(&d_eights, sizeof eights));
    CHECK(cudaMalloc(&d_scans, sizeof scans));
    CHECK(cudaMalloc(&d_odd, sizeof odd));
    CHECK(cudaMalloc(&d_same, sizeof same));
    CHECK(cudaMemcpy(in, input, sizeof input, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_odd, 0, sizeof odd));
    collect<<<1, threads>>>(in, d_eights, d_scans, d_odd, d_same);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(eights, d_eights, sizeof eights, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(scans, d_scans, sizeof scans, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&odd, d_odd, sizeof odd, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(same, d_same, sizeof same, cudaMemcpyDeviceToHost));
    bool right = true;
    int odd_host = 0, sum = 0, most = 0;
    for (int at = 0; at < threads; at++) {
        int x = input[at], size = 0, rank = 0;
        odd_host += x % 2;
        sum = at % 8 == 0 ? x : sum + x;
        most = at % 32 == 0 || x > most ? x : most;
        for (int other = at / 32 * 32; other < at / 32 * 32 + 32; other++) {
            size += input[other] % 3 == x % 3;
            rank += input[other] % 3 == x % 3 && other < at;
        }
        if (at % 8 == 7) right &= eights[at / 8] == sum;
        right &= scans[at] == most && same[at] == size * 100 + rank;
    }
    return verdict(right && odd == odd_host);
}
