// cuRAND's device API: pi and the price of an option by five generators, and Philox against its published description.
// Racy: the threads of a block take their numbers from one state.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

#include <cmath>
#include <curand_kernel.h>

const int threads = 128, blocks = 2, samples = 64;
const unsigned long long seed = 0x123456789abcull;

#ifdef RACY
#define PLACE blockIdx.x
#else
#define PLACE (blockIdx.x * blockDim.x + threadIdx.x)
#endif

// Directions of two Sobol sequences: van der Corput's, and that of the polynomial x + 1.
__constant__ unsigned directions[2][32];

template <class State>
__global__ void prepare(State *states) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    State state;
    curand_init(seed, thread, 0, &state);
    states[thread] = state;
}

// Points of the unit square, and ends of a price's path.
template <class State>
__global__ void simulate(State *states, unsigned *hits, double *payoff) {
    State state = states[PLACE];  //~ race A
    unsigned inside = 0;
    double sum = 0;
    for (int i = 0; i < samples; i++) {
        float x = curand_uniform(&state), y = curand_uniform(&state);
        inside += x * x + y * y < 1;
        double end = 100 * exp(0.03 + 0.2 * curand_normal_double(&state));
        sum += fmax(end - 105, 0.0);
    }
    states[PLACE] = state;  //~ race A, same-value B B
    atomicAdd(hits, inside);
    atomicAdd(payoff, sum);
}

__global__ void quasi_random(unsigned *hits) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    curandStateSobol32 x, y;
    curand_init(directions[0], thread * samples, &x);
    curand_init(directions[1], thread * samples, &y);
    unsigned inside = 0;
    for (int i = 0; i < samples; i++) {
        float a = curand_uniform(&x), b = curand_uniform(&y);
        inside += a * a + b * b < 1;
    }
    atomicAdd(hits, inside);
}

__global__ void fill(uint4 *words, float4 *uniform, float2 *normal) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, thread, 8, &state);
    words[thread] = curand4(&state);
    uniform[thread] = curand_uniform4(&state);
    normal[thread] = curand_normal2(&state);
}

// Philox4x32-10: J. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
static uint4 philox(uint4 counter, unsigned key0, unsigned key1) {
    for (int round = 0; round < 10; round++) {
        unsigned long long a = 0xd2511f53ull * counter.x, b = 0xcd9e8d57ull * counter.z;
        counter = {unsigned(b >> 32) ^ counter.y ^ key0, unsigned(b), unsigned(a >> 32) ^ counter.w ^ key1, unsigned(a)};
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
    return counter;
}

// Numbers of (0, 1], 2^-32 apart.
static float unit(unsigned word) { return word * 0x1p-32f + 0x1p-33f; }

static bool near(double a, double b, double most) { return std::fabs(a - b) <= most; }

static bool philox_is_right() {
    const int n = threads * blocks;
    uint4 *words;
    float4 *uniform;
    float2 *normal;
    CHECK(cudaMallocManaged(&words, n * sizeof *words));
    CHECK(cudaMallocManaged(&uniform, n * sizeof *uniform));
    CHECK(cudaMallocManaged(&normal, n * sizeof *normal));
    fill<<<blocks, threads>>>(words, uniform, normal);
    CHECK(cudaDeviceSynchronize());
    // The first of the vectors that were published with the description.
    uint4 zero = philox({0, 0, 0, 0}, 0, 0);
    bool right = zero.x == 0x6627e8d5 && zero.y == 0xe169c58d && zero.z == 0xbc57ac4c && zero.w == 0x9b00dbd8;
    for (unsigned i = 0; i < n; i++) {
        // The offset counts words, four to a step of the counter; the sequence is its upper half.
        uint4 a = philox({2, 0, i, 0}, unsigned(seed), unsigned(seed >> 32));
        uint4 b = philox({3, 0, i, 0}, unsigned(seed), unsigned(seed >> 32));
        uint4 c = philox({4, 0, i, 0}, unsigned(seed), unsigned(seed >> 32));
        right &= words[i].x == a.x && words[i].y == a.y && words[i].z == a.z && words[i].w == a.w;
        right &= uniform[i].x == unit(b.x) && uniform[i].y == unit(b.y);
        right &= uniform[i].z == unit(b.z) && uniform[i].w == unit(b.w);
        // Box and Muller's: a radius, and an angle's sine and cosine.
        double radius = std::sqrt(-2 * std::log(unit(c.x))), angle = 2 * M_PI * unit(c.y);
        right &= near(normal[i].x, radius * std::sin(angle), 1e-5);
        right &= near(normal[i].y, radius * std::cos(angle), 1e-5);
    }
    return right;
}

static bool is_pi(const char *name, unsigned hits) {
    const double n = double(threads) * blocks * samples;
    double pi = 4 * hits / n;
    std::printf("%s: pi %.4f\n", name, pi);
    // Six standard deviations.
    return near(pi, M_PI, 6 * std::sqrt(M_PI * (4 - M_PI) / n));
}

template <class State>
static bool generator_is_right(const char *name, unsigned *hits, double *payoff) {
    State *states;
    CHECK(cudaMalloc(&states, threads * blocks * sizeof(State)));
    *hits = 0;
    *payoff = 0;
    prepare<<<blocks, threads>>>(states);
    simulate<<<blocks, threads>>>(states, hits, payoff);
    CHECK(cudaDeviceSynchronize());
    // Black and Scholes: spot 100, strike 105, rate 0.05, volatility 0.2, one year.
    auto normal = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
    double d = (std::log(100.0 / 105) + 0.07) / 0.2;
    double expected = 100 * normal(d) - 105 * std::exp(-0.05) * normal(d - 0.2);
    double price = std::exp(-0.05) * *payoff / (threads * blocks * samples);
    std::printf("%s: price %.3f, expected %.3f\n", name, price, expected);
    CHECK(cudaFree(states));
    return is_pi(name, *hits) && near(price, expected, 0.45);
}

int main() {
    unsigned *hits, vectors[2][32];
    double *payoff;
    CHECK(cudaMallocManaged(&hits, sizeof *hits));
    CHECK(cudaMallocManaged(&payoff, sizeof *payoff));
    bool right = philox_is_right();
    right &= generator_is_right<curandStatePhilox4_32_10_t>("Philox4x32-10", hits, payoff);
    right &= generator_is_right<curandStateXORWOW_t>("XORWOW", hits, payoff);
    right &= generator_is_right<curandStateMRG32k3a_t>("MRG32k3a", hits, payoff);
    for (int i = 0; i < 32; i++) {
        vectors[0][i] = 1u << (31 - i);
        vectors[1][i] = i == 0 ? 1u << 31 : vectors[1][i - 1] ^ vectors[1][i - 1] >> 1;
    }
    CHECK(cudaMemcpyToSymbol(directions, vectors, sizeof vectors));
    *hits = 0;
    quasi_random<<<blocks, threads>>>(hits);
    CHECK(cudaDeviceSynchronize());
    // Sobol's points fill the square evenly, so that they come far closer.
    right &= is_pi("Sobol", *hits) && near(4.0 * *hits / (threads * blocks * samples), M_PI, 2e-3);
    return verdict(right);
}
