/* A program of the driver API that starts itself with another environment.

   starts FUNCTION    by that function of the C library, with an environment that is empty or, for those that take
                      none, with its own emptied
   starts setenv      in its own place, with another LD_LIBRARY_PATH
   starts fork        a child that is this program itself
   starts program PATH  a child that is another program, and ends with 0 whatever becomes of it
   starts race        launches a kernel that races, and says "raced"

   Before it starts itself it launches a kernel that does not race. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "starts.h"

static void launch(const char *name) {
    H context, module, kernel;
    P word;
    void *params[] = {&word};
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&kernel, module, name));
    CHECK(cuMemAlloc_v2(&word, 4096));
    CHECK(cuLaunchKernel(kernel, 2, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CHECK(cuCtxSynchronize());
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "race", *self = "/proc/self/exe";
    char path[4096], command[5000];
    char *const args[] = {argv[0], "race", NULL}, *const none[] = {NULL};
    pid_t child = 0;
    ssize_t length = readlink(self, path, sizeof path - 1);
    if (length < 0)
        return 3;
    path[length] = 0;
    snprintf(command, sizeof command, "%s race", path);
    if (!strcmp(how, "race")) {
        launch("count");
        printf("raced\n");
        return 0;
    }
    launch("own");
    if (!strcmp(how, "fork")) {
        if (!(child = fork()))
            execl(path, path, "race", NULL);
    } else if (!strcmp(how, "setenv")) {
        setenv("LD_LIBRARY_PATH", "/nowhere", 1);
        execl(path, path, "race", NULL);
    } else if (!strcmp(how, "execve")) {
        execve(path, args, none);
    } else if (!strcmp(how, "execle")) {
        /* Some arguments are on the stack. */
        execle(path, path, "race", "a", "b", "c", "d", "e", "f", NULL, none);
    } else if (!strcmp(how, "execle-short")) {
        execle(path, path, "race", NULL, none);
    } else if (!strcmp(how, "syscall")) {
        syscall(SYS_execve, path, args, none);
    } else if (!strcmp(how, "syscall-at")) {
        syscall(SYS_execveat, AT_FDCWD, path, args, none, 0);
    } else if (!strcmp(how, "vfork")) {
        if (!(child = vfork()))
            execve(path, args, none), _exit(5);
    } else if (!strcmp(how, "program")) {
        if (!(child = fork()))
            execl(argv[2], argv[2], NULL), _exit(5);
    } else if (!strcmp(how, "execvpe")) {
        execvpe(path, args, none);
    } else if (!strcmp(how, "fexecve")) {
        fexecve(open(path, O_RDONLY | O_CLOEXEC), args, none);
    } else if (!strcmp(how, "posix_spawn")) {
        posix_spawn(&child, path, NULL, NULL, args, none);
    } else if (!strcmp(how, "posix_spawnp")) {
        posix_spawnp(&child, path, NULL, NULL, args, none);
    } else {
        clearenv();
        if (!strcmp(how, "execv"))
            execv(path, args);
        else if (!strcmp(how, "execvp"))
            execvp(path, args);
        else if (!strcmp(how, "execl"))
            execl(path, path, "race", NULL);
        else if (!strcmp(how, "execlp"))
            execlp(path, path, "race", NULL);
        else if (!strcmp(how, "system"))
            return system(command);
        else if (!strcmp(how, "popen"))
            return pclose(popen(command, "w"));
    }
    if (child <= 0)
        return 4;
    waitpid(child, NULL, 0);
    return 0;
}
