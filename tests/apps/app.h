// What every program in this folder needs: stop at the first CUDA error, and say whether the result is right.
// How a program tells the runner what to expect of it stands in docs/adding-a-test.md.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                         \
    do {                                                                                    \
        cudaError_t call_status = (call);                                                   \
        if (call_status != cudaSuccess) {                                                   \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(call_status));\
            std::exit(2);                                                                   \
        }                                                                                   \
    } while (0)

// The same for the driver's functions. The program includes <cuda.h>.
#define DRIVER(call)                                                                        \
    do {                                                                                    \
        CUresult call_status = (call);                                                      \
        if (call_status != CUDA_SUCCESS) {                                                  \
            std::printf("%s:%d: %d\n", __FILE__, __LINE__, call_status);                    \
            std::exit(2);                                                                   \
        }                                                                                   \
    } while (0)

// The program's exit code.
// A race may spoil the result, so a racy variant only prints what came of it.
inline int verdict(bool right) {
    std::printf("result: %s\n", right ? "right" : "wrong");
#ifdef RACY
    return 0;
#else
    return right ? 0 : 1;
#endif
}

// Waits for a kernel that never ends in the racy variant: the device gives up, and the program ends with that.
inline void end_or_deadlock() {
    cudaError_t status = cudaDeviceSynchronize();
#ifdef RACY
    std::exit(verdict(status == cudaErrorLaunchTimeout));
#else
    CHECK(status);
#endif
}

// A small reproducible generator, so that every run sees the same data.
struct Random {
    unsigned state;
    unsigned operator()(unsigned below) {
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % below;
    }
};
