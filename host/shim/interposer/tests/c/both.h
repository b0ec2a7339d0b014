/* Launches of the two kernels of kernels.h, and what `fine` leaves. */
#include "kernels.h"

CUresult cuCtxSynchronize(void), cuMemcpyDtoH_v2(void *, P, size_t),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

/* Words that `fine` adds 3 to. */
enum { COUNT = 128 };

/* Launches `fine`, and gives the sum of its words. */
static unsigned run_fine(H fine, P many) {
    unsigned n = 3, words[COUNT], sum = 0;
    void *params[] = {&many, &n};
    CHECK(cuLaunchKernel(fine, 2, 1, 1, COUNT / 2, 1, 1, 0, 0, params, 0));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(words, many, sizeof words));
    for (int i = 0; i < COUNT; i++)
        sum += words[i];
    return sum;
}

/* Launches both, and gives that. */
static unsigned run_both(H racy, H fine, P one, P many) {
    unsigned n = 3;
    void *params[] = {&one, &n};
    CHECK(cuLaunchKernel(racy, 2, 1, 1, COUNT / 2, 1, 1, 0, 0, params, 0));
    return run_fine(fine, many);
}
