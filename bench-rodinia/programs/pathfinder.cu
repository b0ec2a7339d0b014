// Path finder: the cheapest way from the top of a grid to the bottom, one row at a time.
// A block makes several rows in one launch from a strip with borders that shrink by one column per row.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"
#include <algorithm>

const int strip = 256, rows_per_launch = 8, inner = strip - 2 * rows_per_launch;

__global__ void descend(int columns, int rows, const int *wall, const int *from, int *to) {
    __shared__ int now[strip], then[strip];
    int me = threadIdx.x, column = blockIdx.x * inner + me - rows_per_launch;
    bool inside = column >= 0 && column < columns;
    if (inside) now[me] = from[column];
    __syncthreads();
    int left = column > 0 ? me - 1 : me, right = column < columns - 1 ? me + 1 : me;
    for (int row = 0; row < rows; row++) {
        bool mine = inside && me > row && me < strip - 1 - row;
        if (mine) then[me] = min(min(now[left], now[me]), now[right]) + wall[size_t(row) * columns + column];
        __syncthreads();
        if (mine) now[me] = then[me];
        __syncthreads();
    }
    if (inside && me >= rows_per_launch && me < strip - rows_per_launch) to[column] = now[me];
}

int main(int argc, char **argv) {
    const int columns = pick(argc, argv, 3000, 1 << 20, 1 << 22), rows = pick(argc, argv, 20, 100, 100);
    Random random = {37};
    std::vector<int> wall(size_t(rows) * columns);
    for (int &cost : wall) cost = random(10);
    std::vector<int> cost(wall.begin(), wall.begin() + columns), below(columns);
    Buffer<int> device_wall(wall), from(cost), to(columns);
    for (int row = 1; row < rows; row += rows_per_launch) {
        int count = std::min(rows_per_launch, rows - row);
        const int *first = device_wall + size_t(row) * columns;
        descend<<<blocks(columns, inner), strip>>>(columns, count, first, from, to);
        swap(from, to);
    }
    CHECK(cudaGetLastError());

    for (int row = 1; row < rows; row++) {
        for (int x = 0; x < columns; x++) {
            int least = std::min({cost[std::max(x - 1, 0)], cost[x], cost[std::min(x + 1, columns - 1)]});
            below[x] = least + wall[size_t(row) * columns + x];
        }
        cost.swap(below);
    }
    return verdict(from.download() == cost);
}
