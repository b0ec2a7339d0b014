// Barriers that belong behind a whole loop, and behind a call of a library: the compiler has unrolled the one and inlined
// the other.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: put `__syncthreads()` after the end of the loop at advice_loops.cu:28
//@[racy] says: help: put `__syncthreads()` after the call at advice_loops.cu:40
#include "app.h"
#include <cub/block/block_reduce.cuh>

#ifdef RACY
#define ADVISED(text)
#else
#define ADVISED(text) text
#endif

const int kTile = 16, kSize = 64, kThreads = 128, kRounds = 4;

__global__ void multiply(const float *a, const float *b, float *c)
{
    __shared__ float rows[kTile][kTile], columns[kTile][kTile];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
    float sum = 0;
    for (int tile = 0; tile < kSize / kTile; tile++) {
        rows[y][x] = a[row * kSize + tile * kTile + x];
        columns[y][x] = b[(tile * kTile + y) * kSize + column];
        __syncthreads();
        for (int k = 0; k < kTile; k++) { sum += rows[y][k] * columns[k][x]; } ADVISED(__syncthreads();)
    }
    c[row * kSize + column] = sum;
}

// The storage of a collective operation may be used again behind a barrier only.
__global__ void add_up(const int *in, int *sums)
{
    using Reduce = cub::BlockReduce<int, kThreads>;
    __shared__ typename Reduce::TempStorage storage;
    for (int round = 0; round < kRounds; round++) {
        int value = in[round * kThreads + threadIdx.x];
        int sum = Reduce(storage).Sum(value); ADVISED(__syncthreads();)
        if (threadIdx.x == 0) sums[round] = sum;
    }
}

int main()
{
    const int count = kSize * kSize;
    static float a[count], b[count], right[count], found[count];
    static int in[kRounds * kThreads], sums[kRounds];
    Random random{7};
    for (int i = 0; i < count; i++) {
        a[i] = random(8);
        b[i] = random(8);
    }
    for (int row = 0; row < kSize; row++)
        for (int column = 0; column < kSize; column++)
            for (int k = 0; k < kSize; k++) right[row * kSize + column] += a[row * kSize + k] * b[k * kSize + column];
    for (int &value : in) value = random(100);
    float *from, *with, *to;
    int *numbers, *totals;
    CHECK(cudaMalloc(&from, sizeof a));
    CHECK(cudaMalloc(&with, sizeof b));
    CHECK(cudaMalloc(&to, sizeof found));
    CHECK(cudaMalloc(&numbers, sizeof in));
    CHECK(cudaMalloc(&totals, sizeof sums));
    CHECK(cudaMemcpy(from, a, sizeof a, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(with, b, sizeof b, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(numbers, in, sizeof in, cudaMemcpyHostToDevice));
    multiply<<<dim3(kSize / kTile, kSize / kTile), dim3(kTile, kTile)>>>(from, with, to);
    CHECK(cudaGetLastError());
    add_up<<<1, kThreads>>>(numbers, totals);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(found, to, sizeof found, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(sums, totals, sizeof sums, cudaMemcpyDeviceToHost));
    bool same = true;
    for (int i = 0; i < count; i++) same &= found[i] == right[i];
    for (int round = 0; round < kRounds; round++) {
        int sum = 0;
        for (int i = 0; i < kThreads; i++) sum += in[round * kThreads + i];
        same &= sums[round] == sum;
    }
    return verdict(same);
}
