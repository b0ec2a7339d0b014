/* What the programs of this folder share: two kernels, and a macro that ends the program when something is not as it
   must be. In `racy` all threads store to one word, in `fine` each adds to its own; `word` is a variable. */
#include <string.h>

#include "driver.h"

/* What cuLaunchKernelEx wants to know. */
typedef struct {
    unsigned gx, gy, gz, bx, by, bz, shared;
    H stream;
    void *attrs;
    unsigned count;
} Config;
/* A kernel node. */
typedef struct {
    H func;
    unsigned gx, gy, gz, bx, by, bz, shared;
    void **params, **extra;
    H kern, ctx;
} Node;

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 word;\n"
    ".entry racy(.param .u64 out, .param .u32 n) {\n"
    "    .reg .u64 %a; .reg .u32 %t;\n"
    "    ld.param.u64 %a, [out]; mov.u32 %t, %tid.x;\n"
    "    st.global.u32 [%a], %t; ret;\n}\n"
    ".entry fine(.param .u64 out, .param .u32 n) {\n"
    "    .reg .u64 %a, %o; .reg .u32 %n, %i, %c, %t;\n"
    "    ld.param.u64 %a, [out]; ld.param.u32 %n, [n];\n"
    "    mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x;\n"
    "    mad.lo.u32 %i, %i, %c, %t; mul.wide.u32 %o, %i, 4; add.u64 %a, %a, %o;\n"
    "    ld.global.u32 %t, [%a]; add.u32 %t, %t, %n; st.global.u32 [%a], %t; ret;\n}\n";

#define MUST(e)                                                                                                       \
    do {                                                                                                              \
        if (!(e)) {                                                                                                   \
            printf("line %d: not %s\n", __LINE__, #e);                                                                \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)
