/* What the programs here call of the driver, and how they go on only if it succeeds. Its own header comes
   with NVIDIA's toolkit, which these tests do without. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int CUresult;
typedef void *H;
typedef uint64_t P;
CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSynchronize(void),
    cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *),
    cuMemAlloc_v2(P *, size_t), cuMemAllocHost_v2(void **, size_t),
    cuMemcpyDtoH_v2(void *, P, size_t), cuMemsetD32_v2(P, unsigned, size_t),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H,
                   void **, void **);

#define CHECK(e)                                                                                  \
    do {                                                                                          \
        CUresult r_ = (e);                                                                        \
        if (r_) {                                                                                 \
            printf("line %d: %s = %d\n", __LINE__, #e, r_);                                       \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)
