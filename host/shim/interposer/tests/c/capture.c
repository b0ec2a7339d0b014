/* Captures launches of two kernels for the first time, while another thread launches into a stream of its own: in `racy`
   all threads store to one word, in `fine` each adds to its own. Prints what `fine` has left in both. The argument says in
   which mode the capture is; a second one, how the kernels are loaded, or what else is done in the meantime that may be
   forbidden; a third one (`there`), that the other thread loads them then, as the runtime does at the first use of a kernel,
   and is the first to launch them. */
#include "kernels.h"
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSynchronize(void), cuCtxDestroy_v2(H),
    cuCtxSetCurrent(H), cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *),
    cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuMemAlloc_v2(P *, size_t), cuMemFree_v2(P),
    cuMemsetD32_v2(P, unsigned, size_t), cuMemcpyDtoH_v2(void *, P, size_t), cuStreamCreate(H *, unsigned),
    cuStreamSynchronize(H), cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *), cuStreamIsCapturing(H, int *),
    cuGraphInstantiateWithFlags(H *, H, unsigned long long), cuGraphLaunch(H, H),
    cuThreadExchangeStreamCaptureMode(int *),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

enum { COUNT = 128, ROUNDS = 8 };
static H context, racy, fine;
static P one, many[2];
static int from_library, there;
static sem_t used;

static void load(void) {
    H module, library;
    /* The runtime forbids itself nothing meanwhile. */
    int mode = 2;
    CHECK(cuThreadExchangeStreamCaptureMode(&mode));
    if (from_library) {
        CHECK(cuLibraryLoadData(&library, ptx, 0, 0, 0, 0, 0, 0));
        CHECK(cuLibraryGetKernel(&racy, library, "racy"));
        CHECK(cuLibraryGetKernel(&fine, library, "fine"));
    } else {
        CHECK(cuModuleLoadData(&module, ptx));
        CHECK(cuModuleGetFunction(&racy, module, "racy"));
        CHECK(cuModuleGetFunction(&fine, module, "fine"));
    }
    CHECK(cuThreadExchangeStreamCaptureMode(&mode));
    MUST(mode == 2);
}

static void launch(H stream, P sum) {
    unsigned n = 3;
    void *of_racy[] = {&one, &n}, *of_fine[] = {&sum, &n};
    CHECK(cuLaunchKernel(racy, 2, 1, 1, 64, 1, 1, 0, stream, of_racy, 0));
    CHECK(cuLaunchKernel(fine, 2, 1, 1, 64, 1, 1, 0, stream, of_fine, 0));
}

static void *beside(void *stream) {
    CHECK(cuCtxSetCurrent(context));
    if (there)
        load();
    /* Now and then somebody looks whether they have ended. */
    for (int i = 0; i < ROUNDS; i++) {
        launch(stream, many[1]);
        if (!i)
            sem_post(&used);
        usleep(3000);
    }
    return 0;
}

static void *forbidden(void *result) {
    P more;
    CHECK(cuCtxSetCurrent(context));
    *(CUresult *)result = cuMemAlloc_v2(&more, 4);
    return 0;
}

static void show(P sum) {
    unsigned words[COUNT], all = 0;
    CHECK(cuMemcpyDtoH_v2(words, sum, sizeof words));
    for (int i = 0; i < COUNT; i++)
        all += words[i];
    printf("%u\n", all);
}

int main(int argc, char **argv) {
    H stream, other, graph, exec;
    int mode = argc > 1 ? atoi(argv[1]) : 0, status;
    const char *more = argc > 2 ? argv[2] : "";
    pthread_t thread;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    from_library = !strcmp(more, "library");
    there = argc > 3;
    sem_init(&used, 0, 0);
    if (!there)
        load();
    CHECK(cuMemAlloc_v2(&one, 4));
    for (int i = 0; i < 2; i++) {
        CHECK(cuMemAlloc_v2(&many[i], 4 * COUNT));
        CHECK(cuMemsetD32_v2(many[i], 1, COUNT));
    }
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamCreate(&other, 1));
    CHECK(cuStreamBeginCapture_v2(stream, mode));
    if (!strcmp(more, "forbidden") || !strcmp(more, "forbidden-here")) {
        CUresult result = 0;
        P none;
        if (!strcmp(more, "forbidden-here"))
            result = cuMemAlloc_v2(&none, 4);
        else if (pthread_create(&thread, 0, forbidden, &result) || pthread_join(thread, 0))
            exit(2);
        launch(other, many[1]);
        CHECK(cuStreamIsCapturing(stream, &status));
        /* More launches than there may be nodes; none becomes one. */
        void *params[] = {&many[1], &result};
        for (int i = 0; status == 2 && i < 300; i++)
            MUST(cuLaunchKernel(fine, 2, 1, 1, 64, 1, 1, 0, stream, params, 0) == 901);
        printf("%d %d %d\n", result, status, cuStreamEndCapture(stream, &graph));
        CHECK(cuStreamBeginCapture_v2(stream, 2));
        launch(stream, many[0]);
        CHECK(cuStreamEndCapture(stream, &graph));
        CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuStreamSynchronize(stream));
        CHECK(cuStreamSynchronize(other));
        return 0;
    }
    if (pthread_create(&thread, 0, beside, other))
        exit(2);
    if (there)
        sem_wait(&used);
    for (int i = 0; i < ROUNDS; i++) {
        launch(stream, many[0]);
        usleep(3000);
    }
    pthread_join(thread, 0);
    CHECK(cuStreamIsCapturing(stream, &status));
    MUST(status == 1);
    CHECK(cuStreamEndCapture(stream, &graph));
    /* The mode is the program's own again. */
    int now = 1;
    CHECK(cuThreadExchangeStreamCaptureMode(&now));
    MUST(now == 0);
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamSynchronize(other));
    show(many[0]);
    show(many[1]);
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
