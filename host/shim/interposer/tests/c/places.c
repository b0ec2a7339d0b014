/* Launches kernels on memory of the host, of a kind that the argument names, and on memory of the device, which lies far
   from it and is larger: in `racy` all threads store to one word, in `fine` each adds to its own, in `both` all threads
   store to a word of each. Prints what `fine` has left. */
#include "kernels.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSynchronize(void), cuCtxDestroy_v2(H),
    cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *), cuMemAlloc_v2(P *, size_t),
    cuMemFree_v2(P), cuMemHostAlloc(void **, size_t, unsigned), cuMemFreeHost(void *),
    cuMemHostRegister_v2(void *, size_t, unsigned), cuMemHostUnregister(void *),
    cuMemHostGetDevicePointer_v2(P *, void *, unsigned),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

enum { COUNT = 128, BYTES = 4096, MUCH = 1 << 20 };

static const char both_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                               ".entry both(.param .u64 near, .param .u64 far) {\n"
                               "    .reg .u64 %a, %b; .reg .u32 %t;\n"
                               "    ld.param.u64 %a, [near]; ld.param.u64 %b, [far]; mov.u32 %t, %tid.x;\n"
                               "    st.global.u32 [%a], %t; st.global.u32 [%b], %t; ret;\n}\n";

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "registered";
    H context, module, other, racy, fine, both;
    P one, near;
    void *host;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleLoadData(&other, both_ptx));
    CHECK(cuModuleGetFunction(&racy, module, "racy"));
    CHECK(cuModuleGetFunction(&fine, module, "fine"));
    CHECK(cuModuleGetFunction(&both, other, "both"));
    CHECK(cuMemAlloc_v2(&near, MUCH));
    if (!strcmp(kind, "registered")) {
        host = aligned_alloc(4096, BYTES);
        MUST(host);
        CHECK(cuMemHostRegister_v2(host, BYTES, 2));
    } else {
        CHECK(cuMemHostAlloc(&host, BYTES, 2));
    }
    CHECK(cuMemHostGetDevicePointer_v2(&one, host, 0));
    unsigned *words = host, n = 3, sum = 0;
    for (int i = 0; i <= COUNT; i++)
        words[i] = 1;
    P many = one + 4;
    void *of_racy[] = {&one, &n}, *of_fine[] = {&many, &n}, *of_both[] = {&near, &one};
    CHECK(cuLaunchKernel(racy, 2, 1, 1, 64, 1, 1, 0, 0, of_racy, 0));
    CHECK(cuLaunchKernel(fine, 2, 1, 1, 64, 1, 1, 0, 0, of_fine, 0));
    CHECK(cuLaunchKernel(both, 2, 1, 1, 64, 1, 1, 0, 0, of_both, 0));
    CHECK(cuCtxSynchronize());
    for (int i = 1; i <= COUNT; i++)
        sum += words[i];
    printf("%u\n", sum);
    if (!strcmp(kind, "registered")) {
        CHECK(cuMemHostUnregister(host));
        free(host);
    } else {
        CHECK(cuMemFreeHost(host));
    }
    CHECK(cuMemFree_v2(near));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
