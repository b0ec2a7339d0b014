/* One thread stores to a word in the default stream. A stream that does not wait for that one is created behind it, and
   stores to the same word. */
#include "calls.h"
#include "early.h"

int main(void) {
    H context, module, count, stream;
    P word;
    uint32_t add = 5;
    void *params[] = {&word, &add};
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuMemAlloc_v2(&word, 4));
    CHECK(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    CHECK(cuCtxSynchronize());
    return 0;
}
