/* A program of the driver API, as a user would write it: PTX text in, results out.
   It prints "ok" at the end, and the failed line otherwise. Prototypes stand here so that no
   toolkit is needed to build it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int CUresult;
typedef void *H;
typedef uint64_t P;
CUresult cuInit(unsigned), cuDriverGetVersion(int *), cuDeviceGetCount(int *),
    cuDeviceGet(int *, int), cuDeviceGetName(char *, int, int),
    cuDeviceGetAttribute(int *, int, int), cuCtxCreate_v2(H *, unsigned, int),
    cuCtxDestroy_v2(H), cuCtxSynchronize(void), cuCtxSynchronize_v2(H), cuModuleLoadData(H *, const void *),
    cuModuleUnload(H), cuModuleGetFunction(H *, H, const char *),
    cuModuleGetGlobal_v2(P *, size_t *, H, const char *), cuMemAlloc_v2(P *, size_t),
    cuMemFree_v2(P), cuMemAllocManaged(P *, size_t, unsigned), cuMemAllocHost_v2(void **, size_t),
    cuMemFreeHost(void *), cuMemcpyHtoD_v2(P, const void *, size_t),
    cuMemcpyDtoH_v2(void *, P, size_t), cuMemsetD32_v2(P, unsigned, size_t),
    cuMemHostRegister_v2(void *, size_t, unsigned), cuMemHostUnregister(void *),
    cuStreamCreate(H *, unsigned), cuStreamSynchronize(H), cuStreamDestroy_v2(H),
    cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *),
    cuGraphInstantiateWithFlags(H *, H, unsigned long long), cuGraphLaunch(H, H),
    cuEventCreate(H *, unsigned), cuEventRecord(H, H), cuEventElapsedTime(float *, H, H),
    cuLaunchHostFunc(H, void (*)(void *), void *), cuGetErrorName(CUresult, const char **),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H,
                   void **, void **),
    cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *),
    cuFuncGetAttribute(int *, int, H), cuDevicePrimaryCtxRetain(H *, int),
    cuDevicePrimaryCtxReset_v2(int), cuCtxSetCurrent(H),
    cuFuncGetParamInfo(H, size_t, size_t *, size_t *);

static const char *const ptx =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 bias = 5;\n"
    ".visible .entry add(.param .u64 out, .param .u32 n, .param .u32 x) {\n"
    "    .reg .u64 %a, %o; .reg .u32 %n, %x, %i, %c, %t, %b; .reg .pred %p;\n"
    "    ld.param.u64 %a, [out]; ld.param.u32 %n, [n]; ld.param.u32 %x, [x];\n"
    "    mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x;\n"
    "    mad.lo.u32 %i, %i, %c, %t;\n"
    "    setp.ge.u32 %p, %i, %n; @%p bra done;\n"
    "    mul.wide.u32 %o, %i, 4; add.u64 %a, %a, %o;\n"
    "    ld.global.u32 %b, [bias]; ld.global.u32 %t, [%a];\n"
    "    add.u32 %t, %t, %x; add.u32 %t, %t, %b; add.u32 %t, %t, %i;\n"
    "    st.global.u32 [%a], %t;\n"
    "done: ret;\n}\n"
    ".visible .entry stray() {\n"
    "    .reg .u64 %a; mov.u64 %a, 64; st.global.u32 [%a], 1; ret;\n}\n";

#define CHECK(e)                                                                                  \
    do {                                                                                          \
        CUresult r_ = (e);                                                                        \
        if (r_) {                                                                                 \
            const char *n_ = "?";                                                                 \
            cuGetErrorName(r_, &n_);                                                              \
            printf("line %d: %s = %s\n", __LINE__, #e, n_);                                       \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)
#define EXPECT(c)                                                                                 \
    do {                                                                                          \
        if (!(c)) {                                                                               \
            printf("line %d: %s\n", __LINE__, #c);                                                \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static void count(void *n) { ++*(int *)n; }

int main(void) {
    H context, module, add, stream, graph, exec, first, second;
    int n = 1000, x = 7, device, value;
    char name[64];
    EXPECT(cuDeviceGetCount(&n) == 3);
    CHECK(cuInit(0));
    n = 1000;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDeviceGetAttribute(&value, 75, device));
    EXPECT(value == 9);
    EXPECT(cuMemAlloc_v2((P *)&value, 4) == 201);
    CHECK(cuCtxCreate_v2(&context, 0, device));
    EXPECT(cuModuleLoadData(&module, "nonsense") == 200);
    static const char elf[64] = "\177ELF\2\1\1";
    EXPECT(cuModuleLoadData(&module, elf) == 209);
    CHECK(cuModuleLoadData(&module, ptx));
    EXPECT(cuModuleGetFunction(&add, module, "nothing") == 500);
    CHECK(cuModuleGetFunction(&add, module, "add"));
    CHECK(cuFuncGetAttribute(&value, 0, add));
    EXPECT(value == 1024);
    size_t offset, size;
    CHECK(cuFuncGetParamInfo(add, 2, &offset, &size));
    EXPECT(offset == 12 && size == 4);
    EXPECT(cuFuncGetParamInfo(add, 3, &offset, &size) == 1);

    /* Parameters by pointers, and by a packed buffer. */
    P out, bias;
    CHECK(cuModuleGetGlobal_v2(&bias, &size, module, "bias"));
    EXPECT(size == 4);
    CHECK(cuMemAlloc_v2(&out, n * 4));
    CHECK(cuMemsetD32_v2(out, 100, n));
    void *params[] = {&out, &n, &x};
    CHECK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    struct { P out; int n, x; } packed = {out, n, 1};
    size_t packed_size = sizeof packed;
    void *extra[] = {(void *)1, &packed, (void *)2, &packed_size, NULL};
    CHECK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
    CHECK(cuCtxSynchronize());
    int *host = malloc(n * 4);
    CHECK(cuMemcpyDtoH_v2(host, out, n * 4));
    for (int i = 0; i < n; i++) EXPECT(host[i] == 100 + 7 + 5 + i + 1 + 5 + i);

    /* What a driver refuses. */
    EXPECT(cuLaunchKernel(add, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL) == 1);
    EXPECT(cuLaunchKernel(add, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL) == 1);
    EXPECT(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 1 << 20, NULL, params, NULL) == 1);
    EXPECT(cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) == 1);
    EXPECT(cuLaunchKernel((H)host, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) == 400);
    EXPECT(cuMemcpyDtoH_v2(host, out, n * 4 + 4) == 1);

    /* Managed, pinned and registered memory have one address on both sides. */
    int zero = 0;
    CHECK(cuMemcpyHtoD_v2(bias, &zero, 4));
    x = 3;
    P managed;
    void *pinned;
    CHECK(cuMemAllocManaged(&managed, n * 4, 1));
    CHECK(cuMemAllocHost_v2(&pinned, n * 4));
    memset(host, 0, n * 4);
    CHECK(cuMemHostRegister_v2(host, n * 4, 2));
    P places[] = {managed, (P)pinned, (P)host};
    for (int p = 0; p < 3; p++) {
        ((int *)places[p])[9] = 1000;
        void *to[] = {&places[p], &n, &x};
        CHECK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, NULL, to, NULL));
        CHECK(cuCtxSynchronize());
        for (int i = 0; i < n; i++)
            EXPECT(((int *)places[p])[i] == 3 + i + (i == 9 ? 1000 : 0));
    }
    CHECK(cuMemHostUnregister(host));
    CHECK(cuMemFree_v2(managed));
    CHECK(cuMemFreeHost(pinned));

    /* Streams, events, host functions, graphs. */
    int calls = 0;
    float elapsed = -1;
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuEventCreate(&first, 0));
    CHECK(cuEventCreate(&second, 0));
    CHECK(cuEventRecord(first, stream));
    CHECK(cuLaunchHostFunc(stream, count, &calls));
    EXPECT(calls == 1);
    CHECK(cuEventRecord(second, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuEventElapsedTime(&elapsed, first, second));
    EXPECT(elapsed >= 0);
    CHECK(cuMemsetD32_v2(out, 0, n));
    CHECK(cuStreamBeginCapture_v2(stream, 2));
    CHECK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, stream, params, NULL));
    CHECK(cuLaunchHostFunc(stream, count, &calls));
    EXPECT(cuStreamSynchronize(stream) == 900);
    CHECK(cuStreamEndCapture(stream, &graph));
    EXPECT(calls == 1);
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 3; i++) CHECK(cuGraphLaunch(exec, stream));
    EXPECT(calls == 4);
    CHECK(cuMemcpyDtoH_v2(host, out, n * 4));
    for (int i = 0; i < n; i++) EXPECT(host[i] == 3 * (3 + i));
    CHECK(cuStreamDestroy_v2(stream));

    /* Entry points by name. */
    CUresult (*version)(int *) = NULL;
    CHECK(cuGetProcAddress_v2("cuDriverGetVersion", (void **)&version, 13000, 0, &value));
    CHECK(version(&value));
    EXPECT(value >= 13000);

    /* A child gets errors, and does not hang. */
    fflush(stdout);
    pid_t child = fork();
    if (!child) _exit(cuCtxSynchronize() == 3 && cuMemFree_v2(out) == 3 ? 0 : 1);
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);

    /* A fault ends the context, and only the context. */
    CHECK(cuModuleGetFunction(&add, module, "stray"));
    CHECK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(cuCtxSynchronize() == 700);
    EXPECT(cuCtxSynchronize_v2(context) == 700);
    EXPECT(cuCtxSynchronize_v2((H)16) == 201);
    EXPECT(cuMemAlloc_v2(&out, 4) == 700);
    CHECK(cuCtxDestroy_v2(context));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&add, module, "stray"));
    CHECK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(cuCtxSynchronize() == 700);
    CHECK(cuDevicePrimaryCtxReset_v2(device));
    CHECK(cuCtxSynchronize());
    CHECK(cuCtxSynchronize_v2(context));
    CHECK(cuMemAlloc_v2(&out, 4));
    puts("ok");
    return 0;
}
