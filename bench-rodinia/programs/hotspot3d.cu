// Temperature of a stacked chip: a seven-point stencil in three dimensions.
// A thread walks up through the layers and keeps the cells below and above in registers.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"

const float around = 80.0f, side = 0.08f, vertical = 0.05f, loss = 0.01f;

struct Grid {
    int width, height, layers;
    __host__ __device__ size_t at(int x, int y, int z) const {
        return (size_t(z) * height + y) * width + x;
    }
};

// `ring` is the sum of the four neighbours in the layer.
__host__ __device__ float next(float here, float ring, float below, float above, float heat) {
    float flow = side * (ring - 4.0f * here) + vertical * (below + above - 2.0f * here);
    return here + heat + flow + loss * (around - here);
}

__global__ void heat(Grid grid, const float *power, const float *from, float *to) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= grid.width || y >= grid.height) return;
    int west = x > 0 ? x - 1 : x, east = x < grid.width - 1 ? x + 1 : x;
    int north = y > 0 ? y - 1 : y, south = y < grid.height - 1 ? y + 1 : y;
    float here = from[grid.at(x, y, 0)], below = here;
    for (int z = 0; z < grid.layers; z++) {
        float above = z < grid.layers - 1 ? from[grid.at(x, y, z + 1)] : here;
        float ring = from[grid.at(west, y, z)] + from[grid.at(east, y, z)] + from[grid.at(x, north, z)] +
                     from[grid.at(x, south, z)];
        to[grid.at(x, y, z)] = next(here, ring, below, above, power[grid.at(x, y, z)]);
        below = here;
        here = above;
    }
}

int main(int argc, char **argv) {
    const int edge = pick(argc, argv, 48, 512, 1024), steps = pick(argc, argv, 3, 20, 30);
    const Grid grid = {edge, edge, pick(argc, argv, 6, 8, 32)};
    Random random = {13};
    std::vector<float> power(size_t(edge) * edge * grid.layers), temperature(power.size());
    for (float &p : power) p = random.unit();
    for (float &t : temperature) t = around + 10.0f * random.unit();
    Buffer<float> device_power(power), from(temperature), to(temperature.size());
    dim3 threads(32, 4);
    for (int step = 0; step < steps; step++) {
        heat<<<dim3(blocks(edge, threads.x), blocks(edge, threads.y)), threads>>>(grid, device_power, from, to);
        swap(from, to);
    }
    CHECK(cudaGetLastError());

    std::vector<float> after(temperature.size());
    for (int step = 0; step < steps; step++) {
        for (int z = 0; z < grid.layers; z++) {
            for (int y = 0; y < edge; y++) {
                for (int x = 0; x < edge; x++) {
                    auto at = [&](int x, int y, int z) { return temperature[grid.at(x, y, z)]; };
                    float ring = at(x > 0 ? x - 1 : x, y, z) + at(x < edge - 1 ? x + 1 : x, y, z) +
                                 at(x, y > 0 ? y - 1 : y, z) + at(x, y < edge - 1 ? y + 1 : y, z);
                    float below = at(x, y, z > 0 ? z - 1 : z), above = at(x, y, z < grid.layers - 1 ? z + 1 : z);
                    after[grid.at(x, y, z)] = next(at(x, y, z), ring, below, above, power[grid.at(x, y, z)]);
                }
            }
        }
        temperature.swap(after);
    }
    return verdict(all_close(from.download(), temperature));
}
