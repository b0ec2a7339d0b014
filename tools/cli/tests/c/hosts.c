/* Two threads of the host launch one kernel, each into a stream of its own. The first waits for its launch before it tells
   the second one, which goes on then, by a flag that the tool does not see. Both have called CUDA before. */
#include <pthread.h>
#include <stdatomic.h>

#include "calls.h"
#include "hosts.h"

CUresult cuCtxSetCurrent(H), cuStreamCreate(H *, unsigned), cuStreamSynchronize(H);

static H context, count;
static P word;
static atomic_int step;

static void until(int reached) {
    while (step < reached)
        ;
}

static void *work(void *second) {
    H stream;
    uint32_t add = 5;
    void *params[] = {&word, &add};
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, 1));
    step++;
    until(second ? 3 : 2);
    CHECK(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    CHECK(cuStreamSynchronize(stream));
    step++;
    return NULL;
}

int main(void) {
    H module;
    pthread_t threads[2];
    CHECK(cuInit(0));
    CHECK(cuCtxCreate_v2(&context, 0, 0));
    CHECK(cuModuleLoadData(&module, ptx));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuMemAlloc_v2(&word, 4));
    for (long n = 0; n < 2; n++)
        if (pthread_create(&threads[n], NULL, work, (void *)n))
            return 2;
    for (int n = 0; n < 2; n++)
        pthread_join(threads[n], NULL);
    return 0;
}
