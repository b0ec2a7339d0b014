// One kernel template, three element types, with the operation as a functor.
// Racy: the maximum is kept by a load and a store.
//@[clean] expect: no-race
//@[racy] expect: race
#include "app.h"

struct Square {
    template <typename T>
    __device__ T operator()(T x) const { return x * x; }
};

struct Half {
    template <typename T>
    __device__ T operator()(T x) const { return x / 2; }
};

template <typename T>
__device__ void keep_maximum(T *place, T value) {
#ifdef RACY
    if (*place < value) {  //~ race A
        *place = value;    //~ race A, may B B
    }
#else
    atomicMax(place, value);
#endif
}

template <typename T, int groups, typename Operation>
__global__ void maxima(const T *data, T *out, int n, Operation operation) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        keep_maximum(&out[i % groups], operation(data[i]));
    }
}

template <typename T, int groups, typename Operation>
bool run(Operation operation, T (*reference)(T)) {
    const int n = 1500;
    T data[n], out[groups], expected[groups] = {}, *device_data, *device_out;
    Random random = {7};
    for (int i = 0; i < n; i++) {
        data[i] = random(1000);
        if (expected[i % groups] < reference(data[i])) expected[i % groups] = reference(data[i]);
    }
    CHECK(cudaMalloc(&device_data, sizeof data));
    CHECK(cudaMalloc(&device_out, sizeof out));
    CHECK(cudaMemcpy(device_data, data, sizeof data, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_out, 0, sizeof out));
    maxima<T, groups><<<4, 64>>>(device_data, device_out, n, operation);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, device_out, sizeof out, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device_data));
    CHECK(cudaFree(device_out));
    bool right = true;
    for (int i = 0; i < groups; i++) right = right && out[i] == expected[i];
    return right;
}

int main() {
    bool right = run<int, 3>(Square(), [](int x) { return x * x; });
    right = run<unsigned, 5>(Half(), [](unsigned x) { return x / 2; }) && right;
    right = run<unsigned long long, 4>(Square(), [](unsigned long long x) { return x * x; }) && right;
    return verdict(right);
}
