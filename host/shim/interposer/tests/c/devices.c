/* Launches two kernels on each of two devices in the way that the argument names: in `racy` all threads store to one
   word, in `fine` each adds to its own. Copies from one device to the other. Prints what `fine` has left.
   Prototypes stand here so that no toolkit is needed to build it. */
#include <pthread.h>
#include "kernels.h"

CUresult cuInit(unsigned), cuDeviceGetCount(int *), cuDevicePrimaryCtxRetain(H *, int),
    cuDevicePrimaryCtxRelease_v2(int), cuCtxSetCurrent(H), cuCtxGetDevice(int *), cuCtxSynchronize(void),
    cuCtxEnablePeerAccess(H, unsigned), cuCtxDisablePeerAccess(H), cuDeviceCanAccessPeer(int *, int, int),
    cuDeviceTotalMem_v2(size_t *, int), cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *),
    cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuLibraryGetGlobal(P *, size_t *, H, const char *),
    cuMemAlloc_v2(P *, size_t), cuMemsetD32_v2(P, unsigned, size_t), cuMemcpyDtoH_v2(void *, P, size_t),
    cuMemcpyPeer(P, H, P, H, size_t), cuMemcpyPeerAsync(P, H, P, H, size_t, H), cuStreamCreate(H *, unsigned),
    cuStreamGetDevice(H, int *), cuPointerGetAttribute(void *, int, P),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

enum { DEVICES = 2, BLOCKS = 2, THREADS = 64, WORDS = BLOCKS * THREADS, ROUNDS = 3, DEVICE_ORDINAL = 9 };

static const char *form;
static H context[DEVICES], racy[DEVICES], fine[DEVICES], stream[DEVICES], library;
static P one[DEVICES], many[DEVICES];

static int is(const char *name) { return !strcmp(form, name); }

static void set_up(int d) {
    int device = -1;
    H module;
    CHECK(cuDevicePrimaryCtxRetain(&context[d], d));
    CHECK(cuCtxSetCurrent(context[d]));
    CHECK(cuCtxGetDevice(&device));
    MUST(device == d);
    if (is("library")) {
        racy[d] = racy[0];
        fine[d] = fine[0];
    } else {
        CHECK(cuModuleLoadData(&module, ptx));
        CHECK(cuModuleGetFunction(&racy[d], module, "racy"));
        CHECK(cuModuleGetFunction(&fine[d], module, "fine"));
    }
    CHECK(cuMemAlloc_v2(&one[d], 4));
    CHECK(cuMemAlloc_v2(&many[d], 4 * WORDS));
    CHECK(cuMemsetD32_v2(many[d], 1, WORDS));
    CHECK(cuStreamCreate(&stream[d], 0));
    CHECK(cuStreamGetDevice(stream[d], &device));
    MUST(device == d);
    CHECK(cuPointerGetAttribute(&device, DEVICE_ORDINAL, many[d]));
    MUST(device == d);
}

static void launch(int d) {
    unsigned n = 3;
    void *to_one[] = {&one[d], &n}, *to_many[] = {&many[d], &n};
    CHECK(cuLaunchKernel(racy[d], BLOCKS, 1, 1, THREADS, 1, 1, 0, stream[d], to_one, 0));
    CHECK(cuLaunchKernel(fine[d], BLOCKS, 1, 1, THREADS, 1, 1, 0, stream[d], to_many, 0));
}

static void *beside(void *number) {
    int d = *(int *)number;
    CHECK(cuCtxSetCurrent(context[d]));
    for (int i = 0; i < ROUNDS; i++)
        launch(d);
    CHECK(cuCtxSynchronize());
    return 0;
}

static unsigned sum(P from) {
    unsigned words[WORDS], sum = 0;
    CHECK(cuMemcpyDtoH_v2(words, from, sizeof words));
    for (int i = 0; i < WORDS; i++)
        sum += words[i];
    return sum;
}

int main(int argc, char **argv) {
    form = argc > 1 ? argv[1] : "switch";
    int count = 0, can = -1;
    P copy, variable[DEVICES];
    CHECK(cuInit(0));
    CHECK(cuDeviceGetCount(&count));
    MUST(count == DEVICES && cuDevicePrimaryCtxRetain(&context[0], count) == 101);
    if (is("library")) {
        CHECK(cuLibraryLoadData(&library, ptx, 0, 0, 0, 0, 0, 0));
        CHECK(cuLibraryGetKernel(&racy[0], library, "racy"));
        CHECK(cuLibraryGetKernel(&fine[0], library, "fine"));
    }
    for (int d = 0; d < DEVICES; d++)
        set_up(d);
    if (is("threads")) {
        pthread_t all[DEVICES];
        int numbers[DEVICES] = {0, 1};
        for (int d = 0; d < DEVICES; d++)
            if (pthread_create(&all[d], 0, beside, &numbers[d]))
                exit(2);
        for (int d = 0; d < DEVICES; d++)
            pthread_join(all[d], 0);
    } else {
        for (int i = 0; i < ROUNDS; i++)
            for (int d = 0; d < DEVICES; d++) {
                CHECK(cuCtxSetCurrent(context[d]));
                launch(d);
            }
    }
    for (int d = 0; d < DEVICES; d++) {
        CHECK(cuCtxSetCurrent(context[d]));
        CHECK(cuCtxSynchronize());
        if (library)
            CHECK(cuLibraryGetGlobal(&variable[d], 0, library, "word"));
    }
    MUST(!library || variable[0] != variable[1]);
    CHECK(cuDeviceCanAccessPeer(&can, 0, 0));
    MUST(can == 0);
    CHECK(cuDeviceCanAccessPeer(&can, 0, 1));
    MUST(can == 1);
    MUST(cuCtxEnablePeerAccess(context[1], 0) == 217 && cuCtxDisablePeerAccess(context[0]) == 705);
    CHECK(cuCtxEnablePeerAccess(context[0], 0));
    MUST(cuCtxEnablePeerAccess(context[0], 0) == 704);
    CHECK(cuMemAlloc_v2(&copy, 4 * WORDS));
    CHECK(cuMemcpyPeer(copy, context[1], many[0], context[0], 4 * WORDS));
    CHECK(cuMemsetD32_v2(many[0], 0, WORDS));
    MUST(cuMemcpyPeer(copy, context[1], many[0], 0, 4 * WORDS) == 201);
    CHECK(cuMemcpyPeerAsync(many[0], context[0], copy, context[1], 4 * WORDS, stream[1]));
    CHECK(cuCtxSynchronize());
    printf("%u %u\n", sum(many[0]), sum(many[1]));
    fflush(stdout);
    /* The first device goes, and what was launched on the second is still told. */
    launch(1);
    CHECK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK(cuCtxSynchronize());
    MUST(sum(many[1]) == WORDS * (1 + (ROUNDS + 1) * 3));
    return 0;
}
