/* A small driver. It exports few functions, some with signatures of its own: what reaches them is
   what the interposer has passed on. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;

CUresult cuInit(unsigned flags) { return flags ? 1 : 0; }

CUresult cuDriverGetVersion(int *version) {
    const char *text = getenv("FAKE_VERSION");
    *version = text ? atoi(text) : 13000;
    return 0;
}

/* Twelve integers, of which six are on the stack: each counts for its place. */
int64_t cuMemcpy3DPeer(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g,
                       int64_t h, int64_t i, int64_t j, int64_t k, int64_t l) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k +
           12 * l;
}

/* Integers and ten floating-point numbers, of which two are on the stack. */
double cuMemcpy3D_v2(int a, double b, float c, double d, int64_t e, double f, double g, double h,
                     double i, double j, double k, float l) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k +
           12 * l;
}

/* A result in memory, and a structure on the stack. */
struct big {
    int64_t part[5];
};
struct big cuMemcpy2D_v2(struct big x, int64_t add) {
    for (int n = 0; n < 5; n++) x.part[n] += add * (n + 1);
    return x;
}

/* The number of vectors of a call with variable arguments is in a register of its own. */
double cuGetErrorName(int count, ...) {
    va_list list;
    va_start(list, count);
    double sum = 0;
    for (int n = 0; n < count; n++) sum += (n + 1) * va_arg(list, double);
    va_end(list);
    return sum;
}

/* Sixteen bytes in a vector. */
typedef float vector __attribute__((vector_size(16)));
vector cuGetErrorString(vector a, vector b, vector c, vector d, vector e, vector f, vector g,
                        vector h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

/* Calls another exported function, through whatever the loader has bound it to. */
CUresult cuDeviceGetCount(int *count) {
    *count = 1;
    return cuInit(0);
}

static CUresult hidden(void) { return 42; }

/* A driver may answer with other addresses than it exports. */
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             int *status);
static CUresult inner(const char *name, void **function, int version, uint64_t flags, int *status) {
    return cuGetProcAddress_v2(name, function, version, flags, status);
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             int *status) {
    (void)flags;
    int found = 0;
    *function = NULL;
    if (strcmp(name, "cuInit") == 0) {
        *function = (void *)cuInit;
    } else if (strcmp(name, "cuNewerThanHeaders") == 0) {
        *function = (void *)hidden;
    } else if (strcmp(name, "cuGetProcAddress") == 0) {
        *function = getenv("FAKE_INNER") ? (void *)inner : (void *)cuGetProcAddress_v2;
    } else {
        found = 1;
    }
    if (version < 12000) found = 2;
    if (status) *status = found;
    if (found) *function = NULL;
    if (strcmp(name, "cuWhich") == 0) return 71;
    return found ? 500 : 0;
}

/* For programs with a default stream per thread. */
CUresult cuGetProcAddress_v2_ptsz(const char *name, void **function, int version, uint64_t flags,
                                  int *status) {
    CUresult code = cuGetProcAddress_v2(name, function, version, flags, status);
    return strcmp(name, "cuWhich") == 0 ? 72 : code;
}

CUresult cuGetExportTable(const void **table, const void *id) {
    static const int here = 7;
    *table = &here;
    return id ? 0 : 1;
}
