// Dynamic programming along diagonals: the longest common subsequence of two strings.
// Racy: one launch for all diagonals, whose blocks do not wait for each other.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#include <algorithm>
#include <vector>

const int n = 96, threads = 32;

__device__ void cell(const char *a, const char *b, int *best, int diagonal, int at) {
    int i = at, j = diagonal - at;
    if (i < 1 || i > n || j < 1 || j > n) return;
    int *row = best + i * (n + 1), *above = row - (n + 1);
    int found = a[i - 1] == b[j - 1] ? above[j - 1] + 1 : max(above[j], row[j - 1]);  //~ race A
    row[j] = found;                                                                   //~ race A
}

__global__ void diagonals(const char *a, const char *b, int *best, int first, int last) {
    for (int diagonal = first; diagonal <= last; diagonal++) {
        cell(a, b, best, diagonal, blockIdx.x * threads + threadIdx.x + 1);
    }
}

int main() {
    char a[n], b[n];
    Random random{21};
    for (char &x : a) x = 'a' + random(4);
    for (char &x : b) x = 'a' + random(4);
    std::vector<int> best((n + 1) * (n + 1));
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= n; j++) {
            int *row = &best[i * (n + 1)], *above = row - (n + 1);
            row[j] = a[i - 1] == b[j - 1] ? above[j - 1] + 1 : std::max(above[j], row[j - 1]);
        }
    char *d_a, *d_b;
    int *d_best, result;
    CHECK(cudaMalloc(&d_a, n));
    CHECK(cudaMalloc(&d_b, n));
    CHECK(cudaMalloc(&d_best, best.size() * sizeof(int)));
    CHECK(cudaMemset(d_best, 0, best.size() * sizeof(int)));
    CHECK(cudaMemcpy(d_a, a, n, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, b, n, cudaMemcpyHostToDevice));
#ifdef RACY
    diagonals<<<n / threads, threads>>>(d_a, d_b, d_best, 2, 2 * n);
#else
    for (int diagonal = 2; diagonal <= 2 * n; diagonal++)
        diagonals<<<n / threads, threads>>>(d_a, d_b, d_best, diagonal, diagonal);
#endif
    CHECK(cudaMemcpy(&result, d_best + best.size() - 1, sizeof(int), cudaMemcpyDeviceToHost));
    return verdict(result == best.back());
}
