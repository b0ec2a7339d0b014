// Needleman-Wunsch: scores of the alignments of two sequences, in tiles along one antidiagonal after the other.
// In a tile, threads go along its antidiagonals in shared memory, with a barrier between two of them.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"

const int tile = 16, penalty = 10, letters = 24;

// scores has a row and a column more than the sequences have letters.
__global__ void align(int n, int diagonal, int first, const int *similarity, int *scores) {
    __shared__ int score[tile + 1][tile + 1], alike[tile][tile];
    int me = threadIdx.x, width = n + 1;
    int column = (first + blockIdx.x) * tile, row = (diagonal - first - blockIdx.x) * tile;
    for (int i = 0; i < tile; i++) alike[i][me] = similarity[size_t(row + i) * n + column + me];
    score[me + 1][0] = scores[size_t(row + me + 1) * width + column];
    score[0][me + 1] = scores[size_t(row) * width + column + me + 1];
    if (me == 0) score[0][0] = scores[size_t(row) * width + column];
    __syncthreads();
    for (int step = 0; step < 2 * tile - 1; step++) {
        int y = step - me;
        if (y >= 0 && y < tile) {
            int across = score[y][me] + alike[y][me];
            int gap = max(score[y][me + 1], score[y + 1][me]) - penalty;
            score[y + 1][me + 1] = max(across, gap);
        }
        __syncthreads();
    }
    for (int i = 0; i < tile; i++) scores[size_t(row + i + 1) * width + column + me + 1] = score[i + 1][me + 1];
}

int main(int argc, char **argv) {
    const int n = pick(argc, argv, 160, 4096, 16384), tiles = n / tile, width = n + 1;
    Random random = {31};
    std::vector<int> first(n), second(n), table(letters * letters), similarity(size_t(n) * n);
    for (int &letter : first) letter = random(letters);
    for (int &letter : second) letter = random(letters);
    for (int i = 0; i < letters; i++) {
        for (int j = 0; j <= i; j++) table[i * letters + j] = table[j * letters + i] = int(random(9)) - 4 + 6 * (i == j);
    }
    for (int y = 0; y < n; y++) {
        for (int x = 0; x < n; x++) similarity[size_t(y) * n + x] = table[first[y] * letters + second[x]];
    }
    std::vector<int> scores(size_t(width) * width);
    for (int i = 0; i < width; i++) scores[i] = scores[size_t(i) * width] = -penalty * i;
    Buffer<int> device_similarity(similarity), device_scores(scores);
    for (int diagonal = 0; diagonal < 2 * tiles - 1; diagonal++) {
        int from = diagonal < tiles ? 0 : diagonal - tiles + 1, to = diagonal < tiles ? diagonal : tiles - 1;
        align<<<to - from + 1, tile>>>(n, diagonal, from, device_similarity, device_scores);
    }
    CHECK(cudaGetLastError());

    for (int y = 1; y < width; y++) {
        for (int x = 1; x < width; x++) {
            auto at = [&](int y, int x) -> int & { return scores[size_t(y) * width + x]; };
            int gap = std::max(at(y - 1, x), at(y, x - 1)) - penalty;
            at(y, x) = std::max(at(y - 1, x - 1) + similarity[size_t(y - 1) * n + x - 1], gap);
        }
    }
    return verdict(device_scores.download() == scores);
}
