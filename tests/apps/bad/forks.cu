// A program whose child does the work, and exits without running exit handlers.
//@[clean] expect: no-race
//@[racy] expect: race
#include <sys/wait.h>
#include <unistd.h>
#include "../app.h"

__global__ void count_threads(int *counter) {
#ifdef RACY
    *counter += 1;  //~ race A A
#else
    atomicAdd(counter, 1);
#endif
}

int main() {
    pid_t child = fork();
    if (child < 0) return 2;
    if (child == 0) {
        int *counter, total = 0;
        CHECK(cudaMalloc(&counter, sizeof *counter));
        count_threads<<<2, 32>>>(counter);
        CHECK(cudaMemcpy(&total, counter, sizeof total, cudaMemcpyDeviceToHost));
        _exit(verdict(total == 64));
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 2;
    return WEXITSTATUS(status);
}
