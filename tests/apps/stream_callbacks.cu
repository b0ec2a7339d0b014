// What streams do besides kernels: calls on the host, priorities, attributes, events with and without
// times, and profiler calls, which have no tool to go to.
//@ variants: clean
//@[clean] expect: no-race
#include "app.h"

// As cuda_profiler_api.h, which is not part of every toolkit.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

__global__ void fill(int *data, int value) { data[threadIdx.x] = value; }

struct Seen {
    int *host;
    int calls;
    int value;
    cudaError_t status;
};

void call(void *data) {
    Seen *seen = static_cast<Seen *>(data);
    seen->calls++;
    seen->value = seen->host[31];
}

void CUDART_CB callback(cudaStream_t, cudaError_t status, void *data) {
    Seen *seen = static_cast<Seen *>(data);
    seen->calls += 10;
    seen->status = status;
}

int main() {
    bool right = true;
    int *data, *host;
    CHECK(cudaMalloc(&data, 32 * sizeof(int)));
    CHECK(cudaMallocHost(&host, 32 * sizeof(int)));
    int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    right = right && greatest < least;
    cudaStream_t stream, copy;
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
    CHECK(cudaStreamCreate(&copy));
    int priority;
    unsigned flags;
    CHECK(cudaStreamGetPriority(stream, &priority));
    CHECK(cudaStreamGetFlags(stream, &flags));
    right = right && priority == greatest && flags == cudaStreamNonBlocking;
    unsigned long long one, two;
    CHECK(cudaStreamGetId(stream, &one));
    CHECK(cudaStreamGetId(copy, &two));
    right = right && one != two;
    cudaStreamAttrValue value = {};
    value.syncPolicy = cudaSyncPolicySpin;
    CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
    CHECK(cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
    CHECK(cudaStreamCopyAttributes(copy, stream));

    CHECK(cudaProfilerStart());
    cudaEvent_t start, end, plain;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
    CHECK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    CHECK(cudaEventRecord(start, stream));
    fill<<<1, 32, 0, stream>>>(data, 7);
    CHECK(cudaMemcpyAsync(host, data, 32 * sizeof(int), cudaMemcpyDeviceToHost, stream));
    Seen seen = {host, 0, 0, cudaErrorUnknown};
    CHECK(cudaLaunchHostFunc(stream, call, &seen));
    CHECK(cudaStreamAddCallback(stream, callback, &seen, 0));
    CHECK(cudaEventRecordWithFlags(end, stream, 0));
    CHECK(cudaEventRecord(plain, stream));
    CHECK(cudaStreamWaitEvent(copy, end, 0));
    CHECK(cudaStreamSynchronize(copy));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaStreamQuery(stream));
    CHECK(cudaStreamSynchronize(stream));
    right = right && seen.calls == 11 && seen.value == 7 && seen.status == cudaSuccess;
    float time = -1;
    CHECK(cudaEventElapsedTime(&time, start, end));
    right = right && time >= 0;
    right = right && cudaEventElapsedTime(&time, start, plain) == cudaErrorInvalidResourceHandle;
    cudaGetLastError();
    CHECK(cudaProfilerStop());
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaEventDestroy(plain));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(copy));
    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(data));
    return verdict(right);
}
