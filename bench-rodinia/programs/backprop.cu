// Back propagation: one training step of a network with one hidden layer of 16 units.
// Forward, a block multiplies 16 inputs by their weights and adds up by halves in shared memory; the host adds the
// blocks' sums. Backward, each weight is moved along its gradient, with momentum.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"

const int hidden = 16, tile = 16;
const float rate = 0.3f, momentum = 0.3f;

// weights[i * hidden + h] leads from input i to hidden unit h.
__global__ void forward(const float *input, const float *weights, float *sums) {
    __shared__ float values[tile];
    __shared__ float products[tile][hidden];
    int h = threadIdx.x, row = threadIdx.y;
    int i = blockIdx.x * tile + row;
    if (h == 0) values[row] = input[i];
    __syncthreads();
    products[row][h] = weights[i * hidden + h] * values[row];
    __syncthreads();
    for (int half = tile / 2; half > 0; half /= 2) {
        if (row < half) products[row][h] += products[row + half][h];
        __syncthreads();
    }
    if (row == 0) sums[blockIdx.x * hidden + h] = products[0][h];
}

__global__ void adjust(const float *input, const float *delta, float *weights, float *steps) {
    int i = blockIdx.x * tile + threadIdx.y, at = i * hidden + threadIdx.x;
    float step = rate * delta[threadIdx.x] * input[i] + momentum * steps[at];
    weights[at] += step;
    steps[at] = step;
}

float squash(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// The error of each hidden unit, from what the output unit should have said.
std::vector<float> errors(const std::vector<float> &sums, const std::vector<float> &output) {
    const float target = 0.1f;
    float sum = 0.0f;
    std::vector<float> units(hidden), delta(hidden);
    for (int h = 0; h < hidden; h++) sum += (units[h] = squash(sums[h])) * output[h];
    float said = squash(sum), error = said * (1.0f - said) * (target - said);
    for (int h = 0; h < hidden; h++) delta[h] = units[h] * (1.0f - units[h]) * error * output[h];
    return delta;
}

int main(int argc, char **argv) {
    const int inputs = pick(argc, argv, 2048, 1 << 20, 1 << 23), grid = inputs / tile;
    Random random = {1};
    std::vector<float> input(inputs), weights(size_t(inputs) * hidden), output(hidden);
    // Small enough that the hidden units do not saturate.
    for (float &x : input) x = random.unit();
    for (float &w : weights) w = (random.unit() - 0.5f) / std::sqrt(float(inputs));
    for (float &w : output) w = random.unit();

    Buffer<float> device_input(input), device_weights(weights), steps(weights.size());
    Buffer<float> sums(size_t(grid) * hidden), device_delta(hidden);
    steps.zero();
    forward<<<grid, dim3(hidden, tile)>>>(device_input, device_weights, sums);
    CHECK(cudaGetLastError());
    std::vector<float> total(hidden), partial = sums.download();
    for (size_t i = 0; i < partial.size(); i++) total[i % hidden] += partial[i];
    device_delta.upload(errors(total, output));
    adjust<<<grid, dim3(hidden, tile)>>>(device_input, device_delta, device_weights, steps);
    CHECK(cudaGetLastError());

    std::vector<double> exact(hidden);
    for (int i = 0; i < inputs; i++) {
        for (int h = 0; h < hidden; h++) exact[h] += weights[size_t(i) * hidden + h] * double(input[i]);
    }
    std::vector<float> delta = errors(std::vector<float>(exact.begin(), exact.end()), output);
    bool right = true;
    std::vector<float> learnt = device_weights.download();
    for (int i = 0; i < inputs; i++) {
        for (int h = 0; h < hidden; h++) {
            size_t at = size_t(i) * hidden + h;
            right = right && close(learnt[at], weights[at] + rate * delta[h] * input[i], 1e-5);
        }
    }
    for (int h = 0; h < hidden; h++) right = right && close(total[h], exact[h]);
    return verdict(right);
}
