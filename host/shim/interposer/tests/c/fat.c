/* Loads a fat binary as a library and launches two kernels: in `racy` all threads store to one word, in `fine` each adds to
   its own. Prints what `fine` has left. Then launches a graph twice that has `racy` in it. The arguments say what is in it: `p70` is PTX for compute_70, `m75` what stands for
   machine code for sm_75. */
#include "both.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxDestroy_v2(H),
    cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryLoadFromFile(H *, const char *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuMemAlloc_v2(P *, size_t), cuMemsetD32_v2(P, unsigned, size_t),
    cuStreamCreate(H *, unsigned), cuStreamBeginCapture_v2(H, int), cuStreamEndCapture(H, H *),
    cuGraphInstantiateWithFlags(H *, H, unsigned long long), cuGraphLaunch(H, H), cuGraphExecDestroy(H);

static char image[1 << 16];
static size_t bytes = 16;

static void add(const char *what) {
    size_t padded = (sizeof ptx + 7) / 8 * 8;
    uint32_t header = 64, sm = atoi(what + 1);
    uint16_t kind = *what == 'p' ? 1 : 2, version = 0x101;
    uint64_t flags = 0x11;
    char *entry = image + bytes;
    MUST(bytes + header + padded <= sizeof image);
    memcpy(entry, &kind, 2), memcpy(entry + 2, &version, 2), memcpy(entry + 4, &header, 4);
    memcpy(entry + 8, &padded, 8), memcpy(entry + 28, &sm, 4), memcpy(entry + 40, &flags, 8);
    memcpy(entry + 64, ptx, sizeof ptx);
    bytes += header + padded;
}

int main(int argc, char **argv) {
    uint32_t magic = 0xba55ed50;
    uint16_t one_ = 1, sixteen = 16;
    /* The first argument is the name of a file, or nothing. */
    for (int i = 2; i < argc; i++)
        add(argv[i]);
    uint64_t all = bytes - 16;
    memcpy(image, &magic, 4), memcpy(image + 4, &one_, 2), memcpy(image + 6, &sixteen, 2), memcpy(image + 8, &all, 8);
    H context, library, racy, fine;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    if (*argv[1]) {
        FILE *file = fopen(argv[1], "w");
        MUST(file && fwrite(image, 1, bytes, file) == bytes && !fclose(file));
        CHECK(cuLibraryLoadFromFile(&library, argv[1], 0, 0, 0, 0, 0, 0));
    } else {
        CHECK(cuLibraryLoadData(&library, image, 0, 0, 0, 0, 0, 0));
    }
    CHECK(cuLibraryGetKernel(&racy, library, "racy"));
    CHECK(cuLibraryGetKernel(&fine, library, "fine"));
    P one, many;
    CHECK(cuMemAlloc_v2(&one, 4));
    CHECK(cuMemAlloc_v2(&many, 4 * COUNT));
    CHECK(cuMemsetD32_v2(many, 1, COUNT));
    printf("%u\n", run_both(racy, fine, one, many));
    H stream, graph, exec;
    unsigned n = 3;
    void *params[] = {&one, &n};
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamBeginCapture_v2(stream, 1));
    CHECK(cuLaunchKernel(racy, 2, 1, 1, COUNT / 2, 1, 1, 0, stream, params, 0));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuCtxSynchronize());
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuCtxDestroy_v2(context));
    return 0;
}
