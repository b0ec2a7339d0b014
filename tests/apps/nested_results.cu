// A kernel launches one that fills a table, and one in the tail stream that reads it.
// Racy: it reads the table itself, although nothing waits for a kernel that has been launched.
//@[clean] expect: no-race
//@[racy] expect: race
//@ unseen-in-fast: order between kernels and the work that they launch not checked
//@[racy] says: race between a kernel and the work that it launches
//@ nvcc: -rdc=true
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
#include "app.h"

__global__ void fill(int *table) { table[threadIdx.x] = 3 * threadIdx.x; }  //~ race A

__global__ void read(const int *table, int *result) { result[threadIdx.x] += table[threadIdx.x]; }

__global__ void root(int *table, int *result) {
    // What the table held before the launch is nobody else's.
    int before = table[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) fill<<<1, 64>>>(table);
    result[threadIdx.x] = before;
#ifdef RACY
    result[threadIdx.x] += table[threadIdx.x];  //~ race A
#else
    if (threadIdx.x == 0) read<<<1, 64, 0, cudaStreamTailLaunch>>>(table, result);
#endif
}

int main() {
    int *table, *result, host[64];
    CHECK(cudaMalloc(&table, sizeof host));
    CHECK(cudaMalloc(&result, sizeof host));
    CHECK(cudaMemset(table, 0, sizeof host));
    root<<<1, 64>>>(table, result);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, result, sizeof host, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < 64; i++) right = right && host[i] == 3 * i;
    return verdict(right);
}
