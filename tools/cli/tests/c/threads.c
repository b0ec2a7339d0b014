/* A program of the driver API that lives on beside the threads of the simulated device: it forks, and waits
   for a signal that it has closed its own threads to.

   It says how many of those threads there are after a launch of many blocks, and what the launches before
   and after have counted. */
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "threads.h"

/* Threads of the simulated device. */
static int threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        char path[64], name[16] = "";
        snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        count += fgets(name, sizeof name, file) && !strncmp(name, "simt ", 5);
        fclose(file);
    }
    closedir(tasks);
    return count;
}

int main(void) {
    H context, module, count;
    P word;
    uint32_t sum, step = 5;
    void *params[] = {&word, &step};
    int status;
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuMemAlloc_v2(&word, 4));
    CHECK(cuMemsetD32_v2(word, 0, 1));
    CHECK(cuLaunchKernel(count, 4000, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    CHECK(cuMemcpyDtoH_v2(&sum, word, 4));
    /* A new thread has its name after it has begun to run. */
    struct timespec short_while = {0, 10000000};
    for (int n = 0; n < 1000 && threads() < 2; n++)
        nanosleep(&short_while, NULL);
    printf("threads %d, sum %u\n", threads(), sum);
    fflush(stdout);

    /* The child ends as programs do, by its exit handlers. */
    pid_t child = fork();
    if (!child)
        exit(cuCtxSynchronize() == 3 ? 6 : 1);
    if (waitpid(child, &status, 0) == child && WIFEXITED(status))
        printf("child %d\n", WEXITSTATUS(status));

    sigset_t awaited;
    struct timespec long_enough = {60, 0};
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    kill(getpid(), SIGUSR1);
    printf("signal %s\n", sigtimedwait(&awaited, NULL, &long_enough) == SIGUSR1 ? "came" : "did not");

    CHECK(cuLaunchKernel(count, 4000, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    CHECK(cuMemcpyDtoH_v2(&sum, word, 4));
    printf("sum %u\n", sum);
    return 0;
}
