/* Loads a library, or a module, in a way that the argument names, and launches two kernels: in `racy` all threads store
   to one word, in `fine` each adds to its own. Prints what `fine` has left. */
#include "both.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H),
    cuModuleLoadDataEx(H *, const void *, unsigned, int *, void **), cuModuleGetFunction(H *, H, const char *),
    cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuLibraryUnload(H), cuModuleUnload(H), cuMemAlloc_v2(P *, size_t),
    cuMemFree_v2(P), cuMemsetD32_v2(P, unsigned, size_t);

/* CU_JIT_WALL_TIME, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES */
static int names[] = {2, 4, 5, 6};
static char errors[256];
static void *values[] = {(void *)1, (void *)77, errors, (void *)sizeof errors};

/* A driver writes results over the sizes and the time. */
static void show(void) {
    float milliseconds;
    memcpy(&milliseconds, &values[0], sizeof milliseconds);
    printf("%s, %u of information, %u of errors\n", milliseconds > 0 && milliseconds < 6e5 ? "timed" : "not timed",
           (unsigned)(uintptr_t)values[1], (unsigned)(uintptr_t)values[3]);
}

int main(int argc, char **argv) {
    const char *form = argc > 1 ? argv[1] : "library";
    H context, library = 0, module = 0, racy, fine;
    CHECK(cuInit(0));
    if (!strcmp(form, "missing-options")) {
        CHECK(cuCtxCreate_v2(&context, 0, 0));
        printf("%d\n", cuModuleLoadDataEx(&module, ptx, 1, names, 0));
        printf("%d\n", cuLibraryLoadData(&library, ptx, 0, values, 1, 0, 0, 0));
        return 0;
    }
    if (strcmp(form, "before-context"))
        CHECK(cuCtxCreate_v2(&context, 0, 0));
    if (!strcmp(form, "module")) {
        CHECK(cuModuleLoadDataEx(&module, ptx, 4, names, values));
        show();
        CHECK(cuModuleGetFunction(&racy, module, "racy"));
        CHECK(cuModuleGetFunction(&fine, module, "fine"));
    } else {
        /* CU_LIBRARY_BINARY_IS_PRESERVED: `ptx` stays where it is, so that no copy is needed. */
        int option[] = {1};
        void *set[] = {(void *)1};
        unsigned count = !strcmp(form, "preserved");
        CHECK(cuLibraryLoadData(&library, ptx, names, values, 4, option, set, count));
        if (!strcmp(form, "before-context"))
            CHECK(cuCtxCreate_v2(&context, 0, 0));
        else
            show();
        CHECK(cuLibraryGetKernel(&racy, library, "racy"));
        CHECK(cuLibraryGetKernel(&fine, library, "fine"));
    }
    P one, many;
    CHECK(cuMemAlloc_v2(&one, 4));
    CHECK(cuMemAlloc_v2(&many, 4 * COUNT));
    CHECK(cuMemsetD32_v2(many, 1, COUNT));
    printf("%u\n", run_both(racy, fine, one, many));
    CHECK(cuMemFree_v2(one));
    CHECK(cuMemFree_v2(many));
    if (module)
        CHECK(cuModuleUnload(module));
    if (library)
        CHECK(cuLibraryUnload(library));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
