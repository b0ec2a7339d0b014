/* Loads the PTX in the file that the second argument names, as a module or a library, which the first says, and launches
   two kernels of it: in `racy` all threads store to one word, in `fine` each adds to its own. Prints how many threads a
   block of `fine` may have, and what it has left. */
#include "kernels.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSynchronize(void), cuCtxDestroy_v2(H),
    cuModuleLoad(H *, const char *), cuModuleGetFunction(H *, H, const char *), cuModuleUnload(H),
    cuLibraryLoadFromFile(H *, const char *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetModule(H *, H), cuLibraryUnload(H), cuFuncGetAttribute(int *, int, H), cuMemAlloc_v2(P *, size_t),
    cuMemFree_v2(P), cuMemsetD32_v2(P, unsigned, size_t), cuMemcpyDtoH_v2(void *, P, size_t),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

enum { COUNT = 128 };

int main(int argc, char **argv) {
    H context, library = 0, module, racy, fine;
    MUST(argc == 3);
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    if (!strcmp(argv[1], "library")) {
        CHECK(cuLibraryLoadFromFile(&library, argv[2], 0, 0, 0, 0, 0, 0));
        CHECK(cuLibraryGetModule(&module, library));
    } else {
        CHECK(cuModuleLoad(&module, argv[2]));
    }
    CHECK(cuModuleGetFunction(&racy, module, "racy"));
    CHECK(cuModuleGetFunction(&fine, module, "fine"));
    P one, many;
    CHECK(cuMemAlloc_v2(&one, 4));
    CHECK(cuMemAlloc_v2(&many, 4 * COUNT));
    CHECK(cuMemsetD32_v2(many, 1, COUNT));
    unsigned n = 3, words[COUNT], sum = 0;
    void *of_racy[] = {&one, &n}, *of_fine[] = {&many, &n};
    CHECK(cuLaunchKernel(racy, 2, 1, 1, 64, 1, 1, 0, 0, of_racy, 0));
    CHECK(cuLaunchKernel(fine, 2, 1, 1, 64, 1, 1, 0, 0, of_fine, 0));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH_v2(words, many, sizeof words));
    for (int i = 0; i < COUNT; i++)
        sum += words[i];
    int most; /* CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
    CHECK(cuFuncGetAttribute(&most, 0, fine));
    printf("%d %u\n", most, sum);
    CHECK(cuMemFree_v2(one));
    CHECK(cuMemFree_v2(many));
    if (library)
        CHECK(cuLibraryUnload(library));
    else
        CHECK(cuModuleUnload(module));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
