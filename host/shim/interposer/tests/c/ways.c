/* Gets a driver in the way that the first argument names, and prints which file it got.
   With a second argument it then ends in that way. Nothing is linked, unless LINKED is defined. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int CUresult;
typedef CUresult init(unsigned), version(int *);
static version *get_version;

#ifdef LINKED
init cuInit;
version cuDriverGetVersion;
#endif

static void late(void) {
    int number = 0;
    CUresult code = get_version(&number);
    printf("at exit %d %d\n", code, number);
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    void *handle = NULL;
    init *start = NULL;
    if (strcmp(argv[1], "linked") == 0) {
#ifdef LINKED
        start = cuInit;
        get_version = cuDriverGetVersion;
#endif
    } else if (strncmp(argv[1], "namespace:", 10) == 0) {
        handle = dlmopen(LM_ID_NEWLM, argv[1] + 10, RTLD_NOW);
    } else {
        handle = dlopen(argv[1], RTLD_NOW);
    }
    if (handle) {
        start = (init *)dlsym(handle, "cuInit");
        get_version = (version *)dlsym(handle, "cuDriverGetVersion");
    }
    if (!start) {
        const char *why = dlerror();
        printf("no driver: %s\n", why ? why : "not linked");
        return 3;
    }
    Dl_info info;
    if (strncmp(argv[1], "namespace:", 10) == 0) {
        /* dladdr of one namespace does not know the others. */
        int ours = dlsym(handle, "cudarun_check_interposer") != NULL;
        if (!ours && dladdr((void *)start, &info))
            ours = strstr(info.dli_fname, "/gpu/libcuda.so.1") != NULL;
        printf("marked %d\n", ours);
    } else if (dladdr((void *)start, &info)) {
        printf("file %s\n", info.dli_fname);
    }
    int number = 0;
    printf("cuInit %d\n", start(0));
    CUresult code = get_version(&number);
    printf("version %d %d\n", code, number);
    const char *end = argc > 2 ? argv[2] : "";
    fflush(stdout);
    if (strcmp(end, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            number = 0;
            code = get_version(&number);
            printf("child: version %d %d, cuInit %d\n", code, number, start(0));
            exit(5);
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("child ended with %d\n", WEXITSTATUS(status));
    } else if (strcmp(end, "_exit") == 0) {
        _exit(7);
    } else if (strcmp(end, "abort") == 0) {
        abort();
    } else if (strcmp(end, "atexit") == 0) {
        atexit(late);
    } else if (strcmp(end, "unload") == 0) {
        printf("dlclose %d\n", dlclose(handle));
        handle = dlopen(argv[1], RTLD_NOW);
        get_version = (version *)dlsym(handle, "cuDriverGetVersion");
        late();
        dlclose(handle);
    }
    return 0;
}
