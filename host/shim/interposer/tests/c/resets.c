/* Loads the PTX in the file that the argument names as a library into the primary context, and launches `racy` of it,
   whose threads store to the variable `word`. Then the context is reset, which the library survives, and so once more,
   with `word` in another place unless it is managed; in between it is released and retained, unless the second argument
   is `held`. Prints whether it has moved. */
#include "kernels.h"

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(H *, int), cuDevicePrimaryCtxRelease_v2(int),
    cuDevicePrimaryCtxReset_v2(int), cuCtxSetCurrent(H), cuCtxSynchronize(void),
    cuLibraryLoadFromFile(H *, const char *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuLibraryGetGlobal(P *, size_t *, H, const char *),
    cuLibraryGetManaged(P *, size_t *, H, const char *), cuLibraryUnload(H), cuMemAlloc_v2(P *, size_t),
    cuMemFree_v2(P),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

int main(int argc, char **argv) {
    H context, library, racy;
    P lost, word[2], taken;
    size_t bytes;
    unsigned n = 3;
    MUST(argc == 3);
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuLibraryLoadFromFile(&library, argv[1], 0, 0, 0, 0, 0, 0));
    CHECK(cuLibraryGetKernel(&racy, library, "racy"));
    for (int i = 0; i < 2; i++) {
        /* Where the variable was. */
        CHECK(cuMemAlloc_v2(i ? &taken : &lost, i ? 256 : 1 << 20));
        /* Either finds variables of one kind. */
        int managed = cuLibraryGetGlobal(&word[i], &bytes, library, "word") == 500;
        MUST(cuLibraryGetManaged(&word[i], &bytes, library, "word") == (managed ? 0 : 500) && bytes == 4);
        void *params[] = {&word[i], &n};
        CHECK(cuLaunchKernel(racy, 2, 1, 1, 64, 1, 1, 0, 0, params, 0));
        CHECK(cuCtxSynchronize());
        if (i)
            break;
        CHECK(cuDevicePrimaryCtxReset_v2(0));
        if (!strcmp(argv[2], "held"))
            continue;
        CHECK(cuDevicePrimaryCtxRelease_v2(0));
        CHECK(cuDevicePrimaryCtxRetain(&context, 0));
        CHECK(cuCtxSetCurrent(context));
    }
    puts(word[0] == word[1] ? "there" : "moved");
    CHECK(cuMemFree_v2(taken));
    CHECK(cuLibraryUnload(library));
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}
