// A capture forks to a second stream and joins it again; then the stream, the events or both are destroyed before the
// capture ends. The second stream is made before the capture, or in it.
// Racy: the fork's two branches write the same words.
//@[clean] expect: no-race
//@[racy] expect: race
//@[racy] unseen-in-fast: races between launches of different streams were not looked for everywhere
//@[racy] not-as-on-gpu: races between launches are looked for by listening to the simulated device
#include "app.h"

__global__ void begin(int *out) { out[threadIdx.x] = threadIdx.x; }

__global__ void left_branch(int *out) {
    out[threadIdx.x] += 1;  //~ race A
}

__global__ void right_branch(int *out) {
    out[threadIdx.x] = 2 * threadIdx.x;  //~ race A
}

__global__ void end(const int *out, const int *other, int *sum) { sum[threadIdx.x] = out[threadIdx.x] + other[threadIdx.x]; }

int main() {
    const int n = 64;
    bool right = true;
    int *out, *sum;
    CHECK(cudaMalloc(&out, 2 * n * sizeof *out));
    CHECK(cudaMalloc(&sum, n * sizeof *sum));
#ifdef RACY
    int *other = out;
#else
    int *other = out + n;
#endif
    for (int what = 0; what < 8; what++) {
        bool stream = what & 1, events = what & 2, late = what & 4;
        cudaStream_t one, two;
        cudaEvent_t fork, join;
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
        if (!late) CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
        CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
        if (late) CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&fork));
        CHECK(cudaEventCreate(&join));
        begin<<<1, n, 0, one>>>(out);
        CHECK(cudaEventRecord(fork, one));
        CHECK(cudaStreamWaitEvent(two, fork, 0));
        left_branch<<<1, n, 0, one>>>(out);
        right_branch<<<1, n, 0, two>>>(other);
        CHECK(cudaEventRecord(join, two));
        CHECK(cudaStreamWaitEvent(one, join, 0));
        end<<<1, n, 0, one>>>(out, other, sum);
        if (stream) CHECK(cudaStreamDestroy(two));
        if (events) {
            CHECK(cudaEventDestroy(fork));
            CHECK(cudaEventDestroy(join));
        }
        CHECK(cudaStreamEndCapture(one, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        CHECK(cudaGraphLaunch(exec, one));
        CHECK(cudaStreamSynchronize(one));
#ifndef RACY
        int host[n];
        CHECK(cudaMemcpy(host, sum, sizeof host, cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++) right &= host[i] == i + 1 + 2 * i;
#endif
        CHECK(cudaGraphExecDestroy(exec));
        CHECK(cudaGraphDestroy(graph));
        if (!stream) CHECK(cudaStreamDestroy(two));
        CHECK(cudaStreamDestroy(one));
    }

    // A stream that has not been joined is missed even if it is gone.
    cudaStream_t one, two;
    cudaEvent_t fork;
    cudaGraph_t graph;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CHECK(cudaEventRecord(fork, one));
    CHECK(cudaStreamWaitEvent(two, fork, 0));
    right_branch<<<1, n, 0, two>>>(out);
    CHECK(cudaStreamDestroy(two));
    right &= cudaStreamEndCapture(one, &graph) == cudaErrorStreamCaptureUnjoined;
    cudaGetLastError();
    CHECK(cudaDeviceSynchronize());
    return verdict(right);
}
