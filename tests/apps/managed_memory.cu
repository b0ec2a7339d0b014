// Managed memory that host and device use in turn: an allocation and a variable.
// Racy: the count in the managed variable is not atomic.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

__managed__ int odd_numbers;

__global__ void count_odd(const int *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && data[i] % 2 != 0) {
#ifdef RACY
        odd_numbers++;  //~ race A A
#else
        atomicAdd(&odd_numbers, 1);
#endif
    }
}

int main() {
    const int n = 700;
    int *data, expected = 0;
    CHECK(cudaMallocManaged(&data, n * sizeof *data));
    bool right = true;
    for (int round = 0; round < 2; round++) {
        Random random = {8u + round};
        odd_numbers = expected = 0;
        for (int i = 0; i < n; i++) {
            data[i] = random(100);
            expected += data[i] % 2;
        }
        count_odd<<<(n + 63) / 64, 64>>>(data, n);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        right = right && odd_numbers == expected;
    }
    CHECK(cudaFree(data));
    return verdict(right);
}
