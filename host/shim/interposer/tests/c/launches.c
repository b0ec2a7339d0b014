/* Launches two kernels in the form that the argument names: in `racy` all threads store to one word, in
   `fine` each adds to its own. Prints what `fine` has left.
   Prototypes stand here so that no toolkit is needed to build it. */
#include "kernels.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    H func;
    unsigned gx, gy, gz, bx, by, bz, shared;
    H stream;
    void **params;
} Launch;
typedef struct {
    int kind, id;
} Location;
typedef struct {
    int kind, handles;
    Location location;
    void *metadata;
    unsigned char flags[8];
} Prop;
typedef struct {
    Location location;
    int flags;
} Access;
CUresult cuMemGetAllocationGranularity(size_t *, const Prop *, int),
    cuMemAddressReserve(P *, size_t, size_t, P, unsigned long long), cuMemAddressFree(P, size_t),
    cuMemCreate(P *, size_t, const Prop *, unsigned long long), cuMemRelease(P),
    cuMemRetainAllocationHandle(P *, void *),
    cuMemMap(P, size_t, size_t, P, unsigned long long), cuMemUnmap(P, size_t),
    cuMemSetAccess(P, size_t, const Access *, size_t);
CUresult cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H),
    cuCtxAttach(H *, unsigned), cuCtxDetach(H), cuCtxSynchronize(void), cuCtxSetCurrent(H), cuModuleLoadData(H *, const void *),
    cuModuleLoadDataEx(H *, const void *, unsigned, int *, void **), cuModuleLoad(H *, const char *),
    cuModuleGetFunction(H *, H, const char *), cuModuleEnumerateFunctions(H *, unsigned, H), cuModuleGetFunctionCount(unsigned *, H),
    cuFuncGetName(const char **, H), cuModuleUnload(H),
    cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuKernelGetFunction(H *, H), cuLibraryUnload(H),
    cuMemAlloc_v2(P *, size_t), cuMemFree_v2(P), cuMemsetD32_v2(P, unsigned, size_t),
    cuMemcpyDtoH_v2(void *, P, size_t), cuStreamCreate(H *, unsigned), cuStreamSynchronize(H),
    cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *), cuGraphCreate(H *, unsigned),
    cuGraphAddKernelNode_v2(H *, H, const H *, size_t, const Node *),
    cuGraphInstantiateWithFlags(H *, H, unsigned long long), cuGraphLaunch(H, H), cuGraphDestroy(H),
    cuGraphExecDestroy(H), cuLinkCreate_v2(unsigned, int *, void **, H *),
    cuLinkAddData_v2(H, int, void *, size_t, const char *, unsigned, int *, void **),
    cuLinkComplete(H, void **, size_t *), cuLinkDestroy(H),
    cuProfilerStart(void), cuProfilerStop(void), cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **),
    cuLaunchKernelEx(const Config *, H, void **, void **),
    cuLaunchCooperativeKernelMultiDevice(Launch *, unsigned, unsigned),
    cuFuncSetBlockShape(H, int, int, int), cuFuncSetSharedSize(H, unsigned), cuParamSetSize(H, unsigned),
    cuParamSeti(H, int, unsigned), cuParamSetf(H, int, float), cuParamSetv(H, int, void *, unsigned), cuLaunch(H),
    cuLaunchGrid(H, int, int), cuLaunchGridAsync(H, int, int, H),
    cuLaunchCooperativeKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **);

enum { BLOCKS = 2, MOST = 1024 };
static unsigned THREADS = 64;

static const char *form;

static int is(const char *name) { return !strcmp(form, name); }

/* In steps. One block of all threads is as good as all blocks. */
static void launch_in_steps(H function, P out, H stream) {
    unsigned n = 3;
    float same_bits;
    memcpy(&same_bits, &n, sizeof n);
    CHECK(cuFuncSetBlockShape(function, is("launch") ? BLOCKS * THREADS : THREADS, 1, 1));
    CHECK(cuFuncSetSharedSize(function, 16));
    CHECK(cuParamSetSize(function, 12));
    CHECK(cuParamSetv(function, 0, &out, sizeof out));
    if (is("grid"))
        CHECK(cuParamSetf(function, 8, same_bits));
    else
        CHECK(cuParamSeti(function, 8, n));
    if (is("launch"))
        CHECK(cuLaunch(function));
    else if (is("grid"))
        CHECK(cuLaunchGrid(function, BLOCKS, 1));
    else
        CHECK(cuLaunchGridAsync(function, BLOCKS, 1, stream));
}

static void launch(H function, P out, H stream) {
    if (is("launch") || is("grid") || is("grid-async")) {
        launch_in_steps(function, out, stream);
        return;
    }
    unsigned n = 3;
    void *params[] = {&out, &n};
    struct {
        P out;
        unsigned n;
    } block = {out, n};
    size_t bytes = 12;
    void *extra[] = {(void *)1, &block, (void *)2, &bytes, (void *)0};
    Config config = {BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, 0, 0};
    if (is("extra")) {
        CHECK(cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, 0, extra));
    } else if (is("ex")) {
        CHECK(cuLaunchKernelEx(&config, function, params, 0));
    } else if (is("cooperative")) {
        CHECK(cuLaunchCooperativeKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, params));
    } else if (is("multi-device")) {
        Launch one = {function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, params};
        CHECK(cuLaunchCooperativeKernelMultiDevice(&one, 1, 0));
    } else if (is("per-thread")) {
        void *found = 0;
        CHECK(cuGetProcAddress_v2("cuLaunchKernel", &found, 12000, 2, 0));
        CUresult (*call)(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);
        memcpy(&call, &found, sizeof call);
        CHECK(call(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, 0, params, 0));
    } else {
        CHECK(cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, params, 0));
    }
}

/* Memory of the least size at an address that was reserved for it. */
static size_t unit;

static P map(int device) {
    Prop prop = {1, 0, {1, device}, 0, {0}};
    Access access = {{1, device}, 3};
    P at, handle;
    CHECK(cuMemGetAllocationGranularity(&unit, &prop, 0));
    CHECK(cuMemAddressReserve(&at, 2 * unit, 0, 0, 0));
    CHECK(cuMemCreate(&handle, unit, &prop, 0));
    CHECK(cuMemMap(at, unit, 0, handle, 0));
    if (!cuMemsetD32_v2(at, 0, 1) || !cuMemMap(at, unit, 0, handle, 0) || !cuMemAddressFree(at, 2 * unit))
        exit(2);
    CHECK(cuMemSetAccess(at, unit, &access, 1));
    /* The simulated driver retains no handle that has been released. */
    if (is("mapped"))
        CHECK(cuMemRelease(handle));
    return at;
}

static void unmap(P at) {
    CHECK(cuMemUnmap(at, unit));
    CHECK(cuMemAddressFree(at, 2 * unit));
}

/* The same memory at another address too. */
static P alias(P at, int device) {
    Access access = {{1, device}, 3};
    P also, handle;
    CHECK(cuMemRetainAllocationHandle(&handle, (void *)at));
    CHECK(cuMemAddressReserve(&also, unit, 0, 0, 0));
    CHECK(cuMemMap(also, unit, 0, handle, 0));
    CHECK(cuMemSetAccess(also, unit, &access, 1));
    CHECK(cuMemRelease(handle));
    return also;
}

static void add(H graph, H function, P out) {
    unsigned n = 3;
    void *params[] = {&out, &n};
    Node node = {function, BLOCKS, 1, 1, THREADS, 1, 1, 0, params, 0, 0, 0};
    H made;
    CHECK(cuGraphAddKernelNode_v2(&made, graph, 0, 0, &node));
}

enum { THREADS_OF_HOST = 4, ROUNDS = 8 };
static H shared_context, shared_racy, shared_fine;

/* Launches into a stream of its own, beside others. */
static void *beside(void *sum) {
    H stream;
    P one, many;
    static const unsigned count = BLOCKS * 64;
    unsigned words[BLOCKS * 64];
    CHECK(cuCtxSetCurrent(shared_context));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuMemAlloc_v2(&one, 4));
    CHECK(cuMemAlloc_v2(&many, 4 * count));
    CHECK(cuMemsetD32_v2(many, 1, count));
    for (int i = 0; i < ROUNDS; i++) {
        launch(shared_racy, one, stream);
        launch(shared_fine, many, stream);
    }
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyDtoH_v2(words, many, sizeof words));
    for (unsigned i = 0; i < count; i++)
        *(unsigned *)sum += words[i];
    CHECK(cuMemFree_v2(one));
    CHECK(cuMemFree_v2(many));
    return 0;
}

static void threads(H context, H racy, H fine) {
    pthread_t all[THREADS_OF_HOST];
    unsigned sums[THREADS_OF_HOST] = {0};
    shared_context = context, shared_racy = racy, shared_fine = fine;
    for (int i = 0; i < THREADS_OF_HOST; i++)
        if (pthread_create(&all[i], 0, beside, &sums[i]))
            exit(2);
    for (int i = 0; i < THREADS_OF_HOST; i++) {
        pthread_join(all[i], 0);
        printf("%u\n", sums[i]);
    }
}

int main(int argc, char **argv) {
    form = argc > 1 ? argv[1] : "plain";
    if (argc > 2 && !strcmp(argv[2], "large"))
        THREADS = MOST;
    const unsigned count = BLOCKS * THREADS;
    int device;
    H context, module = 0, library = 0, link = 0, racy = 0, fine = 0, stream = 0;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    if (is("library") || is("function")) {
        CHECK(cuLibraryLoadData(&library, ptx, 0, 0, 0, 0, 0, 0));
        CHECK(cuLibraryGetKernel(&racy, library, "racy"));
        CHECK(cuLibraryGetKernel(&fine, library, "fine"));
        if (is("function")) {
            CHECK(cuKernelGetFunction(&racy, racy));
            CHECK(cuKernelGetFunction(&fine, fine));
        }
    } else {
        if (is("file")) {
            CHECK(cuModuleLoad(&module, argv[2]));
        } else if (is("link")) {
            void *image;
            size_t size;
            CHECK(cuLinkCreate_v2(0, 0, 0, &link));
            CHECK(cuLinkAddData_v2(link, 1, (void *)ptx, sizeof ptx, "linked", 0, 0, 0));
            CHECK(cuLinkComplete(link, &image, &size));
            CHECK(cuModuleLoadDataEx(&module, image, 0, 0, 0));
            CHECK(cuLinkDestroy(link));
        } else {
            CHECK(cuModuleLoadData(&module, ptx));
        }
        if (is("enumerate")) {
            H all[2];
            const char *name;
            unsigned count;
            CHECK(cuModuleGetFunctionCount(&count, module));
            MUST(count == 2);
            CHECK(cuModuleEnumerateFunctions(all, 2, module));
            for (int i = 0; i < 2; i++) {
                CHECK(cuFuncGetName(&name, all[i]));
                *(strcmp(name, "racy") ? &fine : &racy) = all[i];
            }
        } else {
            CHECK(cuModuleGetFunction(&racy, module, "racy"));
            CHECK(cuModuleGetFunction(&fine, module, "fine"));
        }
    }
    if (is("threads")) {
        threads(context, racy, fine);
        CHECK(cuCtxDestroy_v2(context));
        return 0;
    }
    P one, many;
    if (is("stray")) {
        CHECK(cuMemAlloc_v2(&many, 4 * count));
        launch(fine, many, stream);
        CHECK(cuCtxSynchronize());
        launch(racy, many + (256 << 20), stream);
        printf("%d\n", cuCtxSynchronize());
        return 0;
    }
    if (is("steady")) {
        /* What a launch costs when there has been the same before. */
        CHECK(cuStreamCreate(&stream, 0));
        CHECK(cuMemAlloc_v2(&many, 4 * count));
        CHECK(cuMemsetD32_v2(many, 1, count));
        for (int i = 0; i < 110; i++) {
            if (i == 10)
                CHECK(cuProfilerStart());
            launch(fine, many, stream);
            CHECK(cuStreamSynchronize(stream));
        }
        CHECK(cuProfilerStop());
        return 0;
    }
    if (is("no-shape")) {
        /* A shape and parameters that nobody has set. */
        printf("%d\n", cuLaunchGrid(fine, 1, 1));
        return 0;
    }
    if (is("contexts") || is("detach")) {
        /* The first context goes with launches in it that nobody has waited for. */
        CHECK(cuMemAlloc_v2(&one, 4));
        for (int i = 0; i < 3; i++)
            launch(racy, one, stream);
        if (is("detach")) {
            H same;
            CHECK(cuCtxAttach(&same, 0));
            MUST(same == context);
            CHECK(cuCtxDetach(context));
            launch(racy, one, stream);
            CHECK(cuCtxDetach(context));
            MUST(cuCtxDetach(context) == 201);
        } else {
            CHECK(cuCtxDestroy_v2(context));
        }
        CHECK(cuCtxCreate_v2(&context, 0, device));
        CHECK(cuModuleLoadData(&module, ptx));
        CHECK(cuModuleGetFunction(&racy, module, "racy"));
        CHECK(cuModuleGetFunction(&fine, module, "fine"));
    }
    if (is("mapped")) {
        one = map(device);
        many = map(device);
    } else if (is("aliases") || is("no-aliases")) {
        one = map(device);
        many = map(device);
        P also = alias(many, device);
        if (is("no-aliases")) {
            CHECK(cuMemUnmap(also, unit));
            also = many;
        }
        launch(fine, also, stream);
        CHECK(cuCtxSynchronize());
    } else {
        CHECK(cuMemAlloc_v2(&one, 4));
        CHECK(cuMemAlloc_v2(&many, 4 * count));
    }
    CHECK(cuMemsetD32_v2(many, 1, count));
    CHECK(cuStreamCreate(&stream, 0));
    if (is("capture") || is("nodes")) {
        H graph, exec;
        if (is("capture")) {
            CHECK(cuStreamBeginCapture_v2(stream, 0));
            launch(racy, one, stream);
            launch(fine, many, stream);
            CHECK(cuStreamEndCapture(stream, &graph));
        } else {
            CHECK(cuGraphCreate(&graph, 0));
            add(graph, racy, one);
            add(graph, fine, many);
        }
        CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        CHECK(cuGraphDestroy(graph));
        for (int i = 0; i < 3; i++)
            CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuStreamSynchronize(stream));
        CHECK(cuGraphExecDestroy(exec));
    } else {
        for (int i = 0; i < 3; i++) {
            launch(racy, one, stream);
            launch(fine, many, stream);
        }
        if (!is("no-wait"))
            CHECK(cuCtxSynchronize());
    }
    if (is("fork")) {
        int status;
        pid_t child = fork();
        if (!child) {
            cuCtxSynchronize();
            cuMemAlloc_v2(&one, 4);
            exit(7);
        }
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
            exit(2);
    }
    if (is("late")) {
        P more;
        CHECK(cuMemAlloc_v2(&more, 1 << 20));
        CHECK(cuMemFree_v2(more));
    }
    if (is("no-wait"))
        return 0;
    static unsigned words[BLOCKS * MOST];
    CHECK(cuMemcpyDtoH_v2(words, many, 4 * count));
    unsigned sum = 0;
    for (int i = 0; i < (int)count; i++)
        sum += words[i];
    printf("%u\n", sum);
    fflush(stdout);
    if (is("_exit"))
        _Exit(3);
    if (is("mapped") || is("aliases") || is("no-aliases")) {
        unmap(one);
        unmap(many);
    } else {
        CHECK(cuMemFree_v2(one));
        CHECK(cuMemFree_v2(many));
    }
    if (module)
        CHECK(cuModuleUnload(module));
    if (library)
        CHECK(cuLibraryUnload(library));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
