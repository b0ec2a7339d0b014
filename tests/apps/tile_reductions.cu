// Reductions and scans of tiles of four warps, by NVIDIA's cooperative groups: what these do in shared memory is known
// and does not count. Racy: the function that the reduction is given keeps a running sum in global memory.
//@[clean] expect: no-race
//@[racy] expect: race
//@ says: known: inside cooperative_groups.h, not in your code
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "app.h"

namespace cg = cooperative_groups;

struct Plus {
    int *calls;
    __device__ int operator()(int a, int b) const {
#ifdef RACY
        *calls = *calls + 1;  //~ race A A
#endif
        return a + b;
    }
};

__global__ void sums(int *out, int *calls) {
    __shared__ cg::block_tile_memory<256> memory;
    cg::thread_block block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<128>(block);
    int value = cg::reduce(tile, static_cast<int>(threadIdx.x), Plus{calls});
    value += cg::reduce(tile, static_cast<int>(threadIdx.x) * 2, cg::plus<int>());
    out[threadIdx.x] = value + cg::inclusive_scan(tile, 1);
}

int main() {
    int *out, *calls, host[256];
    CHECK(cudaMalloc(&out, sizeof host));
    CHECK(cudaMalloc(&calls, sizeof(int)));
    CHECK(cudaMemset(calls, 0, sizeof(int)));
    sums<<<1, 256>>>(out, calls);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) {
        int tile = i / 128, sum = (128 * tile + 128 * tile + 127) * 64;
        if (host[i] != 3 * sum + i % 128 + 1) return 1;
    }
    return 0;
}
