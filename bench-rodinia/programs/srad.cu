// Speckle-reducing anisotropic diffusion of an image (Yu and Acton, IEEE TIP 2002), as in ultrasound.
// Per step: sums of the image and of its squares, by blocks in shared memory and then over the blocks, say how much
// it speckles; a kernel makes each pixel's differences and diffusion coefficient, and another lets the image flow.
//@ variants: clean
//@ expect: no-race
//@ args: small
//@ verify: all-data
#include "bench.h"

const int threads = 256, tile = 16;
const float strength = 0.5f;

struct Sums {
    float plain, square;
};

__global__ void add_up(int count, const float *image, Sums *sums) {
    __shared__ Sums partial[threads];
    int me = threadIdx.x, i = blockIdx.x * threads + me;
    float value = i < count ? image[i] : 0.0f;
    partial[me] = {value, value * value};
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (me < half) {
            partial[me].plain += partial[me + half].plain;
            partial[me].square += partial[me + half].square;
        }
        __syncthreads();
    }
    if (me == 0) sums[blockIdx.x] = partial[0];
}

struct Differences {
    float north, south, west, east;
};

__host__ __device__ float coefficient(float here, const Differences &d, float speckle) {
    float gradient = (d.north * d.north + d.south * d.south + d.west * d.west + d.east * d.east) / (here * here);
    float laplace = (d.north + d.south + d.west + d.east) / here;
    float base = 1.0f + 0.25f * laplace;
    float q = (0.5f * gradient - 0.0625f * laplace * laplace) / (base * base);
    float c = 1.0f / (1.0f + (q - speckle) / (speckle * (1.0f + speckle)));
    return c < 0.0f ? 0.0f : c > 1.0f ? 1.0f : c;
}

__global__ void differentiate(int n, float speckle, const float *image, Differences *differences, float *flow) {
    int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
    if (x >= n || y >= n) return;
    int at = y * n + x;
    float here = image[at];
    Differences d = {y > 0 ? image[at - n] - here : 0.0f, y < n - 1 ? image[at + n] - here : 0.0f,
                     x > 0 ? image[at - 1] - here : 0.0f, x < n - 1 ? image[at + 1] - here : 0.0f};
    differences[at] = d;
    flow[at] = coefficient(here, d, speckle);
}

__global__ void diffuse(int n, float *image, const Differences *differences, const float *flow) {
    int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
    if (x >= n || y >= n) return;
    int at = y * n + x;
    float here = flow[at], south = y < n - 1 ? flow[at + n] : here, east = x < n - 1 ? flow[at + 1] : here;
    Differences d = differences[at];
    image[at] += 0.25f * strength * (here * d.north + south * d.south + here * d.west + east * d.east);
}

float speckle_of(double sum, double square, double count) {
    double mean = sum / count;
    return float((square / count - mean * mean) / (mean * mean));
}

int main(int argc, char **argv) {
    const int n = pick(argc, argv, 64, 2048, 4096), count = n * n, steps = pick(argc, argv, 2, 20, 20);
    Random random = {43};
    std::vector<float> image(count);
    for (float &pixel : image) pixel = std::exp(random.unit());
    Buffer<float> device(image), flow(count);
    Buffer<Differences> differences(count);
    Buffer<Sums> sums(blocks(count, threads));
    dim3 grid(blocks(n, tile), blocks(n, tile)), block(tile, tile);
    for (int step = 0; step < steps; step++) {
        add_up<<<blocks(count, threads), threads>>>(count, device, sums);
        double sum = 0.0, square = 0.0;
        for (const Sums &part : sums.download()) {
            sum += part.plain;
            square += part.square;
        }
        differentiate<<<grid, block>>>(n, speckle_of(sum, square, count), device, differences, flow);
        diffuse<<<grid, block>>>(n, device, differences, flow);
    }
    CHECK(cudaGetLastError());

    std::vector<Differences> d(count);
    std::vector<float> c(count);
    for (int step = 0; step < steps; step++) {
        double sum = 0.0, square = 0.0;
        for (float pixel : image) {
            sum += pixel;
            square += double(pixel) * pixel;
        }
        float speckle = speckle_of(sum, square, count);
        for (int at = 0; at < count; at++) {
            int x = at % n, y = at / n;
            d[at] = {y > 0 ? image[at - n] - image[at] : 0.0f, y < n - 1 ? image[at + n] - image[at] : 0.0f,
                     x > 0 ? image[at - 1] - image[at] : 0.0f, x < n - 1 ? image[at + 1] - image[at] : 0.0f};
            c[at] = coefficient(image[at], d[at], speckle);
        }
        for (int at = 0; at < count; at++) {
            float south = at / n < n - 1 ? c[at + n] : c[at], east = at % n < n - 1 ? c[at + 1] : c[at];
            float sum = c[at] * d[at].north + south * d[at].south + c[at] * d[at].west + east * d[at].east;
            image[at] += 0.25f * strength * sum;
        }
    }
    return verdict(all_close(device.download(), image, 5e-3));
}
