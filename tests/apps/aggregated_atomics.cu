// A filter whose warps reserve room in the output with one atomic each.
// Racy: the counter is read and written without an atomic.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#include <algorithm>

const int n = 5000, threads = 128;

__global__ void filter(const int *in, int *out, int *count) {
    int at = blockIdx.x * threads + threadIdx.x;
    bool keep = at < n && in[at] % 3 == 0;
    unsigned keepers = __ballot_sync(~0u, keep);
    int lane = threadIdx.x % 32, base = 0;
    if (lane == 0 && keepers != 0) {
#ifdef RACY
        base = *count;                          //~ race A
        *count = base + __popc(keepers);        //~ race A, race B B
#else
        base = atomicAdd(count, __popc(keepers));
#endif
    }
    base = __shfl_sync(~0u, base, 0);
    if (keep) out[base + __popc(keepers & ((1u << lane) - 1))] = in[at];  //~ may C C
}

int main() {
    static int input[n], result[n];
    Random random{13};
    for (int &x : input) x = random(100000);
    int *in, *out, *count, found = 0;
    CHECK(cudaMalloc(&in, sizeof input));
    CHECK(cudaMalloc(&out, sizeof result));
    CHECK(cudaMalloc(&count, sizeof(int)));
    CHECK(cudaMemcpy(in, input, sizeof input, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(count, 0, sizeof(int)));
    filter<<<(n + threads - 1) / threads, threads>>>(in, out, count);
    CHECK(cudaMemcpy(&found, count, sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
    int *end = std::partition(input, input + n, [](int x) { return x % 3 == 0; });
    bool right = found == end - input;
    if (right) {
        std::sort(input, end);
        std::sort(result, result + found);
        right = std::equal(input, end, result);
    }
    return verdict(right);
}
