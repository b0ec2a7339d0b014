/* What the programs here call of the driver. */
#include "../../../../host/shim/interposer/tests/c/driver.h"

CUresult cuInit(unsigned), cuCtxCreate_v2(H *, unsigned, int), cuCtxSynchronize(void),
    cuModuleLoadData(H *, const void *), cuModuleGetFunction(H *, H, const char *),
    cuMemAlloc_v2(P *, size_t), cuMemAllocHost_v2(void **, size_t),
    cuMemcpyDtoH_v2(void *, P, size_t), cuMemsetD32_v2(P, unsigned, size_t),
    cuStreamCreate(H *, unsigned),
    cuLaunchKernel(H, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, H,
                   void **, void **);
