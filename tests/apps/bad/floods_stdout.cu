// A program that prints far more than a pipe holds, before and after its kernel, to both streams.
//@[clean] expect: no-race
//@[racy] expect: race
//@ stdout: the last of 200000 lines
#include "../app.h"

__global__ void count_threads(int *counter) {
#ifdef RACY
    *counter += 1;  //~ race A A
#else
    atomicAdd(counter, 1);
#endif
}

int main() {
    int *counter;
    CHECK(cudaMalloc(&counter, sizeof *counter));
    for (int line = 1; line < 100000; line++) std::printf("an idle line of output, number %d\n", line);
    count_threads<<<2, 32>>>(counter);
    CHECK(cudaDeviceSynchronize());
    for (int line = 100000; line < 200000; line++) std::printf("an idle line of output, number %d\n", line);
    for (int line = 0; line < 20000; line++) std::fprintf(stderr, "an idle line of errors, number %d\n", line);
    std::printf("the last of 200000 lines\n");
    return 0;
}
