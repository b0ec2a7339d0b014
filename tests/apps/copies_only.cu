// A program that copies and launches nothing. Copies are compared with what the host does, but no kernel was checked.
// Racy: the host fills the buffer again and has not waited for the copy.
//@ needs: page-table
//@[clean] expect: not-decided
//@[clean] exit: 75
//@[clean] says: SUMMARY: cudarun-check: 0 races; incomplete: no launch of a kernel was seen
//@[racy] expect: advised
//@[racy] says: first: cudaMemcpy or its like, called at copies_only.cu:31 main, in stream #1
//@[racy] says: SUMMARY: cudarun-check: 1 race (1 error); incomplete: no launch of a kernel was seen
//@ nvcc: -cudart shared -arch=sm_90 -g
#include "app.h"

#include <vector>

// Never launched.
__global__ void scale(int *data) { data[threadIdx.x] *= 2; }

int main()
{
    const int n = 5000;
    const size_t bytes = n * sizeof(int);
    int *pinned, *device;
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMallocHost(&pinned, bytes));
    CHECK(cudaMalloc(&device, 2 * bytes));
    bool right = true;
    for (int part = 0; part < 2; part++) {
        for (int i = 0; i < n; i++) pinned[i] = part * n + i;
        // The next part may only be written when this one has been copied.
        CHECK(cudaMemcpyAsync(device + part * n, pinned, bytes, cudaMemcpyHostToDevice, stream));
#ifndef RACY
        CHECK(cudaStreamSynchronize(stream));
#endif
    }
    CHECK(cudaStreamSynchronize(stream));
    std::vector<int> found(2 * n);
    CHECK(cudaMemcpy(found.data(), device, 2 * bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 2 * n; i++) right = right && found[i] == i;
    return verdict(right);
}
