/* A program of the driver API that launches the kernels that its arguments name, in two blocks that race, and waits
   for each. */
#include "calls.h"
#include "choice.h"

int main(int argc, char **argv) {
    H context, module, kernel;
    P word;
    void *params[] = {&word};
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuMemAlloc_v2(&word, 8));
    CHECK(cuMemsetD32_v2(word, 0, 2));
    for (int n = 1; n < argc; n++) {
        CHECK(cuModuleGetFunction(&kernel, module, argv[n]));
        CHECK(cuLaunchKernel(kernel, 2, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        CHECK(cuCtxSynchronize());
    }
    return 0;
}
