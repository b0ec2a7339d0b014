// Quicksort that launches itself for both parts, in two streams; short parts are sorted by one thread.
// Racy: the parts share an element, so both may put it in its place.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] unseen-in-fast: order between kernels and the work that they launch not checked
//@ nvcc: -rdc=true
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
#include "app.h"

__device__ void place(int *data, int i, int value) {
    data[i] = value;  //~ race A
}

__global__ void sort(int *data, int low, int high) {
    if (high - low < 6) {
        for (int i = low; i <= high; i++) {
            int least = i;
            for (int j = i + 1; j <= high; j++)
                if (data[j] < data[least]) least = j;  //~ race A
            int value = data[least];
            data[least] = data[i];
            place(data, i, value);
        }
        return;
    }
    int pivot = data[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (data[i] < pivot) i++;
        while (data[j] > pivot) j--;
        if (i <= j) {
            int value = data[i];
            place(data, i++, data[j]);
            place(data, j--, value);
        }
    }
    cudaStream_t first, second;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
#ifdef RACY
    sort<<<1, 1, 0, first>>>(data, low, i);
#else
    sort<<<1, 1, 0, first>>>(data, low, j);
#endif
    sort<<<1, 1, 0, second>>>(data, i, high);
}

int main() {
    const int n = 100;
    int host[n], *data;
    Random random = {7};
    for (int i = 0; i < n; i++) host[i] = random(1000);
    CHECK(cudaMalloc(&data, sizeof host));
    CHECK(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    sort<<<1, 1>>>(data, 0, n - 1);
    CHECK(cudaGetLastError());
    int sorted[n];
    CHECK(cudaMemcpy(sorted, data, sizeof sorted, cudaMemcpyDeviceToHost));
    bool right = true;
    long before = 0, after = 0;
    for (int i = 0; i < n; i++) {
        right = right && (i == 0 || sorted[i - 1] <= sorted[i]);
        before += host[i] * (long)host[i];
        after += sorted[i] * (long)sorted[i];
    }
    return verdict(right && before == after);
}
