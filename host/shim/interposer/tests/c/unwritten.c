/* Every thread of `plain` and `inside` loads its neighbour's word of one range and stores to its own of another one;
   the latter finds both addresses in a structure. The first argument says how it is launched; each further one is a
   launch, and says where the two ranges are. Prints the sum of all words. */
#include "kernels.h"

CUresult cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H),
    cuCtxSynchronize(void), cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *),
    cuMemAlloc_v2(P *, size_t), cuMemFree_v2(P), cuMemsetD32_v2(P, unsigned, size_t),
    cuMemcpyDtoH_v2(void *, P, size_t), cuStreamCreate(H *, unsigned), cuStreamSynchronize(H),
    cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *), cuGraphCreate(H *, unsigned),
    cuGraphAddKernelNode_v2(H *, H, const H *, size_t, const Node *), cuGraphKernelNodeSetParams_v2(H, const Node *),
    cuGraphInstantiateWithFlags(H *, H, unsigned long long), cuGraphLaunch(H, H), cuGraphDestroy(H),
    cuGraphExecDestroy(H), cuGraphExecKernelNodeSetParams_v2(H, H, const Node *), cuGraphExecUpdate_v2(H, H, void *),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **),
    cuLaunchKernelEx(const Config *, H, void **, void **), cuFuncSetBlockShape(H, int, int, int),
    cuParamSetSize(H, unsigned), cuParamSetv(H, int, void *, unsigned), cuLaunchGridAsync(H, int, int, H);

enum { THREADS = 64, WORDS = 4 * THREADS };

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define BODY                                                                                                          \
    "    mov.u32 %t, %tid.x; xor.b32 %n, %t, 32; mul.wide.u32 %at, %n, 4; add.s64 %from, %from, %at;\n"               \
    "    mul.wide.u32 %at, %t, 4; add.s64 %to, %to, %at;\n"                                                           \
    "    ld.global.u32 %v, [%from]; st.global.u32 [%to], %v; ret;\n}\n"

static const char text[] = HEAD
    ".visible .entry plain(.param .u32 first, .param .u64 from, .param .u64 to) {\n"
    "    .reg .b64 %from, %to, %at; .reg .b32 %t, %n, %v;\n"
    "    ld.param.u64 %from, [from]; ld.param.u64 %to, [to];\n" BODY
    ".visible .entry inside(.param .align 8 .b8 both[24]) {\n"
    "    .reg .b64 %from, %to, %at; .reg .b32 %t, %n, %v;\n"
    "    ld.param.u64 %from, [both+8]; ld.param.u64 %to, [both+16];\n" BODY;

static const char *form;
static H plain, inside, stream;
static P one, other;

static int is(const char *name) { return !strcmp(form, name); }

/* What both kernels take. */
typedef struct {
    unsigned first;
    P from, to;
} Both;

static Both ranges(const char *where) {
    Both both = {0, one, other};
    if (!strcmp(where, "together"))
        both.to = one + 4 * THREADS;
    else if (!strcmp(where, "alike"))
        both.to = one;
    else if (strcmp(where, "apart"))
        exit(2);
    return both;
}

static void launch(Both both) {
    void *each[] = {&both.first, &both.from, &both.to}, *all[] = {&both};
    size_t bytes = sizeof both;
    void *extra[] = {(void *)1, &both, (void *)2, &bytes, (void *)0};
    Config config = {1, 1, 1, THREADS, 1, 1, 0, stream, 0, 0};
    if (is("extra")) {
        CHECK(cuLaunchKernel(plain, 1, 1, 1, THREADS, 1, 1, 0, stream, 0, extra));
    } else if (is("inside")) {
        CHECK(cuLaunchKernel(inside, 1, 1, 1, THREADS, 1, 1, 0, stream, all, 0));
    } else if (is("ex")) {
        CHECK(cuLaunchKernelEx(&config, plain, each, 0));
    } else if (is("steps")) {
        CHECK(cuFuncSetBlockShape(plain, THREADS, 1, 1));
        CHECK(cuParamSetSize(plain, sizeof both));
        CHECK(cuParamSetv(plain, 0, &both, sizeof both));
        CHECK(cuLaunchGridAsync(plain, 1, 1, stream));
    } else {
        CHECK(cuLaunchKernel(plain, 1, 1, 1, THREADS, 1, 1, 0, stream, each, 0));
    }
}

static H graph_of(Both both, H *node) {
    void *each[] = {&both.first, &both.from, &both.to};
    Node given = {plain, 1, 1, 1, THREADS, 1, 1, 0, each, 0, 0, 0};
    H graph;
    CHECK(cuGraphCreate(&graph, 0));
    CHECK(cuGraphAddKernelNode_v2(node, graph, 0, 0, &given));
    return graph;
}

/* One executable graph, which is changed before each launch but the first. */
static void graphs(int count, char **wheres) {
    H graph, node, exec, unused;
    graph = graph_of(ranges(wheres[0]), &node);
    if (is("capture")) {
        CHECK(cuStreamBeginCapture_v2(stream, 0));
        launch(ranges(wheres[0]));
        CHECK(cuStreamEndCapture(stream, &graph));
    }
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < count; i++) {
        Both both = ranges(wheres[i]);
        void *each[] = {&both.first, &both.from, &both.to};
        Node given = {plain, 1, 1, 1, THREADS, 1, 1, 0, each, 0, 0, 0};
        if (i && is("exec-set"))
            CHECK(cuGraphExecKernelNodeSetParams_v2(exec, node, &given));
        if (i && is("update")) {
            uint64_t result[3];
            H other_graph = graph_of(both, &unused);
            CHECK(cuGraphExecUpdate_v2(exec, other_graph, result));
            CHECK(cuGraphDestroy(other_graph));
        }
        if (i && is("node-set")) {
            CHECK(cuGraphExecDestroy(exec));
            CHECK(cuGraphKernelNodeSetParams_v2(node, &given));
            CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        }
        if (i && is("freed"))
            CHECK(cuMemFree_v2(other));
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuStreamSynchronize(stream));
    }
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    form = argv[1];
    int device;
    H context, module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&plain, module, "plain"));
    CHECK(cuModuleGetFunction(&inside, module, "inside"));
    CHECK(cuMemAlloc_v2(&one, 4 * WORDS));
    CHECK(cuMemAlloc_v2(&other, 4 * WORDS));
    CHECK(cuMemsetD32_v2(one, 7, WORDS));
    CHECK(cuMemsetD32_v2(other, 8, WORDS));
    CHECK(cuStreamCreate(&stream, 0));
    if (is("capture") || is("exec-set") || is("update") || is("node-set") || is("freed"))
        graphs(argc - 2, argv + 2);
    else
        for (int i = 2; i < argc; i++) {
            launch(ranges(argv[i]));
            CHECK(cuStreamSynchronize(stream));
        }
    unsigned words[2][WORDS], sum = 0;
    CHECK(cuMemcpyDtoH_v2(words[0], one, sizeof words[0]));
    CHECK(cuMemcpyDtoH_v2(words[1], other, sizeof words[1]));
    for (int i = 0; i < WORDS; i++)
        sum += words[0][i] + words[1][i];
    printf("%u\n", sum);
    CHECK(cuMemFree_v2(one));
    CHECK(cuMemFree_v2(other));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
