/* A program of the driver API that is ended in several ways.

   ends [in-launch|on-host] [default|own|ignore|abort|exit|fault|go-on]

   It says "pid N", launches a kernel that races and ends, and then either waits on the host ("waiting") or
   launches a kernel whose third block runs for ever ("spinning", which that kernel prints when the first
   two have raced). The second word says what becomes of SIGINT, or what a thread of the program does about
   the kernel when it reads a line: it ends the process, or lets the kernel go on and end. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "ends.h"

static void own(int signal) {
    static const char text[] = "handled\n";
    if (write(1, text, sizeof text - 1) > 0 && signal == SIGINT)
        _exit(7);
    _exit(8);
}

static const char *how;
static volatile uint32_t *end;

static void *other(void *unused) {
    char line[16];
    if (!fgets(line, sizeof line, stdin))
        _exit(9);
    if (!strcmp(how, "go-on")) {
        *end = 1;
        return unused;
    }
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "fault"))
        *(volatile int *)8 = 1;
    _exit(5);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    int in_launch = argc > 1 && !strcmp(argv[1], "in-launch");
    H context, module, count, spin;
    P word;
    void *params[] = {&word, &end};
    struct sigaction now;
    how = argc > 2 ? argv[2] : "default";
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("pid %d\n", (int)getpid());
    if (!strcmp(how, "own"))
        signal(SIGINT, own);
    if (!strcmp(how, "ignore"))
        signal(SIGINT, SIG_IGN);
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuModuleGetFunction(&spin, module, "spin"));
    CHECK(cuMemAlloc_v2(&word, 4));
    CHECK(cuMemAllocHost_v2((void **)&end, 4));
    *end = 0;
    CHECK(cuLaunchKernel(count, 2, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CHECK(cuCtxSynchronize());
    sigaction(SIGINT, NULL, &now);
    printf("SIGINT is %s\n", now.sa_handler == SIG_DFL   ? "default"
                             : now.sa_handler == SIG_IGN ? "ignored"
                             : now.sa_handler == own     ? "own"
                                                         : "foreign");
    if (!in_launch) {
        printf("waiting\n");
        for (;;)
            pause();
    }
    if (strcmp(how, "default") && strcmp(how, "own") && strcmp(how, "ignore"))
        pthread_create(&thread, NULL, other, NULL);
    CHECK(cuLaunchKernel(spin, 3, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CHECK(cuCtxSynchronize());
    printf("done\n");
    return 0;
}
