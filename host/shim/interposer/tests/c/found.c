/* Launches two kernels on memory that a graph has allocated, and nothing else: in `racy` all threads store to one word, in
   `fine` each adds to its own. Prints what `fine` has left. */
#include "both.h"

typedef struct {
    int type, handles, at, id;
    char more[72];
    const void *access;
    size_t accesses, bytes;
    P address;
} Memory;
CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H),
    cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *),
    cuMemsetD32_v2(P, unsigned, size_t), cuMemFree_v2(P), cuGraphCreate(H *, unsigned),
    cuGraphAddMemAllocNode(H *, H, const H *, size_t, Memory *), cuGraphInstantiateWithFlags(H *, H, unsigned long long),
    cuGraphLaunch(H, H);

int main(void) {
    H context, module, racy, fine, graph, node, exec;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&racy, module, "racy"));
    CHECK(cuModuleGetFunction(&fine, module, "fine"));
    /* Pinned memory of the first device. */
    Memory memory = {1, 0, 1, 0, {0}, 0, 0, 4 * (COUNT + 1), 0};
    CHECK(cuGraphCreate(&graph, 0));
    CHECK(cuGraphAddMemAllocNode(&node, graph, 0, 0, &memory));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphLaunch(exec, 0));
    CHECK(cuCtxSynchronize());
    P one = memory.address, many = one + 4;
    CHECK(cuMemsetD32_v2(one, 1, COUNT + 1));
    printf("%u\n", run_both(racy, fine, one, many));
    CHECK(cuMemFree_v2(one));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
