/* A program of the driver API that is hard on the tool's log.

   channel plain|close|late SECONDS|fails|input

   plain   launches a kernel that is right, one that races, and the first again
   close   closes all descriptors but the standard ones behind the first launch, opens a file of its own, says
           "own N" with that file's length in the end
   late    forks; the parent ends, the child begins to use the device and waits, then launches as `plain` does
   fails   launches a kernel that faults and one that races, and ignores every error
   input   reads a number from the standard input and launches the right kernel with so many blocks */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"
#include "channel.h"

static H own, count, fault;
static P word;

static void prepare(void) {
    H context, module;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&own, module, "own"));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuModuleGetFunction(&fault, module, "fault"));
    CHECK(cuMemAlloc_v2(&word, 4096));
}

static void launch(H kernel, unsigned blocks) {
    void *params[] = {&word};
    CHECK(cuLaunchKernel(kernel, blocks, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CHECK(cuCtxSynchronize());
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
    prepare();
    if (!strcmp(how, "fails")) {
        void *params[] = {&word};
        cuLaunchKernel(fault, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
        cuCtxSynchronize();
        cuLaunchKernel(count, 2, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
        cuCtxSynchronize();
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
    return 0;
}
