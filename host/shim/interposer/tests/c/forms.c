/* Asks for functions in every form that cuGetProcAddress has, and prints which file each is in:
   "ours" or "theirs". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int CUresult;
typedef CUresult newer(const char *, void **, int, uint64_t, int *);
typedef CUresult older(const char *, void **, int, uint64_t);
newer cuGetProcAddress_v2, cuGetProcAddress_v2_ptsz;
older cuGetProcAddress;

static const char *owner(void *function) {
    Dl_info info;
    if (!function) return "none";
    if (!dladdr(function, &info)) return "unknown";
    return strstr(info.dli_fname, "/gpu/libcuda.so.1") ? "ours" : "theirs";
}

int main(void) {
    static const struct {
        const char *name;
        int version;
        uint64_t flags;
    } asked[] = {{"cuGetProcAddress", 11030, 0}, {"cuGetProcAddress", 11080, 2},
                 {"cuGetProcAddress", 12000, 0}, {"cuGetProcAddress", 13000, 1},
                 {"cuGetProcAddress", 12000, 2}, {"cuGetProcAddress_v2", 12000, 0},
                 {"cuGetProcAddress", 11000, 0}, {"cuMemAlloc", 13000, 0},
                 {"cuMemcpy", 13000, 2},         {"cuNoSuchThing", 13000, 0}};
    for (size_t n = 0; n < sizeof asked / sizeof *asked; n++) {
        void *one = NULL, *two = NULL, *three = NULL;
        int status = -1, again = -1;
        CUresult first = cuGetProcAddress(asked[n].name, &one, asked[n].version, asked[n].flags);
        CUresult second =
            cuGetProcAddress_v2(asked[n].name, &two, asked[n].version, asked[n].flags, &status);
        CUresult third = cuGetProcAddress_v2_ptsz(asked[n].name, &three, asked[n].version,
                                                  asked[n].flags, &again);
        int same = one == two && two == three && first == second && second == third;
        printf("%s %d %d: %d %d %s%s\n", asked[n].name, asked[n].version, (int)asked[n].flags,
               second, status, owner(two), same && status == again ? "" : ", not the same");
    }
    /* Through what was found, once more; a place for the answer that is not there is an error of
       the driver's, and no crash. */
    void *found = NULL, *last = NULL;
    cuGetProcAddress_v2("cuGetProcAddress", &found, 11030, 0, NULL);
    CUresult code = ((older *)found)("cuGetProcAddress", &last, 12000, 2);
    printf("again: %d %s\n", code, owner(last));
    code = ((newer *)last)("cuInit", NULL, 12000, 0, NULL);
    printf("nowhere: %d\n", code);
    code = ((newer *)last)(NULL, &last, 12000, 0, NULL);
    printf("nothing: %d\n", code);
    return 0;
}
