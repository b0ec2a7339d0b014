// Temperature of a chip: a five-point stencil with a source of heat in each cell.
// A block loads a tile with a border as wide as the steps it makes in one launch, so that the part it can still
// compute shrinks by one cell on each side per step (a pyramid), and writes the middle.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"

const int tile = 16, steps_per_launch = 2, inner = tile - 2 * steps_per_launch;
const float around = 80.0f, across = 0.1f, loss = 0.01f;

__host__ __device__ float next(float here, float north, float south, float west, float east, float heat) {
    return here + heat + across * (north + south + west + east - 4.0f * here) + loss * (around - here);
}

__global__ void heat(int n, const float *power, const float *from, float *to) {
    __shared__ float now[tile][tile], then[tile][tile];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * inner + tx - steps_per_launch, y = blockIdx.y * inner + ty - steps_per_launch;
    bool inside = x >= 0 && x < n && y >= 0 && y < n;
    float source = inside ? power[y * n + x] : 0.0f;
    if (inside) now[ty][tx] = from[y * n + x];
    __syncthreads();
    // At the edge of the chip a missing neighbour is as warm as the cell itself.
    int north = y > 0 ? ty - 1 : ty, south = y < n - 1 ? ty + 1 : ty;
    int west = x > 0 ? tx - 1 : tx, east = x < n - 1 ? tx + 1 : tx;
    for (int step = 1; step <= steps_per_launch; step++) {
        bool mine = inside && tx >= step && tx < tile - step && ty >= step && ty < tile - step;
        if (mine) {
            then[ty][tx] = next(now[ty][tx], now[north][tx], now[south][tx], now[ty][west], now[ty][east], source);
        }
        __syncthreads();
        if (mine) now[ty][tx] = then[ty][tx];
        __syncthreads();
    }
    int last = steps_per_launch;
    if (inside && tx >= last && tx < tile - last && ty >= last && ty < tile - last) to[y * n + x] = now[ty][tx];
}

int main(int argc, char **argv) {
    const int n = pick(argc, argv, 96, 2048, 8192), steps = pick(argc, argv, 4, 20, 20);
    Random random = {11};
    std::vector<float> power(size_t(n) * n), temperature(power.size());
    for (float &p : power) p = random.unit();
    for (float &t : temperature) t = around + 10.0f * random.unit();
    Buffer<float> device_power(power), from(temperature), to(temperature.size());
    dim3 grid(blocks(n, inner), blocks(n, inner));
    for (int step = 0; step < steps; step += steps_per_launch) {
        heat<<<grid, dim3(tile, tile)>>>(n, device_power, from, to);
        swap(from, to);
    }
    CHECK(cudaGetLastError());

    std::vector<float> after(temperature.size());
    for (int step = 0; step < steps; step++) {
        for (int y = 0; y < n; y++) {
            for (int x = 0; x < n; x++) {
                auto at = [&](int x, int y) { return temperature[size_t(y) * n + x]; };
                float north = at(x, y > 0 ? y - 1 : y), south = at(x, y < n - 1 ? y + 1 : y);
                float west = at(x > 0 ? x - 1 : x, y), east = at(x < n - 1 ? x + 1 : x, y);
                size_t here = size_t(y) * n + x;
                after[here] = next(temperature[here], north, south, west, east, power[here]);
            }
        }
        temperature.swap(after);
    }
    return verdict(all_close(from.download(), temperature));
}
