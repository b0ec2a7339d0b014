/* Prints what the driver tells of kernels, and launches them. `waits` waits for another block. */
#include "both.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuModuleLoadData(H *, const void *),
    cuModuleGetFunction(H *, H, const char *), cuModuleUnload(H), cuLibraryLoadData(H *, const void *, int *, void **, unsigned, int *, void **, unsigned),
    cuLibraryGetKernel(H *, H, const char *), cuLibraryUnload(H), cuKernelGetFunction(H *, H),
    cuMemAlloc_v2(P *, size_t), cuMemsetD32_v2(P, unsigned, size_t), cuFuncGetAttribute(int *, int, H),
    cuFuncSetAttribute(H, int, int), cuKernelGetAttribute(int *, int, H, int), cuKernelSetAttribute(int, int, H, int),
    cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, H, int, size_t),
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *, H, int, size_t, unsigned),
    cuOccupancyMaxPotentialBlockSize(int *, int *, H, size_t (*)(int), size_t, int),
    cuOccupancyMaxPotentialBlockSizeWithFlags(int *, int *, H, size_t (*)(int), size_t, int, unsigned),
    cuOccupancyAvailableDynamicSMemPerBlock(size_t *, H, int, int), cuOccupancyMaxActiveClusters(int *, H, const Config *),
    cuOccupancyMaxPotentialClusterSize(int *, H, const Config *),
    cuLaunchCooperativeKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H, void **);

static const char waits[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".entry waits(.param .u64 out, .param .u32 n) {\n"
    "    .reg .u64 %a; .reg .u32 %n, %t; .reg .pred %p;\n"
    "    ld.param.u64 %a, [out]; ld.param.u32 %n, [n];\n"
    "    setp.eq.u32 %p, %n, 0; @%p ret;\n"
    "    atom.add.u32 %t, [%a], 1;\n"
    "again:\n"
    "    ld.volatile.global.u32 %t, [%a]; setp.lt.u32 %p, %t, %n; @%p bra again; ret;\n}\n";

/* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
enum { DYNAMIC = 8, LARGE = 100 << 10, MULTIPROCESSORS = 132 };

static size_t room(int threads) { return threads * 64; }

/* Attributes of a function and, where there is one, of the kernel that it is a function of. */
static void attributes(H func, H kernel) {
    for (int id = 0; id <= 7; id++) {
        int value, other;
        CHECK(cuFuncGetAttribute(&value, id, func));
        printf(" %d", value);
        if (kernel) {
            CHECK(cuKernelGetAttribute(&other, id, kernel, 0));
            MUST(value == other);
        }
    }
    printf("\n");
}

static void occupancy(H func) {
    Config config = {.gx = 1, .gy = 1, .gz = 1, .bx = 256, .by = 1, .bz = 1};
    size_t bytes;
    int blocks, grid, block;
    for (int threads = 64; threads <= 1024; threads *= 2) {
        CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, func, threads, 0));
        printf(" %d", blocks);
        CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, func, threads, LARGE, 1));
        printf("/%d", blocks);
    }
    CHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, func, 0, 0, 0));
    printf(" %d*%d", grid, block);
    CHECK(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, func, room, 0, 0, 0));
    printf(" %d*%d", grid, block);
    CHECK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, func, 2, 256));
    printf(" %zu", bytes);
    CHECK(cuOccupancyMaxActiveClusters(&blocks, func, &config));
    printf(" %d", blocks);
    CHECK(cuOccupancyMaxPotentialClusterSize(&blocks, func, &config));
    printf(" %d\n", blocks);
}

int main(int argc, char **argv) {
    const char *form = argc > 1 ? argv[1] : "module";
    char image[sizeof ptx];
    H context, module, library, racy, fine, kernel = 0;
    P one, many;
    memcpy(image, ptx, sizeof ptx);
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuMemAlloc_v2(&one, 4));
    if (!strcmp(form, "waits")) {
        /* As many blocks as there may be at once, which the driver has to take. They need not wait. */
        int blocks;
        unsigned nobody = 0;
        CHECK(cuModuleLoadData(&module, waits));
        CHECK(cuModuleGetFunction(&fine, module, "waits"));
        attributes(fine, 0);
        CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fine, 256, 0));
        unsigned all = blocks * MULTIPROCESSORS;
        CHECK(cuMemsetD32_v2(one, 0, 1));
        void *params[] = {&one, &nobody};
        CHECK(cuLaunchCooperativeKernel(fine, all, 1, 1, 256, 1, 1, 0, 0, params));
        CHECK(cuCtxSynchronize());
        return 0;
    }
    if (!strcmp(form, "module")) {
        CHECK(cuModuleLoadData(&module, image));
        CHECK(cuModuleGetFunction(&racy, module, "racy"));
        CHECK(cuModuleGetFunction(&fine, module, "fine"));
    } else {
        CHECK(cuLibraryLoadData(&library, image, 0, 0, 0, 0, 0, 0));
        CHECK(cuLibraryGetKernel(&racy, library, "racy"));
        CHECK(cuLibraryGetKernel(&kernel, library, "fine"));
        CHECK(cuKernelGetFunction(&fine, kernel));
    }
    /* The driver has a copy of it. */
    memset(image, 0, sizeof image);
    attributes(fine, kernel);
    occupancy(kernel ? kernel : fine);
    if (kernel)
        CHECK(cuKernelSetAttribute(DYNAMIC, LARGE, kernel, 0));
    else
        CHECK(cuFuncSetAttribute(fine, DYNAMIC, LARGE));
    occupancy(fine);
    CHECK(cuMemAlloc_v2(&many, 4 * COUNT));
    CHECK(cuMemsetD32_v2(many, 1, COUNT));
    printf("%u\n", run_both(racy, fine, one, many));
    if (kernel)
        CHECK(cuLibraryUnload(library));
    else
        CHECK(cuModuleUnload(module));
    return 0;
}
