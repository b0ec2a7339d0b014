/* Puts kernels into graphs in the way that the argument names, and launches them: in `racy` all threads store to
   one word, in `fine` each adds to its own. Prints what `fine` has left.
   Prototypes stand here so that no toolkit is needed to build it. */
#include "kernels.h"

typedef struct {
    H func;
    unsigned gx, gy, gz, bx, by, bz, shared;
    void **params, **extra;
} Old;
typedef struct {
    int type, reserved0[3];
    union {
        long long reserved1[29];
        Node kernel;
        H child;
    };
    long long reserved2;
} Any;
typedef struct {
    unsigned long long flags;
    H stream, error_node;
    int result;
} Instantiate;
typedef struct {
    int result;
    H error_node, error_from;
} Update;
typedef unsigned long long Flags;
CUresult cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H),
    cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *),
    cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuMemAlloc_v2(P *, size_t), cuMemsetD32_v2(P, unsigned, size_t),
    cuMemcpyDtoH_v2(void *, P, size_t), cuStreamCreate(H *, unsigned), cuStreamSynchronize(H),
    cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *),
    cuStreamBeginCaptureToGraph(H, H, const H *, const void *, size_t, int), cuGraphCreate(H *, unsigned),
    cuGraphAddKernelNode(H *, H, const H *, size_t, const Old *),
    cuGraphAddKernelNode_v2(H *, H, const H *, size_t, const Node *),
    cuGraphAddNode(H *, H, const H *, size_t, Any *),
    cuGraphAddNode_v2(H *, H, const H *, const void *, size_t, Any *), cuGraphNodeSetParams(H, Any *),
    cuGraphAddChildGraphNode(H *, H, const H *, size_t, H), cuGraphChildGraphNodeGetGraph(H, H *),
    cuGraphKernelNodeSetParams(H, const Old *), cuGraphKernelNodeSetParams_v2(H, const Node *),
    cuGraphKernelNodeGetParams(H, Old *), cuGraphKernelNodeGetParams_v2(H, Node *), cuGraphClone(H *, H),
    cuGraphNodeFindInClone(H *, H, H), cuGraphDestroyNode(H), cuGraphInstantiate(H *, H, H *, char *, size_t),
    cuGraphInstantiate_v2(H *, H, H *, char *, size_t), cuGraphInstantiateWithFlags(H *, H, Flags),
    cuGraphInstantiateWithParams(H *, H, Instantiate *), cuGraphExecGetFlags(H, Flags *),
    cuGraphExecUpdate(H, H, H *, int *), cuGraphExecUpdate_v2(H, H, Update *),
    cuGraphExecKernelNodeSetParams(H, H, const Old *), cuGraphExecKernelNodeSetParams_v2(H, H, const Node *),
    cuGraphExecNodeSetParams(H, H, Any *), cuGraphExecChildGraphNodeSetParams(H, H, H),
    cuGraphNodeSetEnabled(H, H, unsigned), cuGraphNodeGetEnabled(H, H, unsigned *), cuGraphLaunch(H, H),
    cuGraphDestroy(H), cuGraphExecDestroy(H),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

enum { BLOCKS = 2, THREADS = 64, WORDS = BLOCKS * THREADS, MANY = 140, KERNEL = 0, GRAPH = 4 };

static const char *form;
static H racy, fine, stream;
static P one, many;
static unsigned three = 3;
static void *to_one[] = {&one, &three}, *to_many[] = {&many, &three};
static struct {
    P out;
    unsigned n;
} block;
static size_t bytes = 12;
static void *extra[] = {(void *)1, &block, (void *)2, &bytes, (void *)0};

static int is(const char *name) { return !strcmp(form, name); }

static Node node(H kernel) {
    void **params = kernel == racy ? to_one : to_many;
    Node node = {kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, params, 0, 0, 0};
    if (is("kern")) {
        node.func = 0;
        node.kern = kernel;
    }
    if (is("extra")) {
        block.out = kernel == racy ? one : many;
        block.n = three;
        node.params = 0;
        node.extra = extra;
    }
    return node;
}

static Old old(H kernel) {
    Node new = node(kernel);
    Old old = {new.func, new.gx, new.gy, new.gz, new.bx, new.by, new.bz, new.shared, new.params, new.extra};
    return old;
}

static Any any(H kernel) {
    Any any;
    memset(&any, 0, sizeof any);
    any.type = KERNEL;
    any.kernel = node(kernel);
    return any;
}

static H add(H graph, H kernel) {
    H made;
    if (is("set-v1")) {
        Old params = old(kernel);
        CHECK(cuGraphAddKernelNode(&made, graph, 0, 0, &params));
    } else if (is("node-v1")) {
        Any params = any(kernel);
        CHECK(cuGraphAddNode(&made, graph, 0, 0, &params));
    } else if (is("node")) {
        Any params = any(kernel);
        CHECK(cuGraphAddNode_v2(&made, graph, 0, 0, 0, &params));
    } else {
        Node params = node(kernel);
        CHECK(cuGraphAddKernelNode_v2(&made, graph, 0, 0, &params));
    }
    return made;
}

/* A graph of two kernels. */
static H pair(H first, H second, H *nodes) {
    H graph;
    CHECK(cuGraphCreate(&graph, 0));
    nodes[0] = add(graph, first);
    nodes[1] = add(graph, second);
    return graph;
}

static H instantiate(H graph) {
    H exec, bad;
    if (is("update-v1")) {
        CHECK(cuGraphInstantiate(&exec, graph, &bad, 0, 0));
    } else if (is("update")) {
        CHECK(cuGraphInstantiate_v2(&exec, graph, &bad, 0, 0));
    } else if (is("with-params")) {
        Instantiate params = {1, stream, 0, 7};
        Flags flags = 0;
        CHECK(cuGraphInstantiateWithParams(&exec, graph, &params));
        CHECK(cuGraphExecGetFlags(exec, &flags));
        MUST(params.result == 0 && flags == 1);
    } else {
        CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    }
    return exec;
}

static void launch(H exec, int times) {
    for (int i = 0; i < times; i++)
        CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
}

int main(int argc, char **argv) {
    form = argc > 1 ? argv[1] : "set";
    int device;
    H context, module, graph, other, exec, nodes[2], more[2], found;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    if (is("kern")) {
        CHECK(cuLibraryLoadData(&module, ptx, 0, 0, 0, 0, 0, 0));
        CHECK(cuLibraryGetKernel(&racy, module, "racy"));
        CHECK(cuLibraryGetKernel(&fine, module, "fine"));
    } else {
        CHECK(cuModuleLoadData(&module, ptx));
        CHECK(cuModuleGetFunction(&racy, module, "racy"));
        CHECK(cuModuleGetFunction(&fine, module, "fine"));
    }
    CHECK(cuMemAlloc_v2(&one, 4));
    CHECK(cuMemAlloc_v2(&many, 4 * WORDS));
    CHECK(cuMemsetD32_v2(many, 1, WORDS));
    CHECK(cuStreamCreate(&stream, 0));
    Node new = node(racy);
    Old before = old(racy);
    Any whole = any(racy);
    if (is("clone")) {
        graph = pair(fine, racy, nodes);
        CHECK(cuGraphClone(&other, graph));
        CHECK(cuGraphDestroy(graph));
        launch(instantiate(other), 2);
    } else if (is("find")) {
        graph = pair(fine, fine, nodes);
        CHECK(cuGraphClone(&other, graph));
        CHECK(cuGraphNodeFindInClone(&found, nodes[1], other));
        MUST(found != nodes[1] && cuGraphNodeFindInClone(&found, found, other) == 1);
        CHECK(cuGraphNodeFindInClone(&found, nodes[1], other));
        CHECK(cuGraphKernelNodeSetParams_v2(found, &new));
        launch(instantiate(graph), 1);
        launch(instantiate(other), 1);
    } else if (is("child") || is("child-node")) {
        other = pair(fine, racy, nodes);
        CHECK(cuGraphCreate(&graph, 0));
        for (int i = 0; i < 2; i++) {
            if (is("child")) {
                CHECK(cuGraphAddChildGraphNode(&more[i], graph, 0, 0, other));
            } else {
                memset(&whole, 0, sizeof whole);
                whole.type = GRAPH;
                whole.child = other;
                CHECK(cuGraphAddNode_v2(&more[i], graph, 0, 0, 0, &whole));
            }
            CHECK(cuGraphChildGraphNodeGetGraph(more[i], &found));
            MUST(found != other && cuGraphDestroy(found) != 0);
        }
        MUST(cuGraphAddChildGraphNode(&found, graph, 0, 0, graph) != 0);
        CHECK(cuGraphDestroy(other));
        exec = instantiate(graph);
        CHECK(cuGraphDestroy(graph));
        launch(exec, 2);
    } else if (is("child-exec")) {
        other = pair(fine, fine, nodes);
        CHECK(cuGraphCreate(&graph, 0));
        CHECK(cuGraphAddChildGraphNode(&found, graph, 0, 0, other));
        exec = instantiate(graph);
        other = pair(fine, racy, nodes);
        CHECK(cuGraphExecChildGraphNodeSetParams(exec, found, other));
        MUST(cuGraphExecChildGraphNodeSetParams(exec, found, graph) != 0);
        launch(exec, 2);
    } else if (is("update") || is("update-v1")) {
        graph = pair(fine, fine, nodes);
        other = pair(fine, racy, more);
        exec = instantiate(graph);
        Update info = {7, 0, 0};
        if (is("update")) {
            CHECK(cuGraphExecUpdate_v2(exec, other, &info));
        } else {
            CHECK(cuGraphExecUpdate(exec, other, &found, &info.result));
        }
        MUST(info.result == 0);
        add(other, racy);
        MUST(cuGraphExecUpdate_v2(exec, other, &info) == 910 && info.result == 2);
        launch(exec, 1);
        /* The nodes of the first graph still name those of the executable one. */
        new = node(fine);
        CHECK(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &new));
        new = node(racy);
        CHECK(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &new));
        launch(exec, 1);
    } else if (is("many")) {
        for (int i = 0; i < MANY; i++) {
            graph = pair(fine, racy, nodes);
            exec = instantiate(graph);
            /* It is still in flight when the graphs are destroyed. */
            CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuGraphExecDestroy(exec));
            CHECK(cuGraphDestroy(graph));
        }
        CHECK(cuStreamSynchronize(stream));
    } else if (is("many-updates")) {
        Update info = {7, 0, 0};
        graph = pair(fine, racy, nodes);
        exec = instantiate(graph);
        for (int i = 0; i < MANY; i++) {
            other = pair(fine, racy, more);
            CHECK(cuGraphExecUpdate_v2(exec, other, &info));
            CHECK(cuGraphDestroy(other));
            launch(exec, 1);
        }
    } else if (is("again")) {
        /* What the graph has as a parameter is another graph's when it is made executable again. */
        H again;
        graph = pair(fine, racy, nodes);
        CHECK(cuGraphExecDestroy(instantiate(graph)));
        other = pair(fine, racy, more);
        exec = instantiate(other);
        again = instantiate(graph);
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuGraphLaunch(again, stream));
        launch(again, 1);
    } else if (is("captured")) {
        graph = pair(fine, racy, nodes);
        exec = instantiate(graph);
        CHECK(cuStreamBeginCapture_v2(stream, 0));
        CHECK(cuLaunchKernel(fine, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, to_many, 0));
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuGraphLaunch(exec, stream));
        CHECK(cuStreamEndCapture(stream, &other));
        launch(instantiate(other), 1);
    } else if (is("to-graph")) {
        CHECK(cuGraphCreate(&graph, 0));
        add(graph, fine);
        CHECK(cuStreamBeginCaptureToGraph(stream, graph, 0, 0, 0, 0));
        CHECK(cuLaunchKernel(racy, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, to_one, 0));
        CHECK(cuStreamEndCapture(stream, &other));
        MUST(other == graph);
        launch(instantiate(graph), 2);
    } else if (is("disabled")) {
        graph = pair(fine, racy, nodes);
        exec = instantiate(graph);
        unsigned enabled = 7;
        CHECK(cuGraphNodeSetEnabled(exec, nodes[1], 0));
        CHECK(cuGraphNodeGetEnabled(exec, nodes[1], &enabled));
        MUST(enabled == 0);
        launch(exec, 1);
        CHECK(cuGraphNodeSetEnabled(exec, nodes[1], 1));
        launch(exec, 1);
    } else if (is("destroyed")) {
        graph = pair(fine, racy, nodes);
        found = add(graph, racy);
        CHECK(cuGraphDestroyNode(found));
        launch(instantiate(graph), 2);
    } else if (is("get")) {
        graph = pair(fine, racy, nodes);
        found = add(graph, racy);
        CHECK(cuGraphKernelNodeGetParams_v2(nodes[0], &new));
        CHECK(cuGraphKernelNodeGetParams(nodes[0], &before));
        MUST(new.func == fine && new.gx == BLOCKS && new.bx == THREADS && before.func == fine);
        MUST(*(P *)new.params[0] == many && *(unsigned *)new.params[1] == 3);
        MUST(*(P *)before.params[0] == many);
        CHECK(cuGraphKernelNodeSetParams_v2(nodes[1], &new));
        launch(instantiate(graph), 1);
    } else {
        graph = pair(fine, fine, nodes);
        int after = is("exec-set") || is("exec-set-v1") || is("exec-node");
        exec = after ? instantiate(graph) : 0;
        if (is("exec-set"))
            CHECK(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &new));
        else if (is("exec-set-v1"))
            CHECK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &before));
        else if (is("exec-node"))
            CHECK(cuGraphExecNodeSetParams(exec, nodes[1], &whole));
        else if (is("set-v1"))
            CHECK(cuGraphKernelNodeSetParams(nodes[1], &before));
        else if (is("node") || is("node-v1"))
            CHECK(cuGraphNodeSetParams(nodes[1], &whole));
        else {
            new = node(racy);
            CHECK(cuGraphKernelNodeSetParams_v2(nodes[1], &new));
        }
        launch(after ? exec : instantiate(graph), 2);
    }
    static unsigned words[WORDS];
    CHECK(cuMemcpyDtoH_v2(words, many, sizeof words));
    unsigned sum = 0;
    for (int i = 0; i < WORDS; i++)
        sum += words[i];
    printf("%u\n", sum);
    fflush(stdout);
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
