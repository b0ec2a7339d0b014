// Fluid: the Euler equations in two dimensions by finite volumes on a mesh that is only known by its neighbour lists.
// Per step, one kernel finds how far each element may go in time, and three times in a row (Runge-Kutta) one kernel
// adds up the fluxes through an element's four faces (Rusanov's) and another moves it on.
// Elements are numbered at random, so that neighbours lie anywhere.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"
#include <algorithm>

const int faces = 4, threads = 128, stages = 3;
const float gas = 1.4f, courant = 0.4f;
// What is on the other side of a face at the border.
const int wall = -1, far_away = -2;

struct State {
    float density, x, y, energy;
};

struct Mesh {
    int elements;
    // neighbours[face * elements + element]; faces look east, west, north and south.
    const int *neighbours;
};

__host__ __device__ State free_stream() { return {1.0f, 0.5f, 0.1f, 2.5f}; }

__host__ __device__ float pressure(const State &s) {
    return (gas - 1.0f) * (s.energy - 0.5f * (s.x * s.x + s.y * s.y) / s.density);
}

// The fastest signal in an element.
__host__ __device__ float speed(const State &s) {
    return sqrtf(s.x * s.x + s.y * s.y) / s.density + sqrtf(gas * pressure(s) / s.density);
}

// What flows through a face of unit length with the normal (nx, ny).
__host__ __device__ State through(const State &s, float nx, float ny) {
    float p = pressure(s), across = (s.x * nx + s.y * ny) / s.density;
    return {s.density * across, s.x * across + p * nx, s.y * across + p * ny, (s.energy + p) * across};
}

__host__ __device__ State flux(const Mesh &mesh, const State *states, int element) {
    State here = states[element], sum = {};
    for (int face = 0; face < faces; face++) {
        float nx = face == 0 ? 1.0f : face == 1 ? -1.0f : 0.0f, ny = face == 2 ? 1.0f : face == 3 ? -1.0f : 0.0f;
        int beyond = mesh.neighbours[face * mesh.elements + element];
        if (beyond == wall) {
            sum.x += pressure(here) * nx;
            sum.y += pressure(here) * ny;
            continue;
        }
        State other = beyond == far_away ? free_stream() : states[beyond];
        State out = through(here, nx, ny), in = through(other, nx, ny);
        float fastest = fmaxf(speed(here), speed(other));
        sum.density += 0.5f * (out.density + in.density - fastest * (other.density - here.density));
        sum.x += 0.5f * (out.x + in.x - fastest * (other.x - here.x));
        sum.y += 0.5f * (out.y + in.y - fastest * (other.y - here.y));
        sum.energy += 0.5f * (out.energy + in.energy - fastest * (other.energy - here.energy));
    }
    return sum;
}

__host__ __device__ float time_step(const State &s) { return courant / speed(s); }

__host__ __device__ State moved(const State &old, const State &flux, float step) {
    return {old.density - step * flux.density, old.x - step * flux.x, old.y - step * flux.y,
            old.energy - step * flux.energy};
}

__global__ void find_steps(Mesh mesh, const State *states, float *steps) {
    int element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element < mesh.elements) steps[element] = time_step(states[element]);
}

__global__ void find_fluxes(Mesh mesh, const State *states, State *fluxes) {
    int element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element < mesh.elements) fluxes[element] = flux(mesh, states, element);
}

__global__ void advance(Mesh mesh, int stage, const float *steps, const State *old, const State *fluxes,
                        State *states) {
    int element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element >= mesh.elements) return;
    states[element] = moved(old[element], fluxes[element], steps[element] / (stages - stage));
}

// A square with walls above and below, its elements in random order.
std::vector<int> square(int edge, Random &random) {
    int elements = edge * edge;
    std::vector<int> order(elements), neighbours(size_t(elements) * faces);
    for (int i = 0; i < elements; i++) order[i] = i;
    for (int i = elements - 1; i > 0; i--) std::swap(order[i], order[random(i + 1)]);
    auto at = [&](int x, int y) {
        if (y < 0 || y >= edge) return wall;
        return x < 0 || x >= edge ? far_away : order[y * edge + x];
    };
    for (int y = 0; y < edge; y++) {
        for (int x = 0; x < edge; x++) {
            int around[faces] = {at(x + 1, y), at(x - 1, y), at(x, y + 1), at(x, y - 1)};
            for (int face = 0; face < faces; face++) neighbours[size_t(face) * elements + at(x, y)] = around[face];
        }
    }
    return neighbours;
}

int main(int argc, char **argv) {
    const int edge = pick(argc, argv, 24, 512, 1024), steps = pick(argc, argv, 2, 20, 20), elements = edge * edge;
    Random random = {53};
    std::vector<int> neighbours = square(edge, random);
    std::vector<State> states(elements);
    for (State &state : states) {
        state = free_stream();
        state.density *= 1.0f + 0.1f * random.unit();
        state.energy *= 1.0f + 0.1f * random.unit();
    }
    Buffer<int> device_neighbours(neighbours);
    Buffer<State> now(states), old(elements), fluxes(elements);
    Buffer<float> device_steps(elements);
    Mesh mesh = {elements, device_neighbours};
    int grid = blocks(elements, threads);
    for (int step = 0; step < steps; step++) {
        CHECK(cudaMemcpy(old, now, elements * sizeof(State), cudaMemcpyDeviceToDevice));
        find_steps<<<grid, threads>>>(mesh, old, device_steps);
        for (int stage = 0; stage < stages; stage++) {
            find_fluxes<<<grid, threads>>>(mesh, now, fluxes);
            advance<<<grid, threads>>>(mesh, stage, device_steps, old, fluxes, now);
        }
    }
    CHECK(cudaGetLastError());

    mesh.neighbours = neighbours.data();
    std::vector<State> flows(elements);
    for (int step = 0; step < steps; step++) {
        std::vector<State> before = states;
        for (int stage = 0; stage < stages; stage++) {
            for (int i = 0; i < elements; i++) flows[i] = flux(mesh, states.data(), i);
            for (int i = 0; i < elements; i++) {
                states[i] = moved(before[i], flows[i], time_step(before[i]) / (stages - stage));
            }
        }
    }
    std::vector<State> found = now.download();
    bool right = true;
    for (int i = 0; i < elements; i++) {
        right = right && close(found[i].density, states[i].density) && close(found[i].x, states[i].x) &&
                close(found[i].y, states[i].y) && close(found[i].energy, states[i].energy);
    }
    return verdict(right);
}
