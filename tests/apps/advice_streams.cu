// Work of different streams that nothing orders. What the report advises, the clean variant does, as it is said.
//
//@[clean] expect: no-race
//@[racy] expect: advised
//@[racy] says: help: record an event in stream #1 after the first operation (`cudaEventRecord`) and let stream #2 wait for it before the second operation (`cudaStreamWaitEvent`), or use one stream for both
//@[racy] says: help: record an event in stream #1 after the first operation (`cudaEventRecord`) and let stream #2 wait for it before the second operation (`cudaStreamWaitEvent`), or use one stream for both, or let the host wait between them (`cudaStreamSynchronize`)
//@[racy] says: help: record an event in the default stream after the first operation (`cudaEventRecord`) and let stream #2 wait for it before the second operation (`cudaStreamWaitEvent`), or use one stream for both; a stream made with `cudaStreamNonBlocking` and the default stream do not wait for each other
//@[racy] says: help: add an edge between the two nodes to the graph, or capture both operations in one stream
//@[racy] says: SUMMARY: cudarun-check: 5 races (5 errors)
#include "app.h"

const int kCount = 256;

#define KERNELS(name)                                                        \
    __global__ void write_##name(int *data)                                  \
    {                                                                        \
        data[threadIdx.x] = 3 * threadIdx.x;                                 \
    }                                                                        \
    __global__ void read_##name(const int *data, int *out)                   \
    {                                                                        \
        out[threadIdx.x] = data[kCount - 1 - threadIdx.x];                   \
    }

KERNELS(event)
KERNELS(stream)
KERNELS(copy)
KERNELS(default)
KERNELS(graph)

int main()
{
    int found[5][kCount];
    int *data[5], *out[5];
    cudaStream_t one, other;
    cudaEvent_t written;
    CHECK(cudaStreamCreate(&one));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&written));
    for (int i = 0; i < 5; i++) {
        CHECK(cudaMalloc(&data[i], sizeof found[i]));
        CHECK(cudaMalloc(&out[i], sizeof found[i]));
    }

    // An event.
    write_event<<<1, kCount, 0, one>>>(data[0]);
#ifndef RACY
    CHECK(cudaEventRecord(written, one));
    CHECK(cudaStreamWaitEvent(other, written, 0));
#endif
    read_event<<<1, kCount, 0, other>>>(data[0], out[0]);

    // One stream for both.
    write_stream<<<1, kCount, 0, one>>>(data[1]);
#ifdef RACY
    read_stream<<<1, kCount, 0, other>>>(data[1], out[1]);
#else
    read_stream<<<1, kCount, 0, one>>>(data[1], out[1]);
#endif

    // The host waits before it copies what a kernel writes.
    write_copy<<<1, kCount, 0, one>>>(data[2]);
#ifndef RACY
    CHECK(cudaStreamSynchronize(one));
#endif
    CHECK(cudaMemcpyAsync(out[2], data[2], sizeof found[2], cudaMemcpyDeviceToDevice, other));

    // The default stream and one that does not wait for it.
    write_default<<<1, kCount>>>(data[3]);
#ifndef RACY
    CHECK(cudaEventRecord(written));
    CHECK(cudaStreamWaitEvent(other, written, 0));
#endif
    read_default<<<1, kCount, 0, other>>>(data[3], out[3]);

    // Nodes of a graph.
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaGraphNode_t first, second;
    CHECK(cudaGraphCreate(&graph, 0));
    void *of_write[] = {&data[4]}, *of_read[] = {&data[4], &out[4]};
    cudaKernelNodeParams node = {};
    node.gridDim = 1, node.blockDim = kCount;
    node.func = (void *)write_graph, node.kernelParams = of_write;
    CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &node));
    node.func = (void *)read_graph, node.kernelParams = of_read;
#ifdef RACY
    CHECK(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &node));
#else
    CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &node));
#endif
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphLaunch(ready, one));

    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int n = 0; n < 5; n++) {
        CHECK(cudaMemcpy(found[n], out[n], sizeof found[n], cudaMemcpyDeviceToHost));
        for (int i = 0; i < kCount; i++) right &= found[n][i] == 3 * (n == 2 ? i : kCount - 1 - i);
    }
    return verdict(right);
}
