// Particles in boxes: every particle feels those of its own box and of the boxes around it.
// A block works for one box, loads its neighbours' particles into shared memory one box after the other, and lets
// each thread sum up for some particles of its own box.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"

const int per_box = 32, threads = 32;
const float steepness = 0.5f;

struct Particle {
    float x, y, z, charge;
};

struct Force {
    float potential, x, y, z;
};

__host__ __device__ void interact(const Particle &me, const Particle &other, Force &sum) {
    float dx = me.x - other.x, dy = me.y - other.y, dz = me.z - other.z;
    float weight = other.charge * expf(-steepness * (dx * dx + dy * dy + dz * dz));
    sum.potential += weight;
    sum.x += 2.0f * steepness * weight * dx;
    sum.y += 2.0f * steepness * weight * dy;
    sum.z += 2.0f * steepness * weight * dz;
}

__global__ void forces(int boxes, const Particle *particles, Force *result) {
    __shared__ Particle mine[per_box], theirs[per_box];
    int box = (blockIdx.z * boxes + blockIdx.y) * boxes + blockIdx.x;
    for (int i = threadIdx.x; i < per_box; i += threads) mine[i] = particles[box * per_box + i];
    Force sums[per_box / threads] = {};
    for (int neighbour = 0; neighbour < 27; neighbour++) {
        int x = blockIdx.x + neighbour % 3 - 1, y = blockIdx.y + neighbour / 3 % 3 - 1;
        int z = blockIdx.z + neighbour / 9 - 1;
        if (x < 0 || x >= boxes || y < 0 || y >= boxes || z < 0 || z >= boxes) continue;
        int other = (z * boxes + y) * boxes + x;
        __syncthreads();
        for (int i = threadIdx.x; i < per_box; i += threads) theirs[i] = particles[other * per_box + i];
        __syncthreads();
        for (int i = 0; i < per_box / threads; i++) {
            for (int j = 0; j < per_box; j++) interact(mine[i * threads + threadIdx.x], theirs[j], sums[i]);
        }
    }
    for (int i = 0; i < per_box / threads; i++) result[box * per_box + i * threads + threadIdx.x] = sums[i];
}

Force reference(int boxes, int box, const Particle &me, const std::vector<Particle> &particles) {
    Force sum = {};
    int bx = box % boxes, by = box / boxes % boxes, bz = box / boxes / boxes;
    for (int z = bz - 1; z <= bz + 1; z++) {
        for (int y = by - 1; y <= by + 1; y++) {
            for (int x = bx - 1; x <= bx + 1; x++) {
                if (x < 0 || x >= boxes || y < 0 || y >= boxes || z < 0 || z >= boxes) continue;
                size_t first = size_t((z * boxes + y) * boxes + x) * per_box;
                for (int j = 0; j < per_box; j++) interact(me, particles[first + j], sum);
            }
        }
    }
    return sum;
}

int main(int argc, char **argv) {
    const int boxes = pick(argc, argv, 3, 32, 64), all = boxes * boxes * boxes;
    Random random = {19};
    std::vector<Particle> particles(size_t(all) * per_box);
    for (size_t i = 0; i < particles.size(); i++) {
        int box = int(i / per_box);
        float x = float(box % boxes), y = float(box / boxes % boxes), z = float(box / boxes / boxes);
        particles[i] = {x + random.unit(), y + random.unit(), z + random.unit(), random.unit()};
    }
    Buffer<Particle> device_particles(particles);
    Buffer<Force> result(particles.size());
    forces<<<dim3(boxes, boxes, boxes), threads>>>(boxes, device_particles, result);
    CHECK(cudaGetLastError());
    std::vector<Force> found = result.download();
    bool right = true;
    // At large sizes the CPU looks at some of the boxes only.
    for (int box = 0; box < all; box += 1 + all / 512) {
        for (size_t i = size_t(box) * per_box; i < size_t(box + 1) * per_box; i++) {
            Force force = reference(boxes, box, particles[i], particles);
            right = right && close(found[i].potential, force.potential) && close(found[i].x, force.x) &&
                    close(found[i].y, force.y) && close(found[i].z, force.z);
        }
    }
    return verdict(right);
}
