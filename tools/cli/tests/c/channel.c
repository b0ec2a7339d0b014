/* A program of the driver API that is hard on the tool's log.

   channel plain|close|late SECONDS|fails|input|child|remove WHAT|remove-late WHAT|cut|cut-late

   plain   launches a kernel that is right, one that races, and the first again
   close   closes all descriptors but the standard ones behind the first launch, opens a file of its own, says
           "own N" with that file's length in the end
   late    forks; the parent ends, the child begins to use the device and waits, then launches as `plain` does
   fails   launches a kernel that faults and one that races, and ignores every error
   input   reads a number from the standard input and launches the right kernel with so many blocks
   refused loads a module that the device refuses, falls back on the kernel that is right, and ends with 0: PTX that
           nobody can read (`refused ptx`), a cubin without PTX (`refused cubin`), both into the linker (`refused link`)
   asks    launches the kernel that races with a block that is too large, and ignores the error
   lacks   asks for what the simulated device lacks, and falls back on the kernel that is right
   crowded launches a kernel that races and whose parameters leave no room for one more
   apart   launches a kernel that races in memory of the host, behind a pointer in memory of the device, and beside
           more memory that lies far from both
   cleared a child empties its environment and does what `plain` does; its parent launches the kernel that is right
   child   lets a child do what `plain` does, and ends with 0 whatever becomes of it
   remove  removes the logs behind the first launch: WHAT is `file`, `folder` or `both` folders
   cut     cuts its log in the middle behind the first launch
   ...-late  behind the last launch */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "folder.h"
#include "channel.h"

CUresult cuLinkCreate_v2(unsigned, int *, void **, H *),
    cuLinkAddData_v2(H, int, void *, size_t, const char *, unsigned, int *, void **),
    cuMipmappedArrayCreate(void *, const void *, unsigned), cuMemHostRegister_v2(void *, size_t, unsigned),
    cuMemHostGetDevicePointer_v2(P *, void *, unsigned), cuMemcpyHtoD_v2(P, const void *, size_t);

static H own, count, fault, crowded, behind;
static P word;

static void prepare(void) {
    H context, module;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&own, module, "own"));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuModuleGetFunction(&fault, module, "fault"));
    CHECK(cuModuleGetFunction(&crowded, module, "crowded"));
    CHECK(cuModuleGetFunction(&behind, module, "behind"));
    CHECK(cuMemAlloc_v2(&word, 4096));
}

static void launch(H kernel, unsigned blocks) {
    void *params[] = {&word};
    CHECK(cuLaunchKernel(kernel, blocks, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CHECK(cuCtxSynchronize());
}

static void spoil(const char *how, const char *what) {
    const char *folder = getenv("CUDARUN_CHECK_DIR");
    if (!strncmp(how, "remove", 6)) {
        empty(folder, strcmp(what, "file"));
        if (!strcmp(what, "both"))
            empty(getenv("CUDARUN_CHECK_SPARE_DIR"), 1);
    }
    if (!strncmp(how, "cut", 3)) {
        char path[4096];
        struct stat file;
        snprintf(path, sizeof path, "%s/%d.jsonl", folder, (int)getpid());
        if (!stat(path, &file) && truncate(path, file.st_size / 2))
            printf("not cut\n");
    }
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "plain";
    if (!strcmp(how, "late")) {
        if (fork())
            return 0;
        /* Whoever reads the parent's output is not kept waiting. */
        close(1);
        close(2);
    }
    if (!strcmp(how, "child")) {
        pid_t child = fork();
        if (child) {
            waitpid(child, NULL, 0);
            return 0;
        }
    }
    if (!strcmp(how, "cleared")) {
        pid_t child = fork();
        if (child) {
            prepare();
            launch(own, 2);
            waitpid(child, NULL, 0);
            return 0;
        }
        clearenv();
    }
    prepare();
    if (!strcmp(how, "refused")) {
        static const char broken[] = ".version 9.0\n.target sm_90\n.address_size 64\n.entry fast( {\n";
        static const unsigned char cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 190};
        const char *what = argc > 2 ? argv[2] : "";
        H module, link;
        if (!strcmp(what, "link")) {
            CHECK(cuLinkCreate_v2(0, NULL, NULL, &link));
            if (!cuLinkAddData_v2(link, 0, (void *)cubin, sizeof cubin, "code", 0, NULL, NULL))
                printf("linked\n");
        } else if (!cuModuleLoadData(&module, strcmp(what, "ptx") ? (const void *)cubin : broken)) {
            printf("loaded\n");
        }
        launch(own, 2);
        return 0;
    }
    if (!strcmp(how, "asks")) {
        void *params[] = {&word};
        launch(own, 2);
        if (!cuLaunchKernel(count, 2, 1, 1, 2048, 1, 1, 0, NULL, params, NULL))
            printf("launched\n");
        return 0;
    }
    if (!strcmp(how, "crowded")) {
        static char rest[4088];
        void *params[] = {&word, rest};
        launch(own, 2);
        CHECK(cuLaunchKernel(crowded, 2, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        CHECK(cuCtxSynchronize());
        return 0;
    }
    if (!strcmp(how, "apart")) {
        void *host = aligned_alloc(4096, 4096);
        P there;
        CHECK(cuMemHostRegister_v2(host, 4096, 2));
        /* There are more parts of memory than a launch is checked in, and that one is the smallest. */
        for (uintptr_t part = 1; part <= 3; part++) {
            void *wanted = (void *)(part << 43);
            void *far = mmap(wanted, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (far != wanted)
                return 3;
            CHECK(cuMemHostRegister_v2(far, 1 << 16, 2));
        }
        CHECK(cuMemHostGetDevicePointer_v2(&there, host, 0));
        CHECK(cuMemcpyHtoD_v2(word, &there, sizeof there));
        launch(behind, 2);
        return 0;
    }
    if (!strcmp(how, "lacks")) {
        size_t mipmap[8] = {0}, handle;
        if (!cuMipmappedArrayCreate(&handle, mipmap, 2))
            printf("made\n");
        launch(own, 2);
        return 0;
    }
    if (!strcmp(how, "fails")) {
        void *params[] = {&word};
        cuLaunchKernel(fault, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
        cuCtxSynchronize();
        cuLaunchKernel(count, 2, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
        cuCtxSynchronize();
        return 0;
    }
    if (!strcmp(how, "unloaded")) {
        void *params[] = {&word};
        launch(own, 2);
        cuLaunchKernel((void *)&word, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
        return 0;
    }
    if (!strcmp(how, "input")) {
        unsigned blocks = 0;
        if (scanf("%u", &blocks) != 1)
            printf("no number\n");
        launch(own, blocks);
        printf("%u blocks\n", blocks);
        return 0;
    }
    launch(own, 2);
    if (!strcmp(how, "remove") || !strcmp(how, "cut"))
        spoil(how, argc > 2 ? argv[2] : "");
    if (!strcmp(how, "late"))
        sleep(argc > 2 ? (unsigned)atoi(argv[2]) : 1);
    if (!strcmp(how, "close")) {
        struct stat file;
        char name[] = "channel-XXXXXX";
        int all, mine;
        for (all = 3; all < 1024; all++)
            close(all);
        mine = mkstemp(name);
        unlink(name);
        launch(count, 2);
        CHECK(fstat(mine, &file));
        printf("own %d\n", (int)file.st_size);
        return 0;
    }
    launch(count, 2);
    launch(own, 2);
    if (!strcmp(how, "remove-late") || !strcmp(how, "cut-late"))
        spoil(how, argc > 2 ? argv[2] : "");
    return 0;
}
