// Loops whose end the threads of a block agree on. Racy: a barrier behind a read is missing.
// In the first loop the block votes whether to go on. In the second the word that is read decides who leaves it, so that the
// race makes threads miss the barrier at its end.
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: put `__syncthreads()` after the read at advice_agreed_loop.cu:17
//@[racy] says: help: put `__syncthreads()` after the read at advice_agreed_loop.cu:34
#include "app.h"

// Each thread takes the greatest value of its neighbours in a ring, until nothing changes.
__global__ void spread(const int *in, int *out) {
    __shared__ int values[64];
    int t = threadIdx.x, changed;
    values[t] = in[t];
    __syncthreads();
    do {
        int greatest = max(values[(t + 1) % 64], values[(t + 63) % 64]);
#ifndef RACY
        __syncthreads();
#endif
        changed = greatest > values[t];
        values[t] = max(greatest, values[t]);
    } while (__syncthreads_or(changed));
    out[t] = values[t];
}

// Halves the number of items in each round; thread 0 resets the count that has been read.
__global__ void rounds(int items, int *out) {
    __shared__ int count[2];
    int t = threadIdx.x, sum = 0;
    if (t == 0) count[0] = items, count[1] = 0;
    __syncthreads();
    for (int now = 0;; now ^= 1) {
        int left = count[now];
        if (left == 0) break;
#ifndef RACY
        __syncthreads();
#endif
        if (t == 0) count[now] = 0;
        if (t < left / 2) atomicAdd(&count[now ^ 1], 1);
        sum += left;
        __syncthreads();
    }
    out[t] = sum;
}

int main() {
    const int n = 64;
    int *in, *out, host[n], greatest = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        host[i] = 37 * i % 101;
        greatest = host[i] > greatest ? host[i] : greatest;
    }
    CHECK(cudaMalloc(&in, sizeof host));
    CHECK(cudaMalloc(&out, sizeof host));
    CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    spread<<<1, n>>>(in, out);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < n; i++) right = right && host[i] == greatest;
    rounds<<<1, n>>>(40, out);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int items = 40; items > 0; items /= 2) sum += items;
    for (int i = 0; i < n; i++) right = right && host[i] == sum;
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return verdict(right);
}
