/* Types of the driver API, whose own header comes with NVIDIA's toolkit, which these tests do without; and CHECK,
   which ends the program when a call fails. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int CUresult;
typedef void *H;
typedef uint64_t P;

#define CHECK(e)                                                                                                      \
    do {                                                                                                              \
        CUresult r_ = (e);                                                                                            \
        if (r_) {                                                                                                     \
            printf("line %d: %s = %d\n", __LINE__, #e, r_);                                                           \
            exit(1);                                                                                                  \
        }                                                                                                             \
    } while (0)
