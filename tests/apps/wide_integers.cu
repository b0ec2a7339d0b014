// Arithmetic on 128-bit integers, which the compiler makes of carry chains and calls.
//@ variants: clean
//@ expect: no-race
#include "app.h"

typedef unsigned __int128 Wide;
const int n = 512, operations = 14;

__host__ __device__ Wide apply(int operation, Wide a, Wide b) {
    const int shift = int(b & 127);
    switch (operation) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a / b;
    case 4: return a % b;
    case 5: return Wide(__int128(a) / __int128(b));
    case 6: return Wide(__int128(a) % __int128(b));
    case 7: return a << shift;
    case 8: return a >> shift;
    case 9: return Wide(__int128(a) >> shift);
    case 10: return -a;
    case 11: return a < b ? a & b : a | b;
    case 12: return __int128(a) < __int128(b) ? a ^ b : ~a;
    default: return Wide(__int128(double(__int128(a))));
    }
}

__global__ void compute(const Wide *a, const Wide *b, Wide *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int operation = 0; operation < operations; operation++)
        out[operation * n + i] = apply(operation, a[i], b[i]);
}

int main() {
    Wide *a, *b, *out;
    CHECK(cudaMallocManaged(&a, n * sizeof(Wide)));
    CHECK(cudaMallocManaged(&b, n * sizeof(Wide)));
    CHECK(cudaMallocManaged(&out, operations * n * sizeof(Wide)));
    Random random{3};
    // Of every length, so that quotients are too; words of ones and zeroes are where carries go far.
    auto any = [&] {
        Wide value = 0;
        for (int part = 0; part < 4; part++) {
            unsigned kind = random(4);
            value = value << 32 | (kind == 0 ? 0u : kind == 1 ? ~0u : random(1u << 24) * 256 + random(256));
        }
        return value >> random(128);
    };
    for (int i = 0; i < n; i++) {
        a[i] = any();
        b[i] = any();
        if (i % 5 == 0) a[i] = -a[i];
        // Dividing the least number by -1 has no result.
        while (b[i] == 0 || ~b[i] == 0) b[i] = any();
    }
    compute<<<n / 128, 128>>>(a, b, out);
    CHECK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int operation = 0; operation < operations; operation++)
        for (int i = 0; i < n; i++) {
            Wide expected = apply(operation, a[i], b[i]), got = out[operation * n + i];
            if (got == expected || wrong++ > 9) continue;
            std::printf("operation %d: %016llx%016llx, expected %016llx%016llx\n", operation, (long long)(got >> 64),
                        (long long)got, (long long)(expected >> 64), (long long)expected);
        }
    return verdict(wrong == 0);
}
