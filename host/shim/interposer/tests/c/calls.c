/* Calls the functions of fake.c, beginning with the one that the argument names, so that each gets
   to be the first one, which loads the driver. Prints "ok", or what was wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
struct big {
    int64_t part[5];
};
typedef float vector __attribute__((vector_size(16)));
CUresult cuInit(unsigned), cuDeviceGetCount(int *), cuCtxSynchronize(void);
int64_t cuMemcpy3DPeer(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                       int64_t, int64_t, int64_t, int64_t);
double cuMemcpy3D_v2(int, double, float, double, int64_t, double, double, double, double, double,
                     double, float);
struct big cuMemcpy2D_v2(struct big, int64_t);
double cuGetErrorName(int, ...);
vector cuGetErrorString(vector, vector, vector, vector, vector, vector, vector, vector);
typedef CUresult lookup(const char *, void **, int, uint64_t, int *);
lookup cuGetProcAddress_v2, cuGetProcAddress_v2_ptsz;
CUresult cuGetProcAddress(const char *, void **, int, uint64_t);
CUresult cuGetExportTable(const void **, const void *);

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            printf("line %d: %s\n", __LINE__, #condition);                                        \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static void integers(void) {
    CHECK(cuMemcpy3DPeer(1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1LL << 40) == 506 - 8 - 0 - 1 + 1 +
                                                                               (12LL << 40));
}

static void numbers(void) {
    double sum = cuMemcpy3D_v2(1, 0.5, 0.25f, -1, 1LL << 33, 2, 3, 4, 5, 6, 7, 8.5f);
    CHECK(sum == 1 + 1 + 0.75 - 4 + 5.0 * (1LL << 33) + 12 + 21 + 32 + 45 + 60 + 77 + 102);
}

static void structures(void) {
    struct big x = {{1, 2, 3, 4, 5}}, y = cuMemcpy2D_v2(x, 100);
    for (int n = 0; n < 5; n++) CHECK(y.part[n] == 101 * (n + 1));
}

static void variable(void) {
    CHECK(cuGetErrorName(9, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0) == 285.0);
    CHECK(cuGetErrorName(0) == 0);
}

static void vectors(void) {
    vector x[8];
    for (int n = 0; n < 8; n++) x[n] = (vector){n, n + 0.5f, -n, 1};
    vector sum = cuGetErrorString(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
    CHECK(sum[0] == 168 && sum[1] == 186 && sum[2] == -168 && sum[3] == 36);
}

static void missing(void) {
    /* The driver has no such function: it is as if it were asked for by name. */
    CHECK(cuCtxSynchronize() == 500);
    CHECK(cuGetProcAddress("cuInit", NULL, 12000, 0) == 500);
}

static void itself(void) {
    int count = 0;
    CHECK(cuDeviceGetCount(&count) == 0 && count == 1);
}

static int is_ours(void *function) {
    Dl_info info;
    CHECK(dladdr(function, &info));
    return strstr(info.dli_fname, "/gpu/libcuda.so.1") != NULL;
}

static void lookups(void) {
    /* A driver whose calls of itself come to us takes our exports for its own. */
    int bound = getenv("FAKE_BOUND") != NULL;
    void *found = NULL;
    int status = -1;
    CHECK(cuGetProcAddress_v2("cuInit", &found, 12000, 0, &status) == 0 && status == 0);
    CHECK(is_ours(found) == bound && ((CUresult(*)(unsigned))found)(1) == 1);
    /* What neither the headers nor the library's exports know is passed on. */
    CHECK(cuGetProcAddress_v2("cuNewerThanHeaders", &found, 14000, 0, NULL) == 0);
    CHECK(!is_ours(found) && ((CUresult(*)(void))found)() == 42);
    CHECK(cuGetProcAddress_v2("cuCtxSynchronize", &found, 13000, 0, &status) == 500);
    CHECK(found == NULL && status == 1);
    CHECK(cuGetProcAddress_v2("cuInit", &found, 11000, 0, &status) == 500 && status == 2);
    /* A hook calls the variant through which it was called. */
    CHECK(cuGetProcAddress_v2("cuWhich", &found, 12000, 0, &status) == 71);
    CHECK(cuGetProcAddress_v2_ptsz("cuWhich", &found, 12000, 0, &status) == 72);
    const void *table = NULL;
    CHECK(cuGetExportTable(&table, &status) == 0 && *(const int *)table == 7);
}

/* The hook is handed out by itself, and what it hands out is the hook again. */
static void hooks(void) {
    const char *version = getenv("FAKE_VERSION");
    int newer = version && atoi(version) > 13000;
    lookup *next = cuGetProcAddress_v2;
    for (int n = 0; n < 3; n++) {
        void *found = NULL;
        CHECK(next("cuGetProcAddress", &found, newer && n == 2 ? 14000 : 12000, 0, NULL) == 0);
        CHECK(is_ours(found) == !(newer && n == 2));
        next = (lookup *)found;
    }
}

/* Eight threads that all want to be first. */
static void *one(void *start) {
    pthread_barrier_wait(start);
    hooks();
    integers();
    return NULL;
}

static void threads(void) {
    pthread_t all[8];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 8);
    for (int n = 0; n < 8; n++) CHECK(pthread_create(&all[n], NULL, one, &start) == 0);
    for (int n = 0; n < 8; n++) pthread_join(all[n], NULL);
    pthread_barrier_destroy(&start);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"integers", integers}, {"numbers", numbers},   {"structures", structures},
               {"variable", variable}, {"vectors", vectors},   {"missing", missing},
               {"itself", itself},     {"lookups", lookups},   {"hooks", hooks},
               {"threads", threads}};
    int count = sizeof all / sizeof *all, known = 0;
    for (int n = 0; n < count; n++) {
        if (argc > 1 && strcmp(argv[1], all[n].name) == 0) {
            all[n].run();
            known = 1;
        }
    }
    CHECK(known);
    for (int n = 0; n < count; n++) all[n].run();
    puts("ok");
    return 0;
}
