/* Launches two kernels on memory of a kind that the argument names, and on nothing else: in `racy` all threads store to one
   word, in `fine` each adds to its own. Prints what `fine` has left. `graph` is memory of a node, `captured` memory that
   belongs to a graph, which also gives it back, and `beside` memory that the driver is asked for behind our back. */
#include "both.h"
#include <dlfcn.h>

typedef struct {
    int type, handles, at, id;
    char more[72];
    const void *access;
    size_t accesses, bytes;
    P address;
} Memory;
CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H),
    cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *),
    cuMemsetD32_v2(P, unsigned, size_t), cuMemsetD32Async(P, unsigned, size_t, H), cuMemFree_v2(P),
    cuMemAllocAsync(P *, size_t, H), cuMemFreeAsync(P, H), cuMemcpyDtoHAsync_v2(void *, P, size_t, H),
    cuGraphCreate(H *, unsigned), cuGraphAddMemAllocNode(H *, H, const H *, size_t, Memory *),
    cuGraphInstantiateWithFlags(H *, H, unsigned long long), cuGraphLaunch(H, H), cuStreamCreate(H *, unsigned),
    cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *);

static const size_t bytes = 4 * (COUNT + 1);

/* Both kernels in a graph that has the memory between two nodes only. */
static unsigned run_captured(H racy, H fine) {
    H stream, graph, exec;
    P one;
    unsigned n = 3, words[COUNT], sum = 0;
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamBeginCapture_v2(stream, 1));
    CHECK(cuMemAllocAsync(&one, bytes, stream));
    P many = one + 4;
    void *of_racy[] = {&one, &n}, *of_fine[] = {&many, &n};
    CHECK(cuMemsetD32Async(one, 1, COUNT + 1, stream));
    CHECK(cuLaunchKernel(racy, 2, 1, 1, COUNT / 2, 1, 1, 0, stream, of_racy, 0));
    CHECK(cuLaunchKernel(fine, 2, 1, 1, COUNT / 2, 1, 1, 0, stream, of_fine, 0));
    CHECK(cuMemcpyDtoHAsync_v2(words, many, sizeof words, stream));
    CHECK(cuMemFreeAsync(one, stream));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuCtxSynchronize());
    for (int i = 0; i < COUNT; i++)
        sum += words[i];
    return sum;
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    H context, module, racy, fine, graph, node, exec;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&racy, module, "racy"));
    CHECK(cuModuleGetFunction(&fine, module, "fine"));
    P one;
    if (!strcmp(kind, "captured")) {
        printf("%u\n", run_captured(racy, fine));
        CHECK(cuCtxDestroy_v2(context));
        return 0;
    }
    if (!strcmp(kind, "graph")) {
        /* Pinned memory of the first device. */
        Memory memory = {1, 0, 1, 0, {0}, 0, 0, bytes, 0};
        CHECK(cuGraphCreate(&graph, 0));
        CHECK(cuGraphAddMemAllocNode(&node, graph, 0, 0, &memory));
        CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        CHECK(cuGraphLaunch(exec, 0));
        CHECK(cuCtxSynchronize());
        one = memory.address;
    } else {
        void *driver = dlopen(getenv("CUDARUN_CHECK_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
        MUST(driver);
        CUresult (*alloc)(P *, size_t) = (CUresult(*)(P *, size_t))dlsym(driver, "cuMemAlloc_v2");
        MUST(alloc);
        CHECK(alloc(&one, bytes));
    }
    P many = one + 4;
    CHECK(cuMemsetD32_v2(one, 1, COUNT + 1));
    printf("%u\n", run_both(racy, fine, one, many));
    CHECK(cuMemFree_v2(one));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
