/* Relocatable device code as nvcc leaves it in a program: a wrapper with a fat binary for each translation unit.
   `racy` and `fine` are in one unit and call what is in another one, which also has the variable `word`; both
   units have a variable `mine` of their own. Prints what `fine` has left.
   The first argument says how it is loaded, the second one which units there are. */
#include "kernels.h"

CUresult cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H),
    cuCtxSynchronize(void), cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *),
    cuModuleGetGlobal_v2(P *, size_t *, H, const char *), cuModuleUnload(H),
    cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuLibraryGetGlobal(P *, size_t *, H, const char *), cuLibraryUnload(H),
    cuMemAlloc_v2(P *, size_t), cuMemFree_v2(P), cuMemsetD32_v2(P, unsigned, size_t),
    cuMemcpyDtoH_v2(void *, P, size_t), cuLinkCreate_v2(unsigned, int *, void **, H *),
    cuLinkAddData_v2(H, int, void *, size_t, const char *, unsigned, int *, void **),
    cuLinkComplete(H, void **, size_t *), cuLinkDestroy(H),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **, void **);

enum { BLOCKS = 2, THREADS = 64, WORDS = BLOCKS * THREADS, PTX = 1, ELF = 2 };

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char kernels[] = HEAD
    ".extern .func put(.param .u64 at, .param .u32 value);\n"
    ".extern .global .align 4 .u32 word;\n"
    ".global .align 4 .u32 mine = 0;\n"
    ".visible .entry racy(.param .u64 out) {\n"
    "    .reg .u64 %a; .reg .u32 %t;\n"
    "    ld.param.u64 %a, [out]; mov.u32 %t, %tid.x;\n"
    "    { .param .u64 p0; .param .u32 p1; st.param.u64 [p0], %a; st.param.u32 [p1], %t;\n"
    "    call.uni put, (p0, p1); } ret;\n}\n"
    ".visible .entry fine(.param .u64 out) {\n"
    "    .reg .u64 %a, %o; .reg .u32 %n, %m, %i, %c, %t;\n"
    "    ld.param.u64 %a, [out]; ld.global.u32 %n, [word]; ld.global.u32 %m, [mine]; add.u32 %n, %n, %m;\n"
    "    mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x;\n"
    "    mad.lo.u32 %i, %i, %c, %t; mul.wide.u32 %o, %i, 4; add.u64 %a, %a, %o;\n"
    "    ld.global.u32 %t, [%a]; add.u32 %t, %t, %n;\n"
    "    { .param .u64 p0; .param .u32 p1; st.param.u64 [p0], %a; st.param.u32 [p1], %t;\n"
    "    call.uni put, (p0, p1); } ret;\n}\n";

static const char functions[] = HEAD
    ".visible .global .align 4 .u32 word = 0;\n"
    ".global .align 4 .u32 mine = 1;\n"
    ".visible .func put(.param .u64 at, .param .u32 value) {\n"
    "    .reg .u64 %a; .reg .u32 %v, %m;\n"
    "    ld.param.u64 %a, [at]; ld.param.u32 %v, [value]; ld.global.u32 %m, [mine];\n"
    "    mul.lo.u32 %v, %v, %m; st.global.u32 [%a], %v; ret;\n}\n";

/* A kernel that launches a kernel, as far as the linker is concerned. */
static const char nested[] = HEAD
    ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 p, .param .b64 s);\n"
    ".visible .entry outer() {\n"
    "    { .param .b64 p0; .param .b64 p1; .param .b32 r; st.param.b64 [p0], 0; st.param.b64 [p1], 0;\n"
    "    call.uni (r), cudaLaunchDeviceV2, (p0, p1); } ret;\n}\n";

/* A kernel that sets the condition of a node of a graph, in the same way. */
static const char conditional[] = HEAD
    ".extern .func __cudaCDP2GraphSetConditional(.param .b64 handle, .param .b32 value);\n"
    ".visible .entry condition() {\n"
    "    { .param .b64 p0; .param .b32 p1; st.param.b64 [p0], 0; st.param.b32 [p1], 1;\n"
    "    call.uni __cudaCDP2GraphSetConditional, (p0, p1); } ret;\n}\n";

/* A fat binary with one entry of this kind, plain. */
static void *fat(unsigned short kind, const char *text, size_t bytes) {
    size_t padded = (bytes + 7) / 8 * 8;
    char *made = calloc(1, 16 + 64 + padded);
    uint32_t magic = 0xba55ed50, header = 64, sm = 70;
    uint16_t one = 1, sixteen = 16, version = 0x101;
    uint64_t all = 64 + padded, flags = 0x11;
    if (!made)
        exit(2);
    memcpy(made, &magic, 4), memcpy(made + 4, &one, 2), memcpy(made + 6, &sixteen, 2), memcpy(made + 8, &all, 8);
    char *entry = made + 16;
    memcpy(entry, &kind, 2), memcpy(entry + 2, &version, 2), memcpy(entry + 4, &header, 4);
    memcpy(entry + 8, &padded, 8), memcpy(entry + 28, &sm, 4), memcpy(entry + 40, &flags, 8);
    memcpy(entry + 64, text, bytes);
    return made;
}

static struct {
    uint32_t magic, version;
    void *data;
    void **units;
} wrapper = {0x466243b1, 2, 0, 0};

/* What the driver's linker makes of both texts, in memory of our own. */
static void *link_both(void) {
    void *image, *copy;
    size_t size;
    H link;
    CHECK(cuLinkCreate_v2(0, 0, 0, &link));
    CHECK(cuLinkAddData_v2(link, PTX, (void *)kernels, sizeof kernels, "kernels", 0, 0, 0));
    CHECK(cuLinkAddData_v2(link, PTX, (void *)functions, sizeof functions, "functions", 0, 0, 0));
    CHECK(cuLinkComplete(link, &image, &size));
    if (!(copy = malloc(size)))
        exit(2);
    memcpy(copy, image, size);
    CHECK(cuLinkDestroy(link));
    return copy;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    int library = !strcmp(argv[1], "library");
    void *units[5] = {fat(PTX, kernels, sizeof kernels)};
    if (!strcmp(argv[2], "both"))
        units[1] = fat(PTX, functions, sizeof functions);
    if (!strcmp(argv[2], "nested"))
        units[1] = fat(PTX, functions, sizeof functions), units[2] = fat(PTX, nested, sizeof nested);
    if (strstr(argv[2], "conditional")) {
        units[1] = fat(PTX, functions, sizeof functions);
        units[2] = fat(PTX, conditional, sizeof conditional);
    }
    if (!strcmp(argv[2], "nested-conditional"))
        units[3] = fat(PTX, nested, sizeof nested);
    if (!strcmp(argv[2], "machine-code"))
        units[1] = fat(ELF, functions, sizeof functions);
    wrapper.data = units[0], wrapper.units = units;
    int device;
    H context, loaded, racy, fine;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate_v2(&context, 0, device));
    P word, many;
    size_t bytes;
    if (library) {
        CHECK(cuLibraryLoadData(&loaded, &wrapper, 0, 0, 0, 0, 0, 0));
        CHECK(cuLibraryGetKernel(&racy, loaded, "racy"));
        CHECK(cuLibraryGetKernel(&fine, loaded, "fine"));
        CHECK(cuLibraryGetGlobal(&word, &bytes, loaded, "word"));
    } else {
        CHECK(cuModuleLoadData(&loaded, strcmp(argv[1], "link") ? &wrapper : link_both()));
        CHECK(cuModuleGetFunction(&racy, loaded, "racy"));
        CHECK(cuModuleGetFunction(&fine, loaded, "fine"));
        CHECK(cuModuleGetGlobal_v2(&word, &bytes, loaded, "word"));
    }
    MUST(bytes == 4);
    CHECK(cuMemsetD32_v2(word, 3, 1));
    CHECK(cuMemAlloc_v2(&many, 4 * WORDS));
    CHECK(cuMemsetD32_v2(many, 1, WORDS));
    for (int i = 0; i < 3; i++) {
        void *to_many[] = {&many}, *to_word[] = {&word};
        CHECK(cuLaunchKernel(fine, BLOCKS, 1, 1, THREADS, 1, 1, 0, 0, to_many, 0));
        CHECK(cuLaunchKernel(racy, BLOCKS, 1, 1, THREADS, 1, 1, 0, 0, to_word, 0));
        CHECK(cuCtxSynchronize());
        CHECK(cuMemsetD32_v2(word, 3, 1));
    }
    unsigned words[WORDS], sum = 0;
    CHECK(cuMemcpyDtoH_v2(words, many, sizeof words));
    for (int i = 0; i < WORDS; i++)
        sum += words[i];
    printf("%u\n", sum);
    CHECK(cuMemFree_v2(many));
    if (library)
        CHECK(cuLibraryUnload(loaded));
    else
        CHECK(cuModuleUnload(loaded));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
