// Graphs with conditional nodes: if and else, while, and switch, whose values kernels set; one inside the other; and
// launched twice, with a default.
// Racy: the body of the loop runs two kernels that write the same words, in no order.
//@[clean] expect: no-race
//@[racy] expect: race
//@ nvcc: -cudart shared -arch=sm_90 -rdc=true -lcudadevrt
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[clean] not-as-on-gpu: the simulated driver's runtime of the device is not linked to what the interposer loads
//@[racy] not-as-on-gpu: the simulated driver's runtime of the device is not linked to what the interposer loads
#include "app.h"

const int n = 64;

__global__ void count_down(int *left, cudaGraphConditionalHandle again) {
    *left -= 1;
    cudaGraphSetConditional(again, *left > 0);
}

__global__ void add(int *sum, int value) {
    sum[threadIdx.x] += value;  //~ race A
}

__global__ void twice(int *sum) {
    sum[threadIdx.x] *= 2;  //~ race A
}

__global__ void choose(const int *which, cudaGraphConditionalHandle one, cudaGraphConditionalHandle other) {
    cudaGraphSetConditional(one, *which);
    cudaGraphSetConditional(other, *which);
}

__global__ void put(int *to, int value) { *to = value; }

static cudaGraphNode_t kernel(cudaGraph_t graph, cudaGraphNode_t *after, int count, void *function, void **args, int threads) {
    cudaGraphNode_t node;
    cudaKernelNodeParams params = {};
    params.func = function;
    params.gridDim = 1;
    params.blockDim = threads;
    params.kernelParams = args;
    CHECK(cudaGraphAddKernelNode(&node, graph, after, count, &params));
    return node;
}

// Adds a conditional node; its graphs.
static cudaGraph_t *conditional(cudaGraph_t graph, cudaGraphNode_t *node, cudaGraphNode_t *after, int count,
                                cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, unsigned size) {
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddNode(node, graph, after, nullptr, count, &params));
#else
    CHECK(cudaGraphAddNode(node, graph, after, count, &params));
#endif
    return params.conditional.phGraph_out;
}

int main() {
    int *left, *sum, *which, *out;
    CHECK(cudaMalloc(&left, sizeof *left));
    CHECK(cudaMalloc(&sum, n * sizeof *sum));
    CHECK(cudaMalloc(&which, sizeof *which));
    CHECK(cudaMalloc(&out, 4 * sizeof *out));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    // While *left > 0, sum = 2 * (sum + 3).
    cudaGraph_t loop;
    CHECK(cudaGraphCreate(&loop, 0));
    cudaGraphConditionalHandle again;
    CHECK(cudaGraphConditionalHandleCreate(&again, loop, 1, cudaGraphCondAssignDefault));
    cudaGraphNode_t node;
    cudaGraph_t body = conditional(loop, &node, nullptr, 0, again, cudaGraphCondTypeWhile, 1)[0];
    int three = 3;
    void *adds[] = {&sum, &three}, *doubles[] = {&sum}, *counts[] = {&left, &again};
    cudaGraphNode_t first = kernel(body, nullptr, 0, (void *)add, adds, n);
#ifdef RACY
    cudaGraphNode_t second = kernel(body, nullptr, 0, (void *)twice, doubles, n);
#else
    cudaGraphNode_t second = kernel(body, &first, 1, (void *)twice, doubles, n);
#endif
    cudaGraphNode_t both[] = {first, second};
    kernel(body, both, 2, (void *)count_down, counts, 1);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, loop, 0));
    CHECK(cudaGraphDestroy(loop));
    bool right = true;
    for (int rounds = 1; rounds <= 3; rounds += 2) {
        int host[n], want = 0;
        CHECK(cudaMemcpy(left, &rounds, sizeof rounds, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(sum, 0, sizeof host));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(host, sum, sizeof host, cudaMemcpyDeviceToHost));
        for (int round = 0; round < rounds; round++) want = 2 * (want + 3);
        for (int value : host) right &= value == want;
    }

    // If and else, and a switch in it: what 0 to 3 leave.
    cudaGraph_t choices;
    CHECK(cudaGraphCreate(&choices, 0));
    cudaGraphConditionalHandle one, other;
    CHECK(cudaGraphConditionalHandleCreate(&one, choices, 0, 0));
    CHECK(cudaGraphConditionalHandleCreate(&other, choices, 0, 0));
    void *chooses[] = {&which, &one, &other};
    cudaGraphNode_t chosen = kernel(choices, nullptr, 0, (void *)choose, chooses, 1);
    cudaGraph_t *bodies = conditional(choices, &node, &chosen, 1, one, cudaGraphCondTypeIf, 2);
    cudaGraph_t yes = bodies[0], no = bodies[1];
    bodies = conditional(yes, &node, nullptr, 0, other, cudaGraphCondTypeSwitch, 3);
    for (int value = 0; value < 3; value++) {
        int *to = out + 1;
        void *puts[] = {&to, &value};
        kernel(bodies[value], nullptr, 0, (void *)put, puts, 1);
    }
    int ten = 10;
    void *puts[] = {&out, &ten};
    kernel(no, nullptr, 0, (void *)put, puts, 1);
    cudaGraphExec_t choice;
    CHECK(cudaGraphInstantiate(&choice, choices, 0));
    const int wants[4][2] = {{10, -1}, {-1, 1}, {-1, 2}, {-1, -1}};
    for (int value = 0; value < 4; value++) {
        int host[2];
        CHECK(cudaMemcpy(which, &value, sizeof value, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(out, 0xff, sizeof host));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaGraphLaunch(choice, stream));
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
        right &= host[0] == wants[value][0] && host[1] == wants[value][1];
    }
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(node, &type));
    right &= type == cudaGraphNodeTypeConditional;
    CHECK(cudaGraphExecDestroy(choice));
    CHECK(cudaGraphDestroy(choices));
    CHECK(cudaGraphExecDestroy(exec));
    return verdict(right);
}
