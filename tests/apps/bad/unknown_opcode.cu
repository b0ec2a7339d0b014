// An instruction that the simulated device lacks: that launch fails, the program sees it, and goes on.
//@[clean] expect: no-race
//@[racy] expect: race
//@[clean] exit: 75
//@ says: istypep
//@ says: unknown_opcode.cu:15
//@ stdout: the other kernel made 64
//@ not-as-on-gpu: a GPU knows the instruction
#include "../app.h"

// Asks what an address refers to; nothing but inline assembly does.
__global__ void ask(unsigned *data) {
    unsigned out;
    unsigned in = data[threadIdx.x];
    asm volatile("{ .reg .pred p; istypep.texref p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(out) : "l"(data));
    data[threadIdx.x] = in + out;
}

__global__ void count_threads(int *counter) {
#ifdef RACY
    *counter += 1;  //~ race A A
#else
    atomicAdd(counter, 1);
#endif
}

int main() {
    unsigned *data;
    int *counter, total = 0;
    CHECK(cudaMalloc(&data, 32 * sizeof *data));
    CHECK(cudaMalloc(&counter, sizeof *counter));
    ask<<<1, 32>>>(data);
    cudaError_t status = cudaGetLastError();
    std::printf("the program sees: %s\n", cudaGetErrorName(status));
    if (status == cudaSuccess) return 4;
    count_threads<<<2, 32>>>(counter);
    CHECK(cudaMemcpy(&total, counter, sizeof total, cudaMemcpyDeviceToHost));
#ifdef RACY
    total = 64;
#endif
    std::printf("the other kernel made %d\n", total);
    return 0;
}
