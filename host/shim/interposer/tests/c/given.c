/* Loads the PTX in the file that the second argument names, as a module or a library, which the first says, and launches
   two kernels of it: in `racy` all threads store to one word, in `fine` each adds to its own. Prints how many threads a
   block of `fine` may have, and what it has left. With a third argument it allocates so many MiB first, and with a
   fourth so many MiB and arrays behind the launches, loads the PTX again, and launches `fine` of that. */
#include <dlfcn.h>

#include "both.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H),
    cuModuleLoad(H *, const char *), cuModuleGetFunction(H *, H, const char *), cuModuleUnload(H),
    cuLibraryLoadFromFile(H *, const char *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetModule(H *, H), cuLibraryUnload(H), cuMemAlloc_v2(P *, size_t),
    cuMemFree_v2(P), cuMemsetD32_v2(P, unsigned, size_t), cuArrayCreate_v2(H *, const void *),
    cuArray3DCreate_v2(H *, const void *), cuMipmappedArrayCreate(H *, const void *, unsigned), cuArrayDestroy(H),
    cuMipmappedArrayDestroy(H);

int main(int argc, char **argv) {
    H context, library = 0, module, racy, fine;
    MUST(argc >= 3 && argc <= 5);
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
    P one, many, before = 0, behind = 0;
    if (argc > 3)
        CHECK(cuMemAlloc_v2(&before, (size_t)atoi(argv[3]) << 20));
    CHECK(cuMemAlloc_v2(&one, 4));
    CHECK(cuMemAlloc_v2(&many, 4 * COUNT));
    CHECK(cuMemsetD32_v2(many, 1, COUNT));
    /* What has been loaded, which only the driver itself tells of: the program would be told of its own kernel. */
    CUresult (*get)(int *, int, H) = dlsym(dlopen(getenv("CUDARUN_CHECK_DRIVER"), RTLD_NOW), "cuFuncGetAttribute");
    MUST(get);
    unsigned sum = run_both(racy, fine, one, many);
    if (argc > 4) {
        /* One channel of CU_AD_FORMAT_UNSIGNED_INT32. */
        struct {
            size_t width, height;
            int format;
            unsigned channels;
        } plain = {64, 64, 3, 1};
        struct {
            size_t width, height, depth;
            int format;
            unsigned channels, flags;
        } deep = {64, 64, 0, 3, 1, 0};
        H array, array3, levels, again, more;
        CHECK(cuMemAlloc_v2(&behind, (size_t)atoi(argv[4]) << 20));
        CHECK(cuArrayCreate_v2(&array, &plain));
        CHECK(cuArray3DCreate_v2(&array3, &deep));
        /* Which the simulated device does not support. */
        CUresult result = cuMipmappedArrayCreate(&levels, &deep, 2);
        MUST(result == 0 || result == 801);
        CHECK(cuModuleLoad(&again, argv[2]));
        CHECK(cuModuleGetFunction(&more, again, "fine"));
        sum = run_fine(more, many);
        CHECK(cuModuleUnload(again));
        if (result == 0)
            CHECK(cuMipmappedArrayDestroy(levels));
        CHECK(cuArrayDestroy(array3));
        CHECK(cuArrayDestroy(array));
        CHECK(cuMemFree_v2(behind));
    }
    if (before)
        CHECK(cuMemFree_v2(before));
    int most; /* CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
    CHECK(get(&most, 0, fine));
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
