/* A program of the driver API that launches the kernels that its arguments name, in two blocks that race, and waits
   for each. An argument `+NAME` pushes a range of NVTX, `-` pops it, `*NAME` starts one. Behind `=NAME` kernels are
   launched into a new stream of that name, which waits for nobody. */
#include <dlfcn.h>

#include "calls.h"
#include "choice.h"

static H stream;

__attribute__((noinline)) static CUresult launch(H kernel, void **params) {
    CUresult result = cuLaunchKernel(kernel, 2, 1, 1, 1, 1, 1, 0, stream, params, NULL);
    __asm__ volatile("" ::: "memory");
    return result;
}

/* What nvtx3's headers do on their first call, for the functions used here. */
typedef int (*Push)(const char *);
typedef int (*Pop)(void);
typedef uint64_t (*Start)(const char *);
typedef void (*Name)(H, const char *);
typedef void (*Function)(void);
static Function functions[17], *slots[17], slots_of_core2[17], *core2[17], names[17], *cuda[17];

static int table(int module, Function ***out, unsigned *size) {
    for (int n = 0; n < 17; n++) {
        slots[n] = &functions[n];
        core2[n] = &slots_of_core2[n];
        cuda[n] = &names[n];
    }
    *out = module == 1 ? slots : module == 2 ? cuda : core2;
    *size = 17;
    return module == 1 || module == 2 || module == 5;
}

static struct {
    size_t size;
    int (*table)(int, Function ***, unsigned *);
} callbacks = {sizeof callbacks, table};

static const void *get(uint32_t id) { return id == 1 ? &callbacks : NULL; }

static void load_nvtx(void) {
    int (*init)(const void *(*)(uint32_t));
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    if (library && (*(void **)&init = dlsym(library, "InitializeInjectionNvtx2")))
        init(get);
}

int main(int argc, char **argv) {
    H context, module, kernel;
    P word;
    void *params[] = {&word};
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuMemAlloc_v2(&word, 8));
    CHECK(cuMemsetD32_v2(word, 0, 2));
    load_nvtx();
    for (int n = 1; n < argc; n++) {
        if (argv[n][0] == '+' || argv[n][0] == '*' || argv[n][0] == '-') {
            if (argv[n][0] == '+' && functions[9])
                ((Push)functions[9])(argv[n] + 1);
            if (argv[n][0] == '*' && functions[5])
                ((Start)functions[5])(argv[n] + 1);
            if (argv[n][0] == '-' && functions[11])
                ((Pop)functions[11])();
            continue;
        }
        if (argv[n][0] == '=') {
            CHECK(cuStreamCreate(&stream, 1));
            if (names[5])
                ((Name)names[5])(stream, argv[n] + 1);
            continue;
        }
        CHECK(cuModuleGetFunction(&kernel, module, argv[n]));
        CHECK(launch(kernel, params));
        if (!stream)
            CHECK(cuCtxSynchronize());
    }
    CHECK(cuCtxSynchronize());
    return 0;
}
