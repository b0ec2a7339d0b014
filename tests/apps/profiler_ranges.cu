// NVTX: ranges, marks and names; the checker listens as a profiler does.
//@ variants: clean
//@ expect: no-race
//@ nvcc: -std=c++17
#include "app.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvtx3.hpp>

__global__ void fill(int *data) { data[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }

static void launch(int *data, int blocks) {
    nvtx3::scoped_range range{"launch"};
    fill<<<blocks, 64>>>(data);
    CHECK(cudaDeviceSynchronize());
}

int main() {
    const int blocks = 4;
    int *data;
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = 0xff00ff00;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "whole";
    nvtxRangeId_t whole = nvtxRangeStartEx(&attributes);
    nvtxDomainHandle_t domain = nvtxDomainCreateA("app");
    nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "registered");
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = registered;
    nvtxNameOsThreadA(0, "main");
    int outer = nvtxRangePushA("outer");
    int inner = nvtxDomainRangePushEx(domain, &attributes);
    CHECK(cudaMallocManaged(&data, blocks * 64 * sizeof(int)));
    nvtxMarkA("before");
    launch(data, blocks);
    nvtxMarkEx(&attributes);
    int popped = nvtxDomainRangePop(domain);
    nvtxRangePop();
    nvtxRangeEnd(whole);
    nvtxDomainDestroy(domain);
    bool right = true;
    for (int i = 0; i < blocks * 64; i++) right &= data[i] == i % 64;
    // The level within the domain; without a listener every range says that there is none.
    bool listened = outer == 0 || outer == NVTX_NO_PUSH_POP_TRACKING;
    return verdict(right && listened && inner == outer && popped == outer);
}
