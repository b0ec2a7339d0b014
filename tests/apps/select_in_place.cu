// CUB selects numbers in place: a block overwrites what earlier blocks have read, and learns by relaxed accesses that they
// have read it. That race in CUB is known and does not count. The program is compiled for an older architecture than the
// device has: CUB asks for the architecture of its kernels.
//@ variants: clean
//@ nvcc: -std=c++17 -arch=sm_80
//@ expect: no-race
//@ says: known: inside cub/agent/agent_select_if.cuh, not in your code
#include "app.h"

#include <algorithm>
#include <cub/device/device_select.cuh>
#include <vector>

struct Odd {
    __host__ __device__ bool operator()(int x) const { return x % 2 == 1; }
};

int main() {
    const int n = 30000;
    Random random{5};
    std::vector<int> input(n), wanted;
    for (int &x : input) x = random(1000);
    std::copy_if(input.begin(), input.end(), std::back_inserter(wanted), Odd());
    int *data, *count, selected;
    CHECK(cudaMalloc(&data, n * sizeof(int)));
    CHECK(cudaMalloc(&count, sizeof(int)));
    CHECK(cudaMemcpy(data, input.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    void *storage = nullptr;
    size_t bytes = 0;
    for (int call = 0; call < 2; call++) {
        CHECK(cub::DeviceSelect::If(storage, bytes, data, count, n, Odd()));
        if (call == 0) CHECK(cudaMalloc(&storage, bytes));
    }
    CHECK(cudaMemcpy(&selected, count, sizeof(int), cudaMemcpyDeviceToHost));
    std::vector<int> output(selected);
    CHECK(cudaMemcpy(output.data(), data, selected * sizeof(int), cudaMemcpyDeviceToHost));
    return verdict(output == wanted);
}
