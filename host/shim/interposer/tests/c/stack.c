/* Loads the PTX in the file that the second argument names, as a module or a library, which the first says, and launches
   `fine` of it. Prints how much stack a thread has by our word and by the driver's, after the load, and after having
   asked for 2,000 bytes. */
#include <dlfcn.h>

#include "kernels.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSynchronize(void), cuCtxDestroy_v2(H),
    cuModuleLoad(H *, const char *), cuModuleGetFunction(H *, H, const char *),
    cuLibraryLoadFromFile(H *, const char *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuCtxGetLimit(size_t *, int), cuCtxSetLimit(int, size_t),
    cuMemAlloc_v2(P *, size_t), cuMemFree_v2(P),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

/* Limit 0 is CU_LIMIT_STACK_SIZE, and 1 the buffer of printf. */
static void show(void) {
    void *driver = dlopen(getenv("CUDARUN_CHECK_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
    MUST(driver);
    CUresult (*ask)(size_t *, int) = dlsym(driver, "cuCtxGetLimit");
    size_t ours, theirs, other;
    CHECK(cuCtxGetLimit(&ours, 0));
    CHECK(ask(&theirs, 0));
    CHECK(cuCtxGetLimit(&other, 1));
    MUST(other == 1 << 20);
    printf("%zu of %zu\n", ours, theirs);
}

int main(int argc, char **argv) {
    H context, loaded, fine;
    P words;
    unsigned n = 3;
    MUST(argc == 3);
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    if (!strcmp(argv[1], "library")) {
        CHECK(cuLibraryLoadFromFile(&loaded, argv[2], 0, 0, 0, 0, 0, 0));
        CHECK(cuLibraryGetKernel(&fine, loaded, "fine"));
    } else {
        CHECK(cuModuleLoad(&loaded, argv[2]));
        CHECK(cuModuleGetFunction(&fine, loaded, "fine"));
    }
    CHECK(cuMemAlloc_v2(&words, 512));
    show();
    CHECK(cuCtxSetLimit(0, 2000));
    show();
    void *params[] = {&words, &n};
    CHECK(cuLaunchKernel(fine, 2, 1, 1, 64, 1, 1, 0, 0, params, 0));
    CHECK(cuCtxSynchronize());
    show();
    CHECK(cuMemFree_v2(words));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
