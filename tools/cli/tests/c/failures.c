/* A program of the driver API in which something fails that it has not asked of the tool.

   failures FAILURE POINT

   If nothing else is checked before POINT, a child launches a kernel that is right. Then the program itself, or the process that FAILURE makes, launches that
   kernel, one that races, and the first again, says "raced", and ends with 0; it says "refused" instead, and ends with
   0 too, if it cannot use the device. FAILURE comes at POINT: 0 before the device is used, 1 before the first launch,
   2 before the race, 3 behind it, 4 behind the last launch.

   none       nothing
   limit      no file may grow; SIGXFSZ ends processes that try
   ignored    likewise, and SIGXFSZ is ignored
   then       likewise until the last launch; in its place another program then launches the kernel that is right
   close      all descriptors but the standard ones are closed
   files      likewise, and none can be opened
   mask       no file that is made may be opened
   user       the process becomes another user's, if it is root's; else it closes the folders of the run to itself
   closed     likewise, with its descriptors closed
   left       likewise, with its environment emptied
   root       the process has another root folder, in which there is nothing
   cut-off    likewise, with its descriptors closed
   gone       the folders of the run are removed with all that is in them, and its descriptors closed
   fork       another process goes on, and is waited for
   daemon     a process of a session of its own goes on, and nobody waits for it
   exec       another program, with an empty environment, launches the kernels in its place
   other      another user's process executes another program, which launches the kernels
   _exit, abort, fault, kill   the process ends so */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "folder.h"
#include "failures.h"

enum { OTHER = 65534 };

static const char *failure, *point, *folders[2];
static char path[4096];
static H own, count;
static P word;

static CUresult prepare(void) {
    H context, module;
    CUresult error = cuInit(0);
    if (!error)
        error = cuCtxCreate_v2(&context, 0, 0);
    if (!error)
        error = cuModuleLoadData(&module, ptx);
    if (!error)
        error = cuModuleGetFunction(&own, module, "own");
    if (!error)
        error = cuModuleGetFunction(&count, module, "count");
    return error ? error : cuMemAlloc_v2(&word, 4096);
}

static CUresult launch(H kernel) {
    void *params[] = {&word};
    CUresult error = cuLaunchKernel(kernel, 2, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    return error ? error : cuCtxSynchronize();
}

static void must(int done, const char *what) {
    if (!done) {
        perror(what);
        exit(3);
    }
}

/* No file may become larger than this. */
static void limit(rlim_t bytes) {
    struct rlimit size;
    must(!getrlimit(RLIMIT_FSIZE, &size), "getrlimit");
    size.rlim_cur = bytes < size.rlim_max ? bytes : size.rlim_max;
    must(!setrlimit(RLIMIT_FSIZE, &size), "setrlimit");
}

static void close_all(void) {
    for (int file = 3; file < 1024; file++)
        close(file);
}

static void become_other(void) {
    if (!getuid()) {
        must(!setgroups(0, NULL) && !setgid(OTHER) && !setuid(OTHER), "setuid");
        return;
    }
    for (int i = 0; i < 2; i++)
        if (folders[i])
            must(!chmod(folders[i], 0), "chmod");
}

static void change_root(void) {
    char name[] = "/tmp/failures-XXXXXX";
    must(mkdtemp(name) != NULL, "mkdtemp");
    /* Whoever may not change it may in a namespace of its own. */
    if (getuid() && unshare(CLONE_NEWUSER)) {
        become_other();
        return;
    }
    must(!chdir(name) && !rmdir(name) && !chroot("."), "chroot");
}

static int is(const char *name) { return !strcmp(failure, name); }

static void execute(const char *what) {
    char *const args[] = {"failures", (char *)what, "9", NULL}, *const none[] = {NULL};
    execve(path, args, none);
    must(0, "execve");
}

/* The parent of a process that goes on ends with its exit code. */
static void go_on_in_a_child(void) {
    int status;
    pid_t child = fork();
    if (!child)
        return;
    waitpid(child, &status, 0);
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
}

static void at(int now) {
    if (now == 4 && is("then")) {
        limit(RLIM_INFINITY);
        execute("clean");
    }
    if (atoi(point) != now)
        return;
    if (is("limit"))
        limit(0);
    if (is("ignored") || is("then")) {
        signal(SIGXFSZ, SIG_IGN);
        limit(0);
    }
    if (is("left"))
        clearenv();
    if (is("closed") || is("cut-off") || is("close") || is("files"))
        close_all();
    if (is("files")) {
        struct rlimit none = {3, 3};
        must(!setrlimit(RLIMIT_NOFILE, &none), "setrlimit");
    }
    if (is("mask"))
        umask(0777);
    if (is("root") || is("cut-off"))
        change_root();
    if (is("user") || is("closed") || is("left"))
        become_other();
    if (is("gone")) {
        empty(folders[0], 1);
        empty(folders[1], 1);
        close_all();
    }
    if (is("fork"))
        go_on_in_a_child();
    if (is("daemon")) {
        if (fork())
            _exit(0);
        setsid();
        if (fork())
            _exit(0);
    }
    if (is("exec"))
        execute("none");
    if (is("other")) {
        go_on_in_a_child();
        become_other();
        execute("none");
    }
    if (is("_exit"))
        _exit(0);
    if (is("abort"))
        abort();
    if (is("fault"))
        raise(SIGSEGV);
    if (is("kill"))
        raise(SIGKILL);
}

static void say(const char *what) {
    must(write(1, what, strlen(what)) > 0, "write");
}

int main(int argc, char **argv) {
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    failure = argc > 1 ? argv[1] : "none";
    point = argc > 2 ? argv[2] : "9";
    folders[0] = getenv("CUDARUN_CHECK_DIR");
    folders[1] = getenv("CUDARUN_CHECK_SPARE_DIR");
    must(length > 0, "readlink");
    if (is("clean")) {
        CHECK(prepare());
        CHECK(launch(own));
        return 0;
    }
    if (atoi(point) < 2) {
        pid_t child = fork();
        if (!child)
            execute("clean");
        must(waitpid(child, NULL, 0) == child, "waitpid");
    }
    at(0);
    CUresult error = prepare();
    at(1);
    if (!error)
        error = launch(own);
    at(2);
    if (!error)
        error = launch(count);
    int raced = !error;
    at(3);
    if (!error)
        error = launch(own);
    say(raced ? "raced\n" : "refused\n");
    at(4);
    return 0;
}
