// A kernel that launches a graph: the simulated device says that it cannot.
//@ expect: not-checked
//@ exit: 75
//@ variants: clean
//@ nvcc: -rdc=true
//@ not-as-on-gpu: the device runtime is machine code, so what needs it is not checked there
//@ says: a call of cudaGraphLaunch, which the simulated device's device runtime does not have
#include <cstdio>

__global__ void launcher(cudaGraphExec_t graph) { cudaGraphLaunch(graph, cudaStreamGraphFireAndForget); }

int main() {
    launcher<<<1, 1>>>(nullptr);
    std::printf("launch: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
