/* A program of the driver API that loads a module twice, gives memory back, and launches the kernel of the second load
   three times over pinned memory of the host: the first time with one thread, which cannot race. */
#include "calls.h"
#include "replay.h"

CUresult cuMemFree_v2(P);

int main(void) {
    H context, first, second, kernel;
    P before, word;
    uint32_t *pinned;
    void *params[] = {&pinned};
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuMemAlloc_v2(&before, 3000));
    CHECK(cuModuleLoadData(&first, ptx));
    CHECK(cuMemAlloc_v2(&word, 4));
    CHECK(cuMemFree_v2(before));
    CHECK(cuModuleLoadData(&second, ptx));
    CHECK(cuModuleGetFunction(&kernel, second, "k"));
    CHECK(cuMemAllocHost_v2((void **)&pinned, 4096));
    for (uint32_t n = 0; n < 3; n++) {
        *pinned = 40 + n;
        CHECK(cuLaunchKernel(kernel, 1, 1, 1, n ? 64 : 1, 1, 1, 0, 0, params, 0));
        CHECK(cuCtxSynchronize());
    }
    return 0;
}
