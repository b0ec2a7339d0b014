/* Launches two kernels in a context that the argument says: in `racy` all threads store to one word, in `fine` each adds
   to its own. Prints what `fine` has left. */
#include "kernels.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSynchronize(void), cuCtxDestroy_v2(H),
    cuCtxSetCurrent(H), cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuKernelGetFunction(H *, H), cuFuncGetModule(H *, H),
    cuModuleGetFunction(H *, H, const char *), cuMemAlloc_v2(P *, size_t), cuMemsetD32_v2(P, unsigned, size_t),
    cuMemcpyDtoH_v2(void *, P, size_t), cuStreamCreate(H *, unsigned), cuStreamSynchronize(H),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

enum { COUNT = 128 };
static H racy, fine;
static P one, many;

static CUresult launch(H function, P *out, H stream) {
    unsigned n = 3;
    void *params[] = {out, &n};
    return cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, stream, params, 0);
}

int main(int argc, char **argv) {
    const char *form = argc > 1 ? argv[1] : "";
    H first, second, library, module, stream;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&first, 0, 0));
    CHECK(cuCtxCreate_v2(&second, 0, 1));
    CHECK(cuStreamCreate(&stream, 0));
    CHECK(cuMemAlloc_v2(&one, 4));
    CHECK(cuMemAlloc_v2(&many, 4 * COUNT));
    CHECK(cuMemsetD32_v2(many, 1, COUNT));
    CHECK(cuLibraryLoadData(&library, ptx, 0, 0, 0, 0, 0, 0));
    CHECK(cuLibraryGetKernel(&racy, library, "racy"));
    CHECK(cuLibraryGetKernel(&fine, library, "fine"));
    if (!strcmp(form, "function")) {
        /* The module of a function that is a library's. */
        CHECK(cuKernelGetFunction(&fine, fine));
        CHECK(cuFuncGetModule(&module, fine));
        CHECK(cuModuleGetFunction(&racy, module, "racy"));
    } else {
        /* A kernel runs where its stream is. */
        CHECK(cuCtxSetCurrent(strcmp(form, "none") ? first : 0));
        if (!strcmp(form, "none"))
            while (!cuCtxSetCurrent(0) && !cuCtxSynchronize())
                ;
    }
    if (!strcmp(form, "none"))
        printf("%d\n", launch(fine, &many, 0));
    for (int i = 0; i < 2; i++) {
        CHECK(launch(racy, &one, stream));
        CHECK(launch(fine, &many, stream));
    }
    CHECK(cuCtxSetCurrent(second));
    CHECK(cuStreamSynchronize(stream));
    unsigned words[COUNT], sum = 0;
    CHECK(cuMemcpyDtoH_v2(words, many, sizeof words));
    for (int i = 0; i < COUNT; i++)
        sum += words[i];
    printf("%u\n", sum);
    CHECK(cuCtxDestroy_v2(second));
    return 0;
}
